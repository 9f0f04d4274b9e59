"""A federation that meets a random fault every 30 s, for as long as you let it: what it does, and what it leaves.

    python benchmarks/soak.py [MINUTES] [DEVICES]

Ten devices with record-level privacy on loopback, through a wire that can be cut. Faults: a device killed, or stopped
for a while, an update that is half-sent, slow, late or not a number, handshakes cut, the gate down, the SuperLink
killed. At the end: rounds, faults by name, memory of every program and sizes of files over time, and the ledger against
the accounts of the devices.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fairwave.federate import deployment
from fairwave.federate.agreement import Agreement
from fairwave.federate.deployment import federate_on_loopback
from fairwave.federate.processes import descendants
from fairwave.federate.settings import Settings
from fairwave.runs.folder import DEVICES, LOG
from fairwave.runs.order import Order
from fairwave.runs.store import RunStore
from fairwave.scenario.loading import load_scenario
from tests.federate.test_network_faults import Faulty

EVERY_S, DEADLINE_S = 30.0, 15.0


class Over(Exception):
    """Time is up."""


class Trouble(threading.Thread):
    """Makes a fault every so often, and looks at memory and files."""

    def __init__(self, networks: list[Faulty], folder: Path, seed: int = 0) -> None:
        super().__init__(daemon=True)
        self._networks, self._folder, self._random = networks, folder, random.Random(seed)
        self.made, self.looks = Counter[str](), list[dict[str, float]]()
        self.end = threading.Event()

    def run(self) -> None:
        """Until it is told to stop."""
        while not self.end.wait(EVERY_S):
            network = self._networks[0]
            name = self._random.choice(sorted(self._faults()))
            with contextlib.suppress(ProcessLookupError):
                self._faults()[name](network)
                self.made[name] += 1
            self.looks.append(self._look(network))

    def _faults(self) -> dict:
        return {
            "device killed": lambda n: os.killpg(self._some_device(n).pid, signal.SIGKILL),
            "device stopped": self._stop_device,
            "handshakes cut": self._cut,
            "gate down": self._gate_down,
            "SuperLink killed": lambda n: os.killpg(n.superlink.pid, signal.SIGKILL),
            **{f"update {what}": lambda n, what=what: self._plan(n, what) for what in ("half", "slow", "sleep", "nan")},
        }

    def _some_device(self, network: Faulty):
        return network.nodes[self._random.randrange(len(network.nodes))]

    def _stop_device(self, network: Faulty) -> None:
        pid = self._some_device(network).pid
        os.killpg(pid, signal.SIGSTOP)
        threading.Timer(self._random.uniform(5.0, 40.0), _go_on, (pid,)).start()

    def _cut(self, network: Faulty) -> None:
        network.cut_wire.handshakes_to_cut += 5
        network.cut_wire.drop()

    def _gate_down(self, network: Faulty) -> None:
        wire = network.cut_wire
        wire.down = True
        wire.drop()
        threading.Timer(self._random.uniform(5.0, 25.0), setattr, (wire, "down", False)).start()

    def _plan(self, network: Faulty, what: str) -> None:
        (network.plans / str(self._random.randrange(len(network.nodes)))).write_text(what)

    def _look(self, network: Faulty) -> dict[str, float]:
        nodes = [each.pid for each in network.nodes.values()]
        superlink = network.superlink.pid if network.superlink else 0
        point = [pid for pid in descendants(superlink) if b"flwr-serverapp" in _command(pid)]
        return {
            "devices_mb": sum(map(_memory_mb, nodes)) / max(1, len(nodes)),
            "superlink_mb": _memory_mb(superlink),
            "access_point_mb": sum(map(_memory_mb, point)),
            "run_mb": sum(path.stat().st_size for path in self._folder.glob("run.*")) / 1e6,
            "log_mb": sum(path.stat().st_size for path in self._folder.glob(f"{LOG}*")) / 1e6,
        }


def _go_on(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGCONT)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _memory_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def main() -> None:
    """One soak."""
    given = [float(word) for word in sys.argv[1:]]
    minutes, devices = given[0] if given else 60.0, int(given[1]) if len(given) > 1 else 10
    overrides = [
        *(f"cell.num_devices={devices}", "data.samples_per_device=60", "learning.batch_size=16"),
        *("learning.learning_rate=2", "compute.bits_per_iteration=800e3"),
        *("privacy.noise_source=hardened", "privacy.max_epsilon=unset"),
    ]
    order = Order.checked(load_scenario("fair", overrides), ("proposed",), (0,), 100_000)
    settings = Settings(quorum=0.3, deadline_s=DEADLINE_S, patience=100, wait_s=300.0)
    networks: list[Faulty] = []
    deployment.MOST_RESTARTS = 1_000
    end = time.monotonic() + 60.0 * minutes
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        trouble, met = Trouble(networks, folder), Counter[str]()

        def network(*arguments: object) -> Faulty:
            networks.append(Faulty(*arguments, sleep_s=DEADLINE_S + 5.0))
            return networks[0]

        def on_line(line: dict) -> None:
            if line["event"] != "round":
                return
            if not trouble.is_alive():
                trouble.start()
            for name, who in line["faults"].items():
                met[name] += len(who)
            if line["round"] % 20 == 0:
                print(f"round {line['round']}: {line['seconds']} s, {line['delivered']} updates", flush=True)
            if time.monotonic() > end and line["delivered"] == devices:
                trouble.end.set()
                raise Over

        with contextlib.suppress(Over):
            federate_on_loopback(Agreement(order, settings), folder, "soak", on_line, network)
        _tell(folder, trouble, met)


def _tell(folder: Path, trouble: Trouble, met: Counter) -> None:
    store = RunStore(folder)
    records = store.records(next(store.order.tracks()))
    store.close()
    print(f"rounds: {len(records)}; the last one with all devices")
    print(f"faults made: {dict(sorted(trouble.made.items()))}")
    print(f"faults met: {dict(sorted(met.items()))}")
    looks = trouble.looks
    tenth = max(1, len(looks) // 10)
    for name in looks[0] if looks else ():
        first = max(look[name] for look in looks[tenth : 2 * tenth + 1] or looks)
        last = max(look[name] for look in looks[-tenth:])
        print(f"{name}: {first:.1f} after a tenth of the time, {last:.1f} at the end")
    below = []
    for device, steps in enumerate(records[-1]["charged_steps"]):
        account = folder / DEVICES / f"device-{device}" / "account" / "account.json"
        left = sum(count for *_, count in json.loads(account.read_text())["releases"])
        print(f"device {device}: {int(steps)} steps charged, {left} left it")
        below += [device] if steps < left else []
    if below:
        raise SystemExit(f"the ledger is below what has left devices {below}")


if __name__ == "__main__":
    main()
