"""What a report says in numbers, computed from a run's results: per scheme and seed, then over seeds."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fairwave.metrics.fairness import fairness_summary
from fairwave.metrics.intervals import Interval, change_interval, interval
from fairwave.metrics.uploads import uploading

if TYPE_CHECKING:
    import xarray as xr

POSITIVE = (0.0, np.inf)
SHARE = (0.0, 1.0)
RANGES: dict[str, tuple[float, float]] = {
    "test_accuracy": SHARE,
    "received_accuracy": SHARE,
    "membership_auc": SHARE,
    "backdoor_success": SHARE,
    "deviation": SHARE,
    "caught": SHARE,
    "jain": SHARE,
    "gini": SHARE,
    "max_min": (1.0, np.inf),
    "correlation": (-1.0, 1.0),
    "utility": (-np.inf, np.inf),
}
"""Where a quantity's values can lie; losses, errors, energies and spreads, which are not listed, are not below 0."""
MILESTONES = (1, 10, 30, 50)
"""Rounds whose losses the paper's figure lets one read off."""


def mean_over_rounds(results: xr.Dataset, name: str) -> xr.DataArray:
    """A quantity's mean over the rounds in which the device uploaded: dims scheme, seed, device."""
    return results[name].where(uploading(results)).mean("round")


def in_order_of_path_loss(results: xr.Dataset, values: xr.DataArray) -> xr.DataArray:
    """A quantity per scheme, seed and device, with the devices of each seed from the nearest to the farthest."""
    order = np.argsort(results["path_loss_db"].transpose("seed", "device").values, axis=1, kind="stable")
    values = values.transpose("scheme", "seed", "device").drop_vars("path_loss_db", errors="ignore")
    return values.copy(data=np.take_along_axis(values.values, order[None], axis=2))


def interval_of(name: str, values: ArrayLike) -> Interval:
    """The interval of a quantity's mean over seeds, which stays where such values can lie."""
    return interval(values, *RANGES.get(name, POSITIVE))


def fairness_over_seeds(results: xr.Dataset, scheme: str) -> dict[str, Interval]:
    """Spread of the devices' mean energy per round, seed by seed, then over seeds."""
    energy = mean_over_rounds(results, "energy_j").sel(scheme=scheme)
    each = [fairness_summary(energy.sel(seed=seed).values) for seed in results["seed"].values]
    return {name: interval_of(name, [summary[name] for summary in each]) for name in each[0]}


def mean_loss(results: xr.Dataset) -> xr.DataArray:
    """Mean over participants of the loss after local training: the paper's figure 1.

    A participant whose loss is not a number makes the mean none; a device that was not asked does not count.
    """
    asked = results["participating"] == 1
    count = asked.sum("device")
    return results["loss"].where(asked, 0.0).sum("device", skipna=False) / count.where(count > 0)


def loss_spread(results: xr.Dataset) -> xr.DataArray:
    """Std over participants of the loss after local training; none where there is one participant."""
    several = (results["participating"] == 1).sum("device") > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rounds that a track did not reach
        return results["loss"].std("device").where(several)


def rounds_reached(results: xr.Dataset) -> xr.DataArray:
    """Rounds that each scheme and seed has done."""
    return _done(results).sum("round")


def asked_rounds(results: xr.Dataset) -> int:
    """Rounds that every scheme and seed was to do; stored results say so."""
    return int(results.attrs.get("rounds", results.sizes["round"]))


def labelled(results: xr.Dataset, scheme: str) -> str:
    """A scheme's name, with its rounds where it has fewer than were asked for: such a row is no like for like."""
    asked, reached = asked_rounds(results), rounds_reached(results).sel(scheme=scheme)
    counts = {int(seed): int(reached.sel(seed=seed)) for seed in results["seed"].values}
    short = {seed: count for seed, count in counts.items() if count < asked}
    if not short:
        return scheme
    if len(set(counts.values())) == 1:
        return f"{scheme} ({next(iter(short.values()))} of {asked} rounds)"
    told = ", ".join(f"seed {seed}: {count}" for seed, count in list(short.items())[:3])
    more = f" and {len(short) - 3} more seeds" if len(short) > 3 else ""
    return f"{scheme} ({told}{more}, of {asked} rounds)"


def common_rounds(results: xr.Dataset, one: str, other: str) -> xr.Dataset:
    """Two schemes, over the rounds that both have done: seed by seed, the same channels."""
    by_round = [name for name, variable in results.data_vars.items() if "round" in variable.dims]
    pair = results[by_round].sel(scheme=[one, other])
    return pair.where(_done(pair).all("scheme"))


def _done(results: xr.Dataset) -> xr.DataArray:
    """Whether a scheme and seed has done a round: it is known then who took part."""
    return results["participating"].isel(device=0).notnull()


def milestones(results: xr.Dataset) -> list[int]:
    """The rounds to tell losses of: the paper's, as far as the run got, and the last."""
    last = int(results["round"].values[-1])
    return sorted({number for number in MILESTONES if number <= last} | {last})


def evaluated(results: xr.Dataset, name: str) -> xr.DataArray:
    """What is known of models in evaluated rounds only, repeated in the rounds that follow, up to the next."""
    described = results.attrs.get("scenario")  # only stored results have one
    every = json.loads(described)["run"]["evaluate_every"] if described else 1
    values = results[name]
    for _ in range(min(every, results.sizes["round"]) - 1):
        values = values.fillna(values.shift(round=1))
    return values


def has_classes(results: xr.Dataset) -> bool:
    """Whether models were of classes, and so have an accuracy; else they predict numbers, and have an error."""
    return "test_rmse" not in results


def tested_measure(results: xr.Dataset) -> tuple[str, str]:
    """The variable that says how good the true model is on test data, and its name in words."""
    return ("test_accuracy", "test accuracy") if has_classes(results) else ("test_rmse", "test RMSE")


def at_round(values: xr.DataArray, scheme: str, number: int) -> Interval:
    """A per-round quantity of a scheme over seeds."""
    return interval_of(str(values.name), values.sel(scheme=scheme, round=number).values)


def last_value(values: xr.DataArray, scheme: str) -> Interval:
    """A per-round quantity in the last round that each seed reached."""
    series = values.sel(scheme=scheme).values
    return interval_of(
        str(values.name), [row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in series]
    )


def relative_change(values: xr.DataArray, new: str, base: str) -> Interval:
    """Change of one scheme against another in per cent, seed by seed."""
    return change_interval(values.sel(scheme=new).values, values.sel(scheme=base).values)
