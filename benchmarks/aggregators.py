"""What a robust round costs: whole rounds of 1,000 devices with each aggregator, in turns with the plain mean.

    python benchmarks/aggregators.py [AGGREGATOR ...] [--devices 1000] [--rounds 2]

The preset is `paper-clean` with the scheme `no_privacy`: the paper's network, gradients exchanged, 60 samples a device.
Rounds of the mean and of the other aggregators take turns in one process, so that their ratio stands even on a busy
machine. The first round of each compiles and is left out.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Iterator

import jax

from fairwave.extensions import AGGREGATORS, SCHEMES
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario


def rounds_with(aggregator: str, devices: int, rounds: int) -> Iterator[None]:
    """A cell's rounds, each run when it is asked for."""
    overrides = [f"cell.num_devices={devices}", "data.samples_per_device=60", f"defences.aggregator={aggregator}"]
    order = Order.checked(load_scenario("paper-clean", overrides), ("no_privacy",), (0,), rounds)
    cell = Experiment(order).cell(next(order.tracks()))
    assert cell.access_point.rules.scheme is SCHEMES["no_privacy"]
    for done in run_rounds(cell, rounds):
        jax.block_until_ready(done.state.server.global_params)
        yield


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("aggregators", nargs="*", default=[name for name in AGGREGATORS.names() if name != "mean"])
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    print("| aggregator | s per round | s per round of the mean | ratio (range) |")
    print("| --- | ---: | ---: | ---: |")
    for name in given.aggregators:
        cells = {each: rounds_with(each, given.devices, given.rounds + 1) for each in (name, "mean")}
        seconds: dict[str, list[float]] = {each: [] for each in cells}
        for number, (each, rounds) in itertools.product(range(given.rounds + 1), cells.items()):
            start = time.perf_counter()
            next(rounds)
            if number:
                seconds[each].append(time.perf_counter() - start)
        ratios = [one / other for one, other in zip(seconds[name], seconds["mean"], strict=True)]
        robust, plain = (statistics.median(seconds[each]) for each in (name, "mean"))
        ranged = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| `{name}` | {robust:.1f} | {plain:.1f} | {ranged} |", flush=True)


if __name__ == "__main__":
    main()
