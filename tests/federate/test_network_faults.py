"""A federation on real sockets that meets one fault after another: every device is back after each, by itself."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairwave.federate.agreement import Agreement
from fairwave.federate.deployment import federate_on_loopback
from fairwave.federate.device_file import DeviceFile, DeviceFolder, write_device_file
from fairwave.federate.loopback import Loopback
from fairwave.federate.processes import Program, end_all, wait_until
from fairwave.federate.settings import Settings
from fairwave.runs.faults import Fault
from fairwave.runs.folder import DEVICES
from tests.federate.parties import outcome, tiny
from tests.federate.wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.faults]

DEADLINE_S = 12.0
CLOCK_AHEAD_S = 10.0
"""How far the clock of device 2 is ahead: twice what the SuperLink accepts."""
GATE_DOWN_S = 30.0
ANYTHING = frozenset(Fault)


class _Enough(Exception):
    """Every fault was met."""


class Faulty(Loopback):
    """Devices that misbehave on demand, over a wire that can be cut."""

    wire: Wire | None = None

    def __init__(self, agreement: Agreement, folder: Path, command: str, *, sleep_s: float = DEADLINE_S + 5.0) -> None:
        """`sleep_s` is how long a device that is to be late sleeps."""
        super().__init__(agreement, folder, command)
        self._sleep_s = sleep_s

    def __enter__(self) -> Faulty:
        self.plans = self._folder.parent / "plans"
        self.plans.mkdir(exist_ok=True)
        super().__enter__()
        return self

    def __exit__(self, *rest: object) -> None:
        super().__exit__(*rest)
        if self.wire is not None:
            self.wire.__exit__(None, None, None)

    @property
    def port_for_devices(self) -> int:
        if self.wire is None:
            self.wire = Wire(self.port).__enter__()
        return self.wire.port

    @property
    def cut_wire(self) -> Wire:
        assert self.wire is not None
        return self.wire

    def start_node(self, device: int) -> None:
        self.nodes[device] = self.start_saboteur(self.node_folder(device), CLOCK_AHEAD_S if device == 2 else 0.0)

    def start_saboteur(self, folder: Path, clock_s: float) -> Program:
        """Start the device of a folder."""
        words = [str(folder), str(self.plans), str(clock_s)]
        self.environment["SLEEP_S"] = str(self._sleep_s)
        return self._started([sys.executable, "-m", "tests.federate.saboteur", *words], f"{folder.name}.log")


class _OldStates:
    """Device 1 comes back from a backup, and later a copy of it answers in its place: what left it is counted here."""

    DEVICE = 1

    def __init__(self, networks: list[Faulty], run: Path) -> None:
        """`networks` has one member once the federation runs."""
        self._networks, self._own, self._kept = networks, run / DEVICES / "device-1", run.parent / "backup"
        self.unseen = 0
        """Steps that left the device and are not in its account any more, or never were."""

    def keep(self) -> None:
        with self._stopped():
            shutil.copytree(self._own, self._kept)

    def restore(self) -> None:
        os.killpg(self._networks[0].nodes[self.DEVICE].pid, signal.SIGKILL)
        self.unseen += left_device(self._own) - left_device(self._kept)
        shutil.rmtree(self._own)
        shutil.copytree(self._kept, self._own)

    def clone(self) -> None:
        """A copy of the device, with its key, answers while the device itself stands still."""
        done = self._networks[0].plans / "a clone answers"
        done.touch()
        threading.Thread(target=self._answer_as_clone, args=(done,), daemon=True).start()

    def _answer_as_clone(self, done: Path) -> None:
        home, node = self._kept.parent / "clone", self._kept.parent / "node-1"
        with self._stopped():
            shutil.copytree(self._own, home / "device-1")
            shutil.copytree(self._networks[0].node_folder(self.DEVICE), node)
            told = DeviceFolder(node).file.model_dump() | {"home": str(home)}
            write_device_file(node, DeviceFile(**told))
            before = left_device(home / "device-1")
            other = self._networks[0].start_saboteur(node, 0.0)
            try:
                assert wait_until(lambda: left_device(home / "device-1") > before, 90.0)
            finally:
                end_all([other])
        self.unseen += left_device(home / "device-1") - before
        done.unlink()

    @contextlib.contextmanager
    def _stopped(self) -> Iterator[None]:
        pid = self._networks[0].nodes[self.DEVICE].pid
        os.killpg(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(pid, signal.SIGCONT)


def left_device(folder: Path) -> int:
    """Steps that have left a device, by its own account."""
    account = json.loads((folder / "account" / "account.json").read_text())
    return sum(count for *_, count in account["releases"])


class _Schedule:
    """Fires one fault after another, each once the last one was met and all devices have delivered since."""

    def __init__(self, faults: dict[str, Callable[[], None]], is_met: Callable[[], bool]) -> None:
        self._faults, self._is_met = dict(faults), is_met
        self.fired: dict[str, int] = {}
        """The number of stored rounds when a fault was fired."""
        self.rounds: list[dict[str, object]] = []

    def __call__(self, line: dict[str, object]) -> None:
        if line["event"] != "round":
            return
        self.rounds.append(line)
        since = len(self.rounds) - max(self.fired.values(), default=-1)
        if line["delivered"] != 3 or since < 2 or not self._is_met():
            return
        if not self._faults:
            raise _Enough
        name = next(iter(self._faults))
        self.fired[name] = len(self.rounds)
        self._faults.pop(name)()


def test_every_device_comes_back_after_every_fault_and_the_ledger_covers_what_left_it(tmp_path: Path) -> None:
    networks: list[Faulty] = []
    states = _OldStates(networks, tmp_path / "run")

    def network(*arguments: object) -> Faulty:
        networks.append(Faulty(*arguments))  # type: ignore[arg-type]
        return networks[0]

    def plan(device: int, what: str) -> Callable[[], None]:
        return lambda: (networks[0].plans / str(device)).write_text(what) and None

    def cut_handshakes() -> None:
        networks[0].cut_wire.handshakes_to_cut = 3
        networks[0].cut_wire.drop()

    def close_the_gate() -> None:
        wire = networks[0].cut_wire
        wire.down = True
        wire.drop()
        threading.Timer(GATE_DOWN_S, lambda: setattr(wire, "down", False)).start()

    def kill_device() -> None:
        os.killpg(networks[0].nodes[0].pid, signal.SIGKILL)

    def kill_superlink() -> None:
        assert networks[0].superlink is not None
        os.killpg(networks[0].superlink.pid, signal.SIGKILL)

    schedule = _Schedule(
        {
            "half-sent reply": plan(1, "half"),
            "slow uplink": plan(0, "slow"),
            "not a number": plan(1, "nan"),
            "program ends": plan(1, "exit"),
            "late": plan(0, "sleep"),
            "backup kept": states.keep,
            "handshake cut": cut_handshakes,
            "gate down": close_the_gate,
            "device killed": kill_device,
            "backup restored": states.restore,
            "device cloned": states.clone,
            "SuperLink killed": kill_superlink,
        },
        lambda: not list(networks[0].plans.iterdir()),
    )
    order = tiny("privacy.noise_source=hardened", "privacy.max_epsilon=unset", preset="fair-mlp", rounds=200)
    settings = Settings(quorum=0.3, deadline_s=DEADLINE_S, patience=30, wait_s=90.0)
    begun = time.monotonic()
    with pytest.raises(_Enough):
        federate_on_loopback(Agreement(order, settings), tmp_path / "run", "test", schedule, network)
    assert time.monotonic() - begun < 500.0
    assert networks[0].cut_wire.cut == 3
    assert states.unseen > 0
    _check_rounds(schedule, tmp_path / "run", states.unseen)


def _check_rounds(schedule: _Schedule, folder: Path, unseen: int) -> None:
    held = outcome(folder).records
    expected = {
        "half-sent reply": (1, {Fault.NO_ANSWER}),
        "slow uplink": (0, {Fault.NO_ANSWER}),
        "not a number": (1, {Fault.NOT_FINITE}),
        "program ends": (1, {Fault.NO_ANSWER}),
        "late": (0, {Fault.NO_ANSWER}),
    }
    for name, (device, faults) in expected.items():
        begun = schedule.fired[name]  # the next round may have begun when the fault was fired
        record = next((each for each in held[begun : begun + 3] if each["update_fault"][device] in faults), None)
        assert record is not None, name
        others = [k for k in range(3) if k != device]
        assert record["delivered"][others].all(), name  # nobody pays for another's fault
        assert float(record["update_exchange_s"]) < DEADLINE_S + 3.0, name
    for name in ("backup restored", "device cloned"):
        begun = schedule.fired[name]
        assert any(each["state_restored"][1] for each in held[begun : begun + 5]), name
    for device in range(3):
        left = left_device(folder / DEVICES / f"device-{device}") + (unseen if device == 1 else 0)
        assert held[-1]["charged_steps"][device] >= left > 0
