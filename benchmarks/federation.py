"""How long a round of a loopback deployment takes, and which programs the processor time goes to.

    python benchmarks/federation.py [DEVICES] [ROUNDS]

Processor time is read from /proc ten times a second, so that what a program does in its last tenth is missed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

from fairwave.federate.agreement import Agreement
from fairwave.federate.deployment import federate_on_loopback
from fairwave.federate.settings import Settings
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario

KINDS = {
    "fairwave device run": "devices",
    "flower-superexec": "SuperExecs",
    "flower-superlink": "SuperLink",
    "flwr-serverapp": "access point",
    "bin/flwr": "Flower's command line",
}
TICK = os.sysconf("SC_CLK_TCK")


class Sampler(threading.Thread):
    """Processor seconds by kind of program, and how many of each there were."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._of: dict[int, tuple[str, float]] = {}
        self._done = threading.Event()

    def run(self) -> None:
        """Until it is told to stop."""
        while not self._done.wait(0.1):
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except (OSError, IndexError):
                    continue
                kind = next((kind for kind in KINDS if kind in line), None)
                if kind is not None:
                    self._of[int(entry.name)] = (kind, (int(fields[11]) + int(fields[12])) / TICK)

    def totals(self) -> dict[str, tuple[int, float]]:
        """Programs and seconds by kind."""
        self._done.set()
        summed: dict[str, list[float]] = defaultdict(list)
        for kind, seconds in self._of.values():
            summed[kind].append(seconds)
        return {kind: (len(each), sum(each)) for kind, each in summed.items()}


def main() -> None:
    """One deployment."""
    given = [int(word) for word in sys.argv[1:]]
    devices, rounds = (*given, *(10, 3)[len(given) :])
    scenario = load_scenario("small", [f"cell.num_devices={devices}"])
    agreement = Agreement(
        Order(scenario, ("proposed",), (0,), rounds), Settings(telemetry=True, energy="model", deadline_s=60.0)
    )
    sampler, begun = Sampler(), time.perf_counter()
    sampler.start()

    def on_line(line: dict[str, object]) -> None:
        if line["event"] == "round":
            print(f"round {line['round']}: {line['seconds']} s, {line['delivered']} updates", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        federate_on_loopback(agreement, Path(folder) / "run", "benchmark", on_line)
    print(f"whole: {time.perf_counter() - begun:.1f} s on {os.cpu_count()} cores")
    for kind, (count, seconds) in sorted(sampler.totals().items(), key=lambda item: -item[1][1]):
        print(f"{KINDS[kind]:>36}: {count:4d} started, {seconds:6.1f} s of processor, {seconds / count:.2f} s each")


if __name__ == "__main__":
    main()
