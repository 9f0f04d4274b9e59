"""What attacks do to the model under each aggregator: a table for a terminal, and a CSV file."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwave.errors import OutputError, system_reason
from fairwave.report.device_losses import LAST
from fairwave.report.fitting_table import FittingTable

if TYPE_CHECKING:
    import xarray as xr

FILE = "attacks.csv"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One attack under one aggregator with one seed."""

    attack: str
    aggregator: str
    seed: int
    accuracy: float
    """Test accuracy of the model that honest devices get, averaged over the last rounds."""
    backdoor_success: float | None = None
    """Share of marked test samples that it takes for the attacker's class; None for attacks without a mark."""


def outcomes(attack: str, aggregator: str, results: xr.Dataset) -> list[Outcome]:
    """What a run says, seed by seed."""
    last = results.isel(scheme=0, round=slice(-LAST, None)).mean("round")
    return [
        Outcome(
            attack,
            aggregator,
            int(seed),
            float(last["test_accuracy"].sel(seed=seed)),
            float(last["backdoor_success"].sel(seed=seed)) if "backdoor_success" in last else None,
        )
        for seed in results["seed"].values
    ]


def attacks_table(found: Sequence[Outcome]) -> FittingTable:
    """A row per attack and a column per aggregator: the mean accuracy over seeds in per cent.

    A backdoor has a second row, with the share of marked test samples for which it works.
    """
    attacks, aggregators = ([*dict.fromkeys(getattr(one, name) for one in found)] for name in ("attack", "aggregator"))
    title = f"test accuracy (%), mean of the last {LAST} rounds and of all seeds"
    rows: list[Sequence[str]] = []
    for attack in attacks:
        each = [
            [one for one in found if (one.attack, one.aggregator) == (attack, aggregator)] for aggregator in aggregators
        ]
        rows.append((attack, *(_per_cent([one.accuracy for one in seeds]) for seeds in each)))
        marked = [[one.backdoor_success for one in seeds if one.backdoor_success is not None] for seeds in each]
        if any(marked):
            rows.append(("  marked samples", *map(_per_cent, marked)))
    return FittingTable(title, ["attack", *(name.replace("_", "\n") for name in aggregators)], rows)


def _per_cent(shares: Sequence[float]) -> str:
    return f"{100.0 * np.mean(shares):.1f}" if shares else ""


def write_outcomes(found: Sequence[Outcome], folder: Path) -> Path:
    """A line per attack, aggregator and seed."""
    path = folder / FILE
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow([field.name for field in dataclasses.fields(Outcome)])
            writer.writerows(dataclasses.astuple(one) for one in found)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({system_reason(error)}); choose a writable folder") from None
    return path
