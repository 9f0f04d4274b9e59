"""How a fleet of resident devices fares on this machine: rounds with cohorts, and what idle devices cost the SuperLink.

    python benchmarks/fleet.py [DEVICES] [ROUNDS] [--preset small] [--cohort 10] [--processes 2] [--idle 60]

Every device has a key and a TLS connection of its own; they live in few processes, as a laboratory has them. Idle cost
is the SuperLink's processor time while all devices are connected and nothing is asked of them.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from fairwave.federate.agreement import Agreement
from fairwave.federate.deployment import federate_on_loopback
from fairwave.federate.loopback import Loopback
from fairwave.federate.processes import descendants
from fairwave.federate.settings import Settings
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.order import Order
from fairwave.runs.store import RunStore
from fairwave.scenario.loading import load_scenario

TICK = os.sysconf("SC_CLK_TCK")


class Fleet(Loopback):
    """A loopback deployment that is watched before its first round."""

    idle_s = 0.0
    idle_share = math.nan

    def submit(self) -> str:
        """Wait until all devices are connected, watch them idle, then start the run."""
        begun = time.perf_counter()
        while (there := self._connected()) < self._count:
            time.sleep(1.0)
            if time.perf_counter() - begun > 600.0:
                raise SystemExit(f"{there} of {self._count} devices are connected after 600 s")
        print(f"{self._count} devices connected after {time.perf_counter() - begun:.1f} s", flush=True)
        if self.idle_s and self.superlink is not None:
            time.sleep(60.0)  # pauses between polls have grown to three seconds, and grow to fifteen
            before = processor_s(self.superlink.pid)
            time.sleep(self.idle_s)
            self.idle_share = (processor_s(self.superlink.pid) - before) / self.idle_s
            print(f"idle: the SuperLink takes {self.idle_share:.3f} of a core", flush=True)
        return super().submit()

    def _connected(self) -> int:
        return sum(log.read_text("utf-8").count("connected to") for log in self.logs.glob("node-*.log"))


def processor_s(pid: int) -> float:
    """Processor seconds of a program and all that it began."""
    total = 0
    for each in (pid, *descendants(pid)):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def main() -> None:
    """One fleet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("devices", nargs="?", type=int, default=10)
    parser.add_argument("rounds", nargs="?", type=int, default=8)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--cohort", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--idle", type=float, default=0.0, help="seconds to watch the fleet idle")
    given = parser.parse_args()
    overrides = [f"cell.num_devices={given.devices}"]
    if given.cohort < given.devices:
        overrides.append(f"cell.participants={given.cohort}")
    scenario = load_scenario(given.preset, overrides)
    if mode_of(scenario.privacy).proves:
        scenario = load_scenario(given.preset, [*overrides, "privacy.noise_source=hardened"])
    settings = Settings(telemetry=True, energy="model", deadline_s=120.0, wait_s=600.0)
    order = Order(scenario, ("proposed",), (0,), given.rounds)
    fleets: list[Fleet] = []

    def network(agreement: Agreement, folder: Path, command: str) -> Fleet:
        each = math.ceil(given.devices / given.processes)
        fleets.append(Fleet(agreement, folder, command, per_process=each))
        fleets[0].idle_s = given.idle
        return fleets[0]

    def on_line(line: dict[str, object]) -> None:
        if line["event"] == "round":
            print(
                f"round {line['round']}: {line['seconds']} s, {line['delivered']} updates {line['faults'] or ''}",
                flush=True,
            )

    with tempfile.TemporaryDirectory() as folder:
        federate_on_loopback(Agreement(order, settings), Path(folder) / "run", "benchmark", on_line, network)
        store = RunStore(Path(folder) / "run")
        records = store.records(next(store.order.tracks()))[1:]
        store.close()
    split = {
        name: statistics.median(float(np.nan_to_num(record[name])) for record in records)
        for name in ("round_s", "gradient_exchange_s", "update_exchange_s")
    }
    exchanges = split["gradient_exchange_s"] + split["update_exchange_s"]
    slowest = statistics.median(max(record["wall_time_s"][record["delivered"]], default=0.0) for record in records)
    # Devices of a federation that proves something keep their times to themselves: these depend on records.
    training = "" if math.isnan(slowest) else f", of which the slowest device trains {slowest:.2f} s"
    print(
        f"median of rounds 2 to {given.rounds}: {split['round_s']:.2f} s; exchanges {exchanges:.2f} s{training}; the "
        f"access point's own work {split['round_s'] - exchanges:.2f} s"
    )


if __name__ == "__main__":
    main()
