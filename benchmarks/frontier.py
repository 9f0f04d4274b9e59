"""Accuracy against epsilon: the preset `fair` at several budgets, for devices with many and with few records.

    python benchmarks/frontier.py [--out runs/frontier] [--data mnist] [--seeds 0,1,2,3,4] [--epsilons 0.5,1,2,3,4,8]

Every point is a run of its own under --out, so that the same command goes on after an interruption; fairness noise and
defences are on. Settings come from `fairwave privacy plan`. Rows go to standard output and, with --csv, to a file
that `docs/frontier.py` draws.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from fairwave.planner.private_learning import Proposal, propose
from fairwave.privacy.accounting import epsilon_of
from fairwave.runs.open_run import open_run
from fairwave.runs.order import Order
from fairwave.runs.session import TrackProgress, run
from fairwave.scenario.loading import load_scenario

ROUNDS = {6_000: 100, 500: 30}
"""Rounds for devices with so many records: few records cannot pay for many steps."""
FIELDS = (
    "data",
    "records",
    "epsilon",
    "seed",
    "batch",
    "multiplier",
    "rate",
    "proved_epsilon",
    "accuracy",
    "deviation",
)


def settings(source: str, records: int, epsilon: float) -> tuple[list[str], Proposal]:
    """Overrides of the preset `fair` for a budget."""
    asked = [
        *(f"data.source={source}", f"data.samples_per_device={records}", f"run.num_rounds={ROUNDS[records]}"),
        *("run.evaluate_every=10", f"privacy.max_epsilon={epsilon:g}"),
    ]
    scenario = load_scenario("fair", asked)
    size = scenario.learning.batch_size
    chosen = next(each for each in propose(scenario, epsilon, records) if each.batch_size == size)
    return [*asked, *chosen.overrides()], chosen


def points(given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row per run."""
    for records in map(int, given.records.split(",")):
        for epsilon in map(float, given.epsilons.split(",")):
            yield from rows(given, records, epsilon)


def rows(given: argparse.Namespace, records: int, epsilon: float) -> Iterator[dict[str, object]]:
    """All seeds of one budget."""
    overrides, chosen = settings(given.data, records, epsilon)
    scenario = load_scenario("fair", overrides)
    folder = given.out / f"{Path(given.data).stem}-{records}-{epsilon:g}"
    order = Order.checked(scenario, ("proposed",), tuple(map(int, given.seeds.split(","))), None)
    run(order, folder, "python benchmarks/frontier.py", _tell)
    with open_run(folder) as stored:
        results = stored.results
    kind = (chosen.noise_multiplier, min(1.0, chosen.batch_size / records))
    for seed in results["seed"].values:
        own = results.sel(scheme="proposed", seed=seed)
        steps = int(own["local_iterations"].sum("round").max())
        yield {
            **dict(zip(FIELDS[:4], (given.data, records, epsilon, int(seed)), strict=True)),
            **dict(
                zip(
                    FIELDS[4:7],
                    (chosen.batch_size, chosen.noise_multiplier, f"{chosen.learning_rate:.3g}"),
                    strict=True,
                )
            ),
            "proved_epsilon": f"{epsilon_of({kind: steps}, scenario.privacy.delta):.3f}",
            "accuracy": f"{float(own['test_accuracy'].dropna('round')[-1]):.4f}",
            "deviation": f"{float(own['deviation'].mean()):.3f}",
        }


def _tell(step: TrackProgress) -> None:
    if step.rounds and step.rounds % 10 == 0:
        print(f"seed {step.track.seed}, round {step.rounds}: accuracy {step.test_accuracy:.4f}", file=sys.stderr)


def main() -> None:
    """The whole frontier."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/frontier"))
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--epsilons", default="8,2,4,3,1,0.5")
    parser.add_argument("--records", default="6000,500")
    parser.add_argument("--csv", type=Path, help="also write the rows to this file")
    given = parser.parse_args()
    done = []
    for row in points(given):
        done.append(row)
        print(*(row[name] for name in FIELDS), flush=True)
        if given.csv is not None:
            with given.csv.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                writer.writeheader()
                writer.writerows(done)


if __name__ == "__main__":
    main()
