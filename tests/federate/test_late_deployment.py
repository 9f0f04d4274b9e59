"""An update that comes after its deadline over real sockets: it is used when it comes, and its device goes on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from fairwave.federate.agreement import Agreement
from fairwave.federate.deployment import federate_on_loopback
from fairwave.federate.loopback import Loopback
from fairwave.federate.settings import Settings
from fairwave.runs.faults import Fault
from fairwave.runs.folder import DEVICES, LOG
from tests.federate.parties import outcome, tiny

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.faults]

DEADLINE_S, SLEEPY, ROUNDS = 15.0, 0, 40
"""Rounds of the other two take a quarter of a second and more: enough are left when the sleeper comes back."""


class _Sleepy(Loopback):
    """Devices that sleep over the deadline when a file says so."""

    def start_node(self, device: int) -> None:
        plans = self._folder.parent / "plans"
        plans.mkdir(exist_ok=True)
        self.environment["SLEEP_S"] = str(DEADLINE_S + 2.0)
        command = [sys.executable, "-m", "tests.federate.saboteur", str(self.node_folder(device)), str(plans), "0"]
        self.nodes[device] = self._started(command, f"node-{device}.log")


def test_a_late_update_is_used_when_it_comes(tmp_path: Path) -> None:
    warm: list[int] = []

    def on_line(line: dict[str, object]) -> None:
        if line["event"] == "round" and line["delivered"] == 3:  # everything is compiled
            if not warm:
                (tmp_path / "plans" / str(SLEEPY)).write_text("sleep")
            warm.append(int(str(line["round"])))

    private = ("privacy.noise_source=hardened", "privacy.max_epsilon=unset", "learning.late_rounds=200")
    order = tiny(*private, preset="fair-mlp", rounds=ROUNDS)
    settings = Settings(quorum=0.3, deadline_s=DEADLINE_S, wait_s=90.0)
    federate_on_loopback(Agreement(order, settings), tmp_path / "run", "test", on_line, _Sleepy)
    held = outcome(tmp_path / "run").records
    asked = next(number for number, record in enumerate(held) if number >= warm[0] and record["late"][SLEEPY])
    used = next(number for number, record in enumerate(held) if number > asked and record["late_age"][SLEEPY])
    assert held[used]["late_age"][SLEEPY] == used - asked
    assert float(held[asked]["update_exchange_s"]) < DEADLINE_S + 3.0
    waiting = [record["update_fault"][SLEEPY] for record in held[asked : used + 1]]
    assert waiting == [Fault.LATE] * len(waiting)
    others = [device for device in range(3) if device != SLEEPY]
    assert all(record["delivered"][others].all() for record in held[asked : used + 1])
    assert held[-1]["delivered"][SLEEPY] and not any(record["late_dropped"].any() for record in held)
    lines = [json.loads(line) for line in (tmp_path / "run" / LOG).read_text().splitlines()]
    assert {str(SLEEPY): used - asked} in [line["used"] for line in lines if line["event"] == "late updates"]
    for device in range(3):
        account = json.loads((tmp_path / "run" / DEVICES / f"device-{device}" / "account" / "account.json").read_text())
        left = sum(count for *_, count in account["releases"])
        charged = int(held[-1]["charged_steps"][device])
        late = any(record["late"][device] for record in held)
        assert charged >= left > 0 and (late or charged == left)
