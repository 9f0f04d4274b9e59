"""Numbers that others have published, and what fairwave reaches with the same data, model and budget.

    python benchmarks/external.py [ROW ...] [--seeds 0,1,2] [--csv docs/external.csv] [--list]

Without a name all rows are measured. Each prints the accuracy of every seed, the mean beside the published figure, and
the epsilon that the ledger's accountant proves at delta 1e-5. With --csv, rows are added to a file, or replaced there,
for `docs/external.py`. Fashion-MNIST and CIFAR-10 are fetched once by 'fairwave data get'.

Devices train with record-level privacy and the access point adds no noise: published figures have no fairness noise.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from fairwave import DataSet, load_scenario, simulate
from fairwave.data import sources
from fairwave.privacy.accounting import epsilon_of
from fairwave.privacy.calibration import least_multiplier

DELTA = 1e-5
MNIST_MEAN, MNIST_STD = 0.1307, 0.3081
"""What Opacus' example normalises pixels with."""
FIELDS = (
    "row",
    "source",
    "published",
    "spread",
    "epsilon",
    "seed",
    "accuracy",
    "proved",
    "steps",
    "machine",
    "seconds",
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One published figure, and the run that is put beside it."""

    source: str
    """Who published it, with the settings."""
    published: float
    """Test accuracy in per cent."""
    spread: float | None
    """Standard deviation over the publication's runs, in percentage points; None where none is given."""
    epsilon: float
    """The published budget at delta 1e-5."""
    data: str
    batch: int
    steps: int
    """Local steps of a device over the whole run."""
    rate: float
    clip: float
    learning: tuple[str, ...]
    """Settings of the model and the optimizer."""
    multiplier: float | None = None
    """The published noise multiplier; None for the least one that keeps the budget by fairwave's accountant."""
    devices: int = 1
    rounds: int = 1
    prepare: Callable[[DataSet], DataSet] = lambda data: data
    """What is done to pixels before training."""


def _standardised(data: DataSet) -> DataSet:
    def apply(pixels: np.ndarray) -> np.ndarray:
        return ((pixels.astype(np.float32) / 255.0 - MNIST_MEAN) / MNIST_STD).astype(np.float32)

    return dataclasses.replace(data, train_inputs=apply(data.train_inputs), test_inputs=apply(data.test_inputs))


POOLED = (
    *("learning.model=pooled_cnn", "learning.layer_sizes=[784, 10]", "learning.image_shape=[28, 28, 1]"),
    "learning.channels=[16, 32]",
)
MOMENTUM = ("learning.optimizer=momentum", "learning.momentum=0.9")


def _linear(features: int, shape: str) -> tuple[str, ...]:
    return (
        *("learning.model=softmax", "learning.features=scattering"),
        *(f"learning.layer_sizes=[{features}, 10]", f"learning.image_shape={shape}", *MOMENTUM),
    )


def _opacus(accuracy: float, spread: float, epsilon: float, epochs: int, rate: float, sigma: float, clip: float) -> Row:
    return Row(
        source="Opacus, examples/mnist_README.md",
        published=accuracy,
        spread=spread,
        epsilon=epsilon,
        data="mnist",
        batch=240,
        steps=250 * epochs,
        rate=rate,
        clip=clip,
        learning=POOLED,
        multiplier=sigma,
        rounds=5,
        prepare=_standardised,
    )


HANDCRAFTED = "Tramèr and Boneh, Handcrafted-DP"
SHORT = 0.0016
"""Clip length at which nearly every gradient is cut to one length, as theirs are: 0.1 over their features' length."""

ROWS: dict[str, Row] = {
    "opacus-1.19": _opacus(94.63, 0.34, 1.19, 15, 0.25, 1.3, 1.5),
    "opacus-3.01": _opacus(96.78, 0.21, 3.01, 60, 0.15, 1.1, 1.0),
    "opacus-7.10": _opacus(97.09, 0.17, 7.10, 45, 0.25, 0.7, 1.5),
    "linear-mnist": Row(
        *(f"{HANDCRAFTED}, scattering and linear", 98.7, None, 3.0, "mnist", 4096, 586),
        *(31_500.0, SHORT, _linear(3969, "[28, 28, 1]")),
    ),
    "linear-fashion": Row(
        *(f"{HANDCRAFTED}, scattering and linear", 89.7, None, 3.0, "fashion-mnist", 8192, 293),
        *(63_000.0, SHORT, _linear(3969, "[28, 28, 1]")),
    ),
    "linear-cifar10": Row(
        *(f"{HANDCRAFTED}, scattering and linear", 67.0, None, 3.0, "cifar10", 8192, 366),
        *(62_000.0, SHORT / 2, _linear(15_552, "[32, 32, 3]")),
    ),
    "cnn-mnist": Row(
        *(f"{HANDCRAFTED}, end-to-end CNN", 98.1, None, 3.0, "mnist", 512, 4687),
        *(0.5, 0.1, (*POOLED, "learning.activation=tanh", *MOMENTUM)),
    ),
    "cnn-fashion": Row(
        *(f"{HANDCRAFTED}, end-to-end CNN", 86.0, None, 3.0, "fashion-mnist", 2048, 1172),
        *(4.0, 0.1, (*POOLED, "learning.activation=tanh", *MOMENTUM)),
    ),
}


def _on_ten(row: Row) -> Row:
    """The same on ten devices, each with a tenth of the records, averaged every ten steps."""
    return dataclasses.replace(
        row, source=f"{row.source}, one device", devices=10, batch=row.batch // 8, rounds=math.ceil(row.steps / 10)
    )


ROWS |= {f"{name}-ten": _on_ten(ROWS[name]) for name in ("linear-mnist", "linear-fashion", "linear-cifar10")}


def settings(row: Row, records: int) -> tuple[list[str], float, int]:
    """Overrides of the preset `fair-mlp`, the noise multiplier, and the steps of a round."""
    per_round = math.ceil(row.steps / row.rounds)
    total = per_round * row.rounds
    multiplier = row.multiplier or least_multiplier(row.batch / records, total, row.epsilon, 0.99 * DELTA)
    overrides = [
        *(f"cell.num_devices={row.devices}", "cell.deadline_s='1e7 s'", f"compute.min_iterations={per_round}"),
        *(f"compute.max_iterations={per_round}", f"run.num_rounds={row.rounds}", f"run.evaluate_every={row.rounds}"),
        *("privacy.max_epsilon=unset", f"privacy.clip_norm={row.clip}", f"privacy.noise_multiplier={multiplier}"),
        *("privacy.similarity=update", "defences.use=[]", f"data.source={row.data}"),
        *(f"learning.batch_size={row.batch}", f"learning.learning_rate={row.rate}", *row.learning),
    ]
    return overrides, multiplier, total


def measure(name: str, seeds: list[int]) -> list[dict[str, object]]:
    """One entry for every seed."""
    row = ROWS[name]
    data = row.prepare(sources.load(row.data))
    records = data.train_labels.size // row.devices
    overrides, multiplier, total = settings(row, records)
    scenario = load_scenario("fair-mlp", overrides)
    proved = epsilon_of({(multiplier, row.batch / records): total}, 0.99 * DELTA)
    device = jax.devices()[0]
    machine = device.device_kind if device.platform == "gpu" else "two cores"
    entries: list[dict[str, object]] = []
    for seed in seeds:
        begun = time.perf_counter()
        results = simulate(scenario, ["fedavg"], [seed], data=data).results
        accuracy = 100.0 * float(results["test_accuracy"].dropna("round").isel(scheme=0, seed=0, round=-1))
        seconds = time.perf_counter() - begun
        print(f"{name}, seed {seed}: {accuracy:.2f} %, epsilon {proved:.2f}, {seconds:.0f} s", flush=True)
        values = (name, row.source, row.published, row.spread, row.epsilon, seed, f"{accuracy:.2f}")
        entries.append(dict(zip(FIELDS, (*values, f"{proved:.2f}", total, machine, f"{seconds:.0f}"), strict=True)))
    return entries


def keep(entries: list[dict[str, object]], path: Path) -> None:
    """Add entries to a file; those of the same row are replaced."""
    old: list[dict[str, object]] = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            old = [{**entry} for entry in csv.DictReader(file)]
    new = {str(entry["row"]) for entry in entries}
    kept = [entry for entry in old if entry["row"] not in new] + entries
    order = {name: place for place, name in enumerate(ROWS)}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(sorted(kept, key=lambda entry: (order[str(entry["row"])], int(str(entry["seed"])))))


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="names of rows; all of them by default")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--csv", type=Path, help="add the results to this file")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    given = parser.parse_args()
    unknown = [name for name in given.rows if name not in ROWS]
    if unknown:
        parser.error(f"no row '{unknown[0]}'; rows are {', '.join(ROWS)}")
    if given.list:
        print("\n".join(ROWS))
        return
    for name in given.rows or ROWS:
        entries = measure(name, [int(seed) for seed in given.seeds.split(",")])
        values = np.array([float(str(entry["accuracy"])) for entry in entries])
        row = ROWS[name]
        print(f"{name}: {values.mean():.2f} % over {values.size} seeds; published {row.published} % ({row.source})")
        if given.csv is not None:
            keep(entries, given.csv)


if __name__ == "__main__":
    main()
