"""What noise on every device costs against an aggregator that sees only sums.

    python benchmarks/secure_aggregation.py [--seeds 0,1,2] [--records 6000,500]

Ten devices make one private step a round on scattering features, at record-level epsilon 8 over 500 rounds. In the
first row of each pair every update is protected by its own noise, so that the access point can score devices. In
the second, devices share the noise: each adds 1/sqrt(10) of it, and the budget holds only against somebody who sees
nothing but the sum, as behind secure aggregation. No fairness noise. The rate is the best of a grid on seed 9.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from fairwave import load_scenario, simulate
from fairwave.metrics.intervals import interval
from fairwave.privacy.accounting import epsilon_of
from fairwave.privacy.calibration import least_multiplier

DEVICES, ROUNDS, EPSILON, DELTA = 10, 500, 8.0, 1e-5
RATES = (12.0, 40.0, 130.0)
TUNING_SEED = 9
HEADS = (
    *("records a device", "noise", "multiplier on a device", "epsilon against whoever sees each update"),
    *("against whoever sees the sum", "rate", "test accuracy (%)"),
)


def accuracies(records: int, multiplier: float, rate: float, seeds: list[int]) -> np.ndarray:
    """Test accuracy after the last round, for every seed."""
    scenario = load_scenario(
        "fair",
        [
            *("compute.min_iterations=1", "compute.max_iterations=1", "cell.deadline_s='1e6 s'", "defences.use=[]"),
            *("privacy.max_epsilon=unset", f"privacy.noise_multiplier={multiplier}", "privacy.similarity=update"),
            *(f"learning.batch_size={batch_of(records)}", f"learning.learning_rate={rate}"),
            *(f"data.samples_per_device={records}", f"run.num_rounds={ROUNDS}", f"run.evaluate_every={ROUNDS}"),
        ],
    )
    found = simulate(scenario, ["fedavg"], seeds).results["test_accuracy"]
    return np.asarray(found.isel(scheme=0, round=-1).values, float)


def batch_of(records: int) -> int:
    """About a twelfth of a device's records, so that 500 steps are some 43 epochs."""
    return round(records * 512 / 6000)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--records", default="6000,500")
    given = parser.parse_args()
    seeds = [int(seed) for seed in given.seeds.split(",")]
    print("| " + " | ".join(HEADS) + " |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for records in map(int, given.records.split(",")):
        sampling = batch_of(records) / records
        own = least_multiplier(sampling, ROUNDS, EPSILON, 0.99 * DELTA)
        for name, multiplier in (("every device its own", own), ("shared by ten", own / math.sqrt(DEVICES))):
            rate = max(RATES, key=lambda each: float(accuracies(records, multiplier, each, [TUNING_SEED])[0]))
            found = interval(100.0 * accuracies(records, multiplier, rate, seeds))
            alone = epsilon_of({(multiplier, sampling): ROUNDS}, 0.99 * DELTA)
            summed = epsilon_of({(multiplier * math.sqrt(DEVICES), sampling): ROUNDS}, 0.99 * DELTA)
            shown = f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})"
            print(
                f"| {records:,} | {name} | {multiplier:.3g} | {alone:.3g} | {summed:.3g} | {rate:g} | {shown} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
