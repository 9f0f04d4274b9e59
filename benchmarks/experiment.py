"""The paper's experiment, every round stored, in a process that has compiled its programs before.

    python benchmarks/experiment.py [--rounds 200] [--schemes proposed,max_power] [--precision float32]

Its first two rounds are run once, which compiles; then all of it is timed, from an order to a sealed file.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from pathlib import Path

import jax

from fairwave.runs.order import Order
from fairwave.runs.session import TrackProgress, run
from fairwave.scenario.loading import load_scenario

COMPILING_ROUNDS = 2


def main() -> None:
    """Compile, then measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--schemes", default="proposed,max_power")
    parser.add_argument("--precision", default="float32")
    options = parser.parse_args()
    scenario = load_scenario("paper", [f"learning.precision={options.precision}"])
    schemes = tuple(options.schemes.split(","))
    with tempfile.TemporaryDirectory() as folder:

        def seconds(rounds: int, name: str) -> tuple[float, list[tuple[float, TrackProgress]]]:
            stored: list[tuple[float, TrackProgress]] = []
            order, began = Order(scenario, schemes, (0,), rounds), time.perf_counter()

            def watch(progress: TrackProgress) -> None:
                stored.append((time.perf_counter(), progress))

            run(order, Path(folder) / name, "benchmark", watch)
            return time.perf_counter() - began, stored

        compiling, _ = seconds(COMPILING_ROUNDS, "compiling")
        print(f"{jax.devices()[0].device_kind}, {options.precision}: {compiling:.1f} s to compile", flush=True)
        whole, stored = seconds(options.rounds, "timed")
    apart = [later - sooner for (sooner, _), (later, progress) in itertools.pairwise(stored) if progress.rounds]
    last = ", ".join(
        f"{progress.track.scheme} {progress.test_accuracy:.3f}"
        for _, progress in stored
        if progress.rounds == options.rounds
    )
    print(
        f"{whole:.2f} s for {len(schemes)} schemes of {options.rounds} rounds, every round stored; median "
        f"{statistics.median(apart) * 1e3:.1f} ms per round; test accuracy {last}"
    )


if __name__ == "__main__":
    main()
