"""How the devices' models compare: who fares worst, and whether giving more gets more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.fairness import reward_correlation, worst_share
from fairwave.metrics.intervals import Interval, change_interval
from fairwave.report.statistics import has_classes, interval_of, labelled
from fairwave.report.style import with_interval
from fairwave.report.tables import Piece, Sheet

if TYPE_CHECKING:
    import xarray as xr

LAST = 5
"""Rounds at the end over which a device's loss is averaged."""
PLAIN = "max_power"
"""The scheme that averages plainly."""
AFTER_THE_WORST = ("q_fedavg", "afl", "term", "ditto")
"""Schemes that are meant to lower the largest losses."""


def device_losses_section(results: xr.Dataset) -> list[Piece]:
    """A table, and a sentence for each scheme that is meant to help the worst off."""
    losses = _last(results, "received_loss")
    if not bool(losses.notnull().any()):  # a federation whose devices keep them to themselves
        return []
    rows = []
    schemes = [str(scheme) for scheme in results["scheme"].values]
    for scheme in schemes:
        each = losses.sel(scheme=scheme).values
        measured = [_over_seeds(np.mean, each), _over_seeds(np.std, each), _worst(each)]
        rows.append([labelled(results, scheme), *map(with_interval, measured)])
    heads = ["scheme", "mean", "std across devices", "mean of the worst 10 %"]
    caption = f"Loss of the model that each device has, on its own data, over the last {LAST} rounds"
    if has_classes(results):
        heads.append("work and accuracy, correlation")
        for row, scheme in zip(rows, schemes, strict=True):
            row.append(with_interval(_correlation(results, scheme), 2))
        caption += (
            ". The last column is Pearson's correlation, over devices, of computing energy with the accuracy of "
            "the received copy"
        )
    sheet = Sheet("device-losses", "The devices' models", f"{caption}.", heads, rows)
    return [sheet, *(f"<p>{sentence}</p>" for sentence in comparisons(results))]


def comparisons(results: xr.Dataset) -> list[str]:
    """Whether schemes that look after the worst off do lower the worst losses against plain averaging."""
    names = list(map(str, results["scheme"].values))
    if PLAIN not in names:
        return []
    losses = _last(results, "received_loss")
    plain = _worst_each(losses.sel(scheme=PLAIN).values)
    sentences = []
    for scheme in filter(names.__contains__, AFTER_THE_WORST):
        change = change_interval(_worst_each(losses.sel(scheme=scheme).values), plain)
        unclear = change.low < 0.0 < change.high
        verb = "does not clearly change" if unclear else "lowers" if change.mean < 0.0 else "does not lower"
        sentences.append(
            f"{scheme} {verb} the loss of the worst 10 % against plain averaging ({PLAIN}): "
            f"{with_interval(change, 1, unit=' %')}."
        )
    return sentences


def _last(results: xr.Dataset, name: str) -> xr.DataArray:
    """A device's mean over the last rounds in which it took part: dims scheme, seed, device."""
    return results[name].isel(round=slice(-LAST, None)).mean("round")


def _worst_each(losses: np.ndarray) -> np.ndarray:
    return np.array([worst_share(seed) for seed in losses])


def _worst(losses: np.ndarray) -> Interval:
    return interval_of("loss", _worst_each(losses))


def _over_seeds(measure: Callable[[np.ndarray], float], losses: np.ndarray) -> Interval:
    known = [seed[np.isfinite(seed)] for seed in losses]
    return interval_of("loss", [measure(seed) for seed in known if seed.size])


def _correlation(results: xr.Dataset, scheme: str) -> Interval:
    work = results["compute_energy_j"].sel(scheme=scheme).mean("round").values
    got = _last(results, "received_accuracy").sel(scheme=scheme).values
    each = [reward_correlation(gave, seed) for gave, seed in zip(work, got, strict=True)]
    return interval_of("correlation", each)
