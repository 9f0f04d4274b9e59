"""Every member of the search: each reading of the training with each reading of how the paper averaged.

Values are taken seed by seed and then averaged over seeds, stated numbers by their geometric mean.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from fairwave.metrics.paper_distance import FIGURES, NUMBERS, Member, Values
from fairwave.metrics.published import (
    BY_PATH_LOSS,
    ENERGY_SPREAD,
    GAP_AVERAGING,
    LOSS_AXIS,
    SHOWN_ROUNDS,
    SIMILAR_SPREADS,
    SPREAD_AVERAGING,
    STATEMENTS,
    EnergySpread,
    GapAveraging,
    History,
    SpreadAveraging,
    energy_std,
    loss_gap,
    loss_std,
    similar_spreads,
)
from fairwave.metrics.uploads import uploading
from fairwave.studies.benchmark_search import PROPOSED, Training, trainings

if TYPE_CHECKING:
    import xarray as xr


class EnergyReading(NamedTuple):
    """How energies, iterations and rates are averaged."""

    energy_rounds: int
    energy_spread: EnergySpread


class LossReading(NamedTuple):
    """How losses are averaged."""

    loss_rounds: int
    loss_gap: GapAveraging
    loss_spread: SpreadAveraging


@dataclasses.dataclass(frozen=True)
class TrackHistory:
    """What one scheme did with one seed: a value per round and device, devices in the order of their path loss."""

    loss: History
    """Infinite where a participant's loss was not a number."""
    by_path_loss: Mapping[str, History]
    """What the paper draws over path loss; NaN where the device did not upload."""


Pair: TypeAlias = tuple[TrackHistory, TrackHistory]
"""The proposed scheme and a benchmark."""
Seen: TypeAlias = tuple[dict[str, Values], dict[str, bool]]
"""Measured values, and which statements hold."""


def energy_readings(rounds: int) -> list[EnergyReading]:
    """Every way to average energies in runs of so many rounds."""
    return list(itertools.starmap(EnergyReading, itertools.product(_spans(rounds), ENERGY_SPREAD)))


def loss_readings(rounds: int) -> list[LossReading]:
    """Every way to average losses in runs of so many rounds."""
    return list(itertools.starmap(LossReading, itertools.product(_spans(rounds), GAP_AVERAGING, SPREAD_AVERAGING)))


def family_size(rounds: int) -> int:
    """How many members there are."""
    return len(list(trainings())) * len(energy_readings(rounds)) * len(loss_readings(rounds))


def members(runs: Mapping[str, xr.Dataset], rounds: int) -> Iterator[Member]:
    """All of them, from the results of the runs by name."""
    for training in trainings():
        pairs = _pairs(runs, training)
        energies = [(how, _over_seeds([of_energies(pair, how) for pair in pairs])) for how in energy_readings(rounds)]
        losses = [(how, _over_seeds([of_losses(pair, how) for pair in pairs])) for how in loss_readings(rounds)]
        for (energy, (first, some)), (loss, (second, others)) in itertools.product(energies, losses):
            readings = training._asdict() | energy._asdict() | loss._asdict()
            yield Member({name: str(value) for name, value in readings.items()}, first | second, some | others)


def ranked(found: Iterable[Member]) -> list[Member]:
    """The nearest first; those at the same distance in the order of the family."""
    return sorted(found, key=lambda member: member.distance)


def track_history(results: xr.Dataset, scheme: str, seed: int) -> TrackHistory:
    """One track of a run's results."""
    one = results.sel(scheme=scheme, seed=seed)
    order = np.argsort(one["path_loss_db"].values, kind="stable")
    reached = int(one["participating"].isel(device=0).notnull().sum())
    one = one.isel(device=order, round=slice(reached))
    sent = uploading(one)
    return TrackHistory(
        one["loss"].fillna(np.inf).where(one["participating"] == 1).values,
        {name: one[name].where(sent).values for name in BY_PATH_LOSS},
    )


def of_energies(pair: Pair, how: EnergyReading) -> Seen:
    """What depends on energies, iterations and rates: the figures over path loss, and two of the stated numbers."""
    ours, base = pair
    span = slice(min(how.energy_rounds, len(ours.loss), len(base.loss)))
    with _undefined_is_nan():
        proposed, benchmark = (
            {name: np.nanmean(values[span], axis=0) for name, values in track.by_path_loss.items()} for track in pair
        )
        spreads = [energy_std(how.energy_spread, track.by_path_loss["energy_j"][span]) for track in pair]
        means = [np.nanmean(curves["energy_j"]) for curves in (proposed, benchmark)]
        values: dict[str, Values] = {
            "energy_std": (float(np.divide(spreads[0], spreads[1])),),
            "mean_energy": (float(np.divide(means[0], means[1])),),
        }
        values |= {
            name: _ends(proposed[axis.variable], benchmark[axis.variable])
            for name, axis in FIGURES.items()
            if axis is not LOSS_AXIS
        }
        return values, {statement.name: statement.holds(proposed, benchmark) for statement in STATEMENTS}


def of_losses(pair: Pair, how: LossReading) -> Seen:
    """What depends on losses: figure 1, always of the rounds that the paper shows, and two of the stated numbers."""
    together = min(len(track.loss) for track in pair)
    span = slice(min(how.loss_rounds, together))
    with _undefined_is_nan():
        ours, base = (np.nanmean(track.loss[:together], axis=1) for track in pair)
        spreads = [loss_std(how.loss_spread, track.loss[span]) for track in pair]
        values: dict[str, Values] = {
            "mean_loss": (loss_gap(how.loss_gap, ours[span], base[span]),),
            "loss_std": (spreads[0],),
            "figure_1": _ends(ours[:SHOWN_ROUNDS], base[:SHOWN_ROUNDS]),
        }
        return values, {SIMILAR_SPREADS: bool(np.isfinite(spreads).all()) and similar_spreads(*spreads)}


def _spans(rounds: int) -> list[int]:
    """Rounds that averages are taken over: those that the paper shows, and all."""
    return sorted({min(SHOWN_ROUNDS, rounds), rounds})


def _pairs(runs: Mapping[str, xr.Dataset], training: Training) -> list[Pair]:
    """Both schemes, seed by seed."""
    proposed, benchmark = runs[training.proposed_run.name], runs[training.benchmark_run.name]
    return [
        (track_history(proposed, PROPOSED, seed), track_history(benchmark, training.benchmark, seed))
        for seed in proposed["seed"].values
    ]


def _over_seeds(seeds: Sequence[Seen]) -> Seen:
    """Means of the values; a statement holds if it does with every seed."""
    values, statements = zip(*seeds, strict=True)
    with _undefined_is_nan():
        means = {name: _mean(name, [each[name] for each in values]) for name in values[0]}
    return means, {name: all(each[name] for each in statements) for name in statements[0]}


def _mean(name: str, each: Sequence[Values]) -> Values:
    stacked = np.array(each)
    mean = np.exp(np.log(stacked).mean(axis=0)) if name in NUMBERS else stacked.mean(axis=0)
    return tuple(map(float, mean))


def _ends(*curves: np.ndarray) -> Values:
    """The lowest and the highest point of some curves."""
    points = np.concatenate(curves)
    return float(np.nanmin(points)), float(np.nanmax(points))


@contextlib.contextmanager
def _undefined_is_nan() -> Iterator[None]:
    """Losses that overflow, and devices or rounds without an upload, give NaN without a warning."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
