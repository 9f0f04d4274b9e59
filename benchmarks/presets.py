"""Seconds per round of presets on this machine, whole rounds of the scheme `proposed` without the store.

    python benchmarks/presets.py [PRESET ...] [--rounds 6]

The first round compiles and is told apart. `har` and `cifar10` need 'fairwave data get' once.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

import jax

from fairwave import Callback, RoundValues, Training, simulate

PRESETS = ("paper", "fair", "fair-mlp", "har", "cifar10")


class Clock(Callback):
    """When rounds ended."""

    def __init__(self) -> None:
        self.ends = [time.perf_counter()]

    def on_round(self, training: Training, done: RoundValues) -> None:
        """Note the time."""
        self.ends.append(time.perf_counter())


def measure(preset: str, rounds: int) -> list[float]:
    """Seconds of each round, the first of which includes loading and compiling."""
    clock = Clock()
    simulate(preset, "proposed", rounds=rounds, callbacks=[clock])
    return [after - before for before, after in itertools.pairwise(clock.ends)]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", default=PRESETS)
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, medians of {given.rounds - 1} rounds after the first")
    print("| preset | s per round (range) | first round, with compiling (s) |")
    print("| --- | ---: | ---: |")
    for preset in given.presets:
        first, *others = measure(preset, given.rounds)
        median = statistics.median(others)
        print(f"| `{preset}` | {median:.2f} ({min(others):.2f} to {max(others):.2f}) | {first:.1f} |", flush=True)


if __name__ == "__main__":
    main()
