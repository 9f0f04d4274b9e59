"""Federations on real sockets and processes, driven as users drive them; nothing of them is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fairwave.engine.round_record import Arrays
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.credentials import Authority, make_device_key
from fairwave.federate.deployment import federate_on_loopback
from fairwave.federate.in_process import LocalGrid, federate_in_process
from fairwave.federate.loopback import HOST, Loopback
from fairwave.federate.processes import Program, end_all, free_ports
from fairwave.runs.faults import Fault
from fairwave.runs.folder import DEVICES
from fairwave.runs.order import Order
from tests.federate.parties import (
    REPEATABLE,
    TINY,
    Meddled,
    close,
    model_of_round,
    outcome,
    simulated,
    tiny,
)

pytestmark = [pytest.mark.slow, pytest.mark.alone]

REFUSALS = {
    "unregistered": "[code: 2004] Failed to activate SuperNode",
    "no key": "[code: 2001] SuperNode authentication is enabled",
    "wrong authority": "CERTIFICATE_VERIFY_FAILED",
}
"""What a stranger's SuperNode says when it is turned away."""


def _running(*words: str) -> list[str]:
    """Command lines of processes that hold any of the words."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if any(word in line for word in words) and str(os.getpid()) != entry.parent.name:
            lines.append(line)
    return lines


def test_the_command_is_interrupted_goes_on_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Two nodes, two rounds, TLS and keys; Ctrl-C after the first round."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    own = {**os.environ, "TMPDIR": str(temporary)}
    sets = [part for override in TINY[1:] for part in ("--set", override)]
    command = [
        *(sys.executable, "-m", "fairwave", "federate", "local", "small"),
        *("--nodes", "2", "--rounds", "2", *sets, "--noise", "simulation", "--out", str(tmp_path / "run")),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own) as running:
        assert running.stderr is not None
        said = []
        for line in running.stderr:
            said.append(line)
            if "round 1:" in line:
                break
        assert list(temporary.glob("fairwave-*"))  # keys and the app, while it runs
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
        assert running.wait(60) == 130, said
    assert "device 0 joined\n" in said
    assert "every finished round is safe; resume with: " in rest
    assert _running(str(tmp_path), "flower-super", "flwr-") == []
    assert list(temporary.glob("fairwave-*")) == []
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env=own)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "round 2: 2 updates" in done.stderr
    held = outcome(tmp_path / "run")
    for number, (_, record) in enumerate(simulated(tiny("cell.num_devices=2", rounds=2))):
        for name in ("local_iterations", "transmit_power_w", "deviation", "loss", "test_accuracy"):
            assert np.allclose(held.records[number][name], record[name], rtol=1e-6, atol=1e-6), (number, name)
    assert _running(str(tmp_path), "flower-super", "flwr-") == []
    assert list(temporary.glob("fairwave-*")) == []


def test_three_nodes_agree_with_the_simulator_and_strangers_are_refused(tmp_path: Path) -> None:
    """A key that nobody registered, no key, and a server of another authority: each is turned away."""
    order = tiny()
    codes: dict[str, int | None] = {}

    class Watched(Loopback):
        def submit(self) -> str:
            codes.update(_strangers(self, tmp_path))
            return super().submit()

    federate_on_loopback(Agreement(order, REPEATABLE), tmp_path / "run", "test", network=Watched)
    assert codes.keys() == REFUSALS.keys()
    for name, words in REFUSALS.items():
        assert codes[name], name  # it has ended, and not well
        assert words in (tmp_path / f"{name}.log").read_text("utf-8")
    expected, held = simulated(order), outcome(tmp_path / "run")
    assert len(held.records) == len(expected) == 3
    for number, (model, record) in enumerate(expected, start=1):
        assert close(model_of_round(tmp_path / "run", number), model)
        for name in ("local_iterations", "transmit_power_w", "deviation"):
            assert np.allclose(held.records[number - 1][name], record[name], rtol=1e-6, atol=1e-6), (number, name)
    assert _running(str(tmp_path), "flower-super", "flwr-") == []


def _strangers(network: Loopback, place: Path) -> dict[str, int | None]:
    make_device_key(place / "stranger.key", place / "stranger.pub")
    Authority.make(1).write(place / "other.crt")
    trusted, mine = str(network.secrets / "ca.crt"), str(place / "stranger.key")
    node, other = str(network.node_folder(0) / "node.key"), str(place / "other.crt")
    ways = {
        "unregistered": ["--root-certificates", trusted, "--auth-supernode-private-key", mine],
        "no key": ["--root-certificates", trusted],
        "wrong authority": ["--root-certificates", other, "--auth-supernode-private-key", node],
    }
    command = ["flower-supernode", "--superlink", f"{HOST}:{network.port}", "--host", HOST]
    started = {
        name: Program(
            [*command, "--port", str(port), "--node-config", "partition-id=0", *way],
            network.environment,
            place / f"{name}.log",
        )
        for (name, way), port in zip(ways.items(), free_ports(3), strict=True)
    }
    end = time.monotonic() + 90.0
    while any(each.ended() is None for each in started.values()) and time.monotonic() < end:
        time.sleep(0.2)
    codes = {name: each.ended() for name, each in started.items()}
    end_all(list(started.values()))
    return codes


@pytest.mark.faults
def test_a_federation_with_faults_is_the_one_of_its_good_answers(tmp_path: Path) -> None:
    """NaN, a dead program, a late one, a killed device, a killed SuperLink: the models are those of who answered."""
    order, deadline_s = tiny(rounds=6), 20.0
    settings = REPEATABLE.model_copy(update={"deadline_s": deadline_s, "quorum": 0.3})
    plans = tmp_path / "plans"
    plans.mkdir()
    for place, what in {"1 round 0": "nan", "2 round 1": "sleep", "1 round 2": "exit"}.items():
        (plans / place).write_text(what)
    networks: list[Loopback] = []

    class Sabotaged(Loopback):
        def start_node(self, device: int) -> None:
            networks[:] = [self]
            self.environment["SLEEP_S"] = str(deadline_s + 5.0)
            command = [sys.executable, "-m", "tests.federate.saboteur", str(self.node_folder(device)), str(plans), "0"]
            self.nodes[device] = self._started(command, f"node-{device}.log")

    def on_line(line: dict[str, object]) -> None:
        if line["event"] == "round" and line["round"] == 3:
            os.killpg(networks[0].nodes[0].pid, signal.SIGKILL)
        if line["event"] == "round" and line["round"] == 5 and networks[0].superlink is not None:
            os.killpg(networks[0].superlink.pid, signal.SIGKILL)  # in the middle of the last round

    federate_on_loopback(Agreement(order, settings), tmp_path / "run", "test", on_line, Sabotaged)
    held = outcome(tmp_path / "run").records
    assert len(held) == 6
    assert held[0]["update_fault"].tolist() == [0, Fault.NOT_FINITE, 0]
    assert held[1]["update_fault"].tolist() == [0, 0, Fault.NO_ANSWER]
    assert held[2]["update_fault"][1] == Fault.NO_ANSWER
    assert held[5]["delivered"].all()  # all of them are back, at the new SuperLink
    _replayed(order, held, tmp_path)
    for number in range(1, 7):
        there, expected = (model_of_round(tmp_path / name, number) for name in ("run", "replay"))
        assert close(there, expected), number
    assert _running(str(tmp_path), "flower-super", "flwr-") == []


def _replayed(order: Order, held: list[Arrays], tmp_path: Path) -> None:
    """The same federation in one process, with the same devices absent or failing in the same exchanges."""
    agreement = Agreement(order, REPEATABLE.model_copy(update={"quorum": 0.3, "wait_s": 0.1}))
    done = [0]

    def fails(honest: ClientApp, message: Message, context: Context) -> Message:
        kind, device = message.metadata.message_type, int(context.node_config["partition-id"])
        faults = f"{kind.removeprefix('train.')}_fault"
        if kind.startswith("train") and held[done[0]][faults][device]:
            raise RuntimeError
        return honest(message, context)

    class Absent(LocalGrid):
        def get_node_ids(self) -> list[int]:
            there = held[min(done[0], len(held) - 1)]["participating"]
            return [node for node in super().get_node_ids() if there[node - 1_000]]

    def on_line(line: dict[str, object]) -> None:
        done[0] += line["event"] == "round"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fairwave.federate.in_process.LocalGrid", Absent)
        app = Meddled(app_of(lambda: agreement, tmp_path / "replay" / DEVICES), fails)
        federate_in_process(agreement, tmp_path / "replay", "test", on_line, app)
