"""The paper's averages, in each way that it may have taken them: seed by seed, then over seeds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.intervals import Interval, change_interval, interval
from fairwave.metrics.published import (
    ENERGY_SPREAD,
    GAP_AVERAGING,
    SHOWN_ROUNDS,
    SPREAD_AVERAGING,
    EnergySpread,
    GapAveraging,
    SpreadAveraging,
    energy_std,
    loss_gap,
    loss_std,
)
from fairwave.metrics.uploads import uploading
from fairwave.report.statistics import common_rounds, loss_spread, mean_loss

if TYPE_CHECKING:
    import xarray as xr

PROPOSED = "proposed"
_IN_WORDS: dict[GapAveraging | SpreadAveraging | EnergySpread, str] = {
    "ratio_of_means": "ratio of the means over rounds",
    "mean_of_gaps": "mean of the rounds' gaps",
    "of_means": "std of the devices' means",
    "mean_of_rounds": "mean over rounds of the std in each",
    "mean": "mean over rounds",
    "peak": "peak",
}


def shown_rounds(results: xr.Dataset) -> xr.Dataset:
    """The rounds that the paper's figure 1 shows, as far as the run got."""
    return results.sel(round=results["round"] <= SHOWN_ROUNDS)


def last_shown_round(results: xr.Dataset) -> int:
    """The last of these rounds."""
    return int(shown_rounds(results)["round"].values[-1])


def in_words(how: GapAveraging | SpreadAveraging | EnergySpread, results: xr.Dataset) -> str:
    """A way of averaging, as tables and sentences call it."""
    return f"round {last_shown_round(results)}" if how == "last_round" else _IN_WORDS[how]


def loss_gaps(results: xr.Dataset, base: str) -> dict[GapAveraging, Interval]:
    """Loss of the proposed scheme against a benchmark in per cent, over the rounds that figure 1 shows."""
    each: dict[GapAveraging, list[float]] = {how: [] for how in GAP_AVERAGING}
    means = mean_loss(common_rounds(shown_rounds(results), PROPOSED, base)).transpose("scheme", "seed", "round")
    for ours, theirs in zip(means.sel(scheme=PROPOSED).values, means.sel(scheme=base).values, strict=True):
        known = np.isfinite(ours) & np.isfinite(theirs)
        for how in GAP_AVERAGING:
            each[how].append(loss_gap(how, ours[known], theirs[known]) if known.any() else np.nan)
    return {how: change_interval(gaps, np.ones(len(gaps))) for how, gaps in each.items()}


def loss_spreads(results: xr.Dataset, scheme: str) -> dict[SpreadAveraging, Interval]:
    """Std of a scheme's loss across devices, over the rounds that figure 1 shows."""
    return {how: interval(loss_spread_by_seed(results, scheme, how), least=0.0) for how in SPREAD_AVERAGING}


def loss_spread_by_seed(results: xr.Dataset, scheme: str, how: SpreadAveraging) -> list[float]:
    """The same, averaged in one way, for each seed."""
    shown = shown_rounds(results).sel(scheme=[scheme])
    known = loss_spread(shown).isel(scheme=0).transpose("seed", "round").notnull().values
    losses = shown["loss"].isel(scheme=0).transpose("seed", "round", "device").values
    return [
        loss_std(how, history[several]) if several.any() else np.nan
        for history, several in zip(losses, known, strict=True)
    ]


def energy_spreads(results: xr.Dataset, base: str) -> dict[EnergySpread, Interval]:
    """Std of energy across devices of the proposed scheme against a benchmark in per cent, over all rounds."""
    pair = common_rounds(results, PROPOSED, base)
    spent = pair["energy_j"].where(uploading(pair)).transpose("scheme", "seed", "round", "device")
    with warnings.catch_warnings():  # devices that never uploaded, and rounds in which none did
        warnings.simplefilter("ignore", RuntimeWarning)
        return {
            how: change_interval(
                *([energy_std(how, each) for each in spent.sel(scheme=name).values] for name in (PROPOSED, base))
            )
            for how in ENERGY_SPREAD
        }
