"""A run in a few numbers: every scheme's own, and those of one scheme against a benchmark."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.intervals import Interval, change_interval, interval
from fairwave.metrics.track_state import TrackState
from fairwave.report.averaging import PROPOSED
from fairwave.report.proved_epsilon import ProvedEpsilon, proved_epsilon
from fairwave.report.statistics import (
    asked_rounds,
    common_rounds,
    fairness_over_seeds,
    has_classes,
    last_value,
    mean_loss,
    mean_over_rounds,
    rounds_reached,
    tested_measure,
)

if TYPE_CHECKING:
    import xarray as xr

    from fairwave.report.privacy_account import RunAccount

BENCHMARK = "max_power"
"""What schemes are compared with, where a run has it."""


@dataclasses.dataclass(frozen=True)
class SchemeSummary:
    """One scheme: means over devices, then over seeds."""

    scheme: str
    tested: Interval
    """Test accuracy, or the error of a model that predicts numbers, in the last round that was evaluated."""
    energy_j: Interval
    """Mean over devices of their mean energy per round."""
    energy_std_j: Interval
    """Std of the same across devices."""
    states: tuple[TrackState, ...]
    proved: ProvedEpsilon
    diverged: bool = False
    """Its loss was a number, and is none in the last round."""

    @property
    def begun(self) -> bool:
        """Whether any round of it is stored."""
        return any(state.rounds for state in self.states)

    @property
    def rounds(self) -> str:
        """How far it is, such as '12 of 50' or '3 to 12 of 50'."""
        done = [state.rounds for state in self.states]
        fewest, most, asked = min(done), max(done), self.states[0].asked
        return f"{most} of {asked}" if fewest == most else f"{fewest} to {most} of {asked}"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One scheme against a benchmark, seed by seed, over the rounds that both have done."""

    base: str
    rounds: tuple[int, int]
    """The fewest and most rounds that both have done, over seeds."""
    uneven: bool
    """One of both has done more."""
    tested: Interval
    """Difference in accuracy as a share, or change of the error in per cent."""
    energy: Interval
    """Change in per cent."""
    energy_std: Interval
    """Change in per cent."""


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """What the first screen of a report says of a run."""

    schemes: tuple[SchemeSummary, ...]
    """All that were asked for, begun or not."""
    subject: str
    """The scheme that the run is about: the proposed one, where it has begun."""
    against: Comparison | None
    """None where there is no other scheme with rounds in common."""
    base: str | None
    """The scheme to compare with, begun or not; None where no other was asked for."""
    seeds: int
    devices: int
    classes: int | None
    """None where the model predicts numbers; 1 where classes are not known."""

    def of(self, scheme: str) -> SchemeSummary:
        """The numbers of one scheme."""
        return next(each for each in self.schemes if each.scheme == scheme)


def summarise(results: xr.Dataset, account: RunAccount, states: Sequence[TrackState] = ()) -> RunSummary:
    """From results, privacy account, and how far every track is; left out, that is read off the results."""
    states = states or _states_of(results)
    begun = [str(name) for name in results["scheme"].values]
    asked = list(dict.fromkeys(state.scheme for state in states))
    subject = PROPOSED if PROPOSED in begun else next((name for name in begun if name != BENCHMARK), begun[0])
    base = next((name for name in (BENCHMARK, *asked) if name in asked and name != subject), None)
    comparison = _comparison(results, subject, base) if base in begun else None
    return RunSummary(
        schemes=tuple(_scheme(results, account, name, states) for name in asked),
        subject=subject,
        against=comparison if comparison is not None and comparison.rounds[1] else None,
        base=base,
        seeds=len({state.seed for state in states}),
        devices=results.sizes["device"],
        classes=results.sizes["class"] if has_classes(results) else None,
    )


def _scheme(results: xr.Dataset, account: RunAccount, name: str, states: Sequence[TrackState]) -> SchemeSummary:
    own, proved = tuple(state for state in states if state.scheme == name), proved_epsilon(account, name)
    if name not in results["scheme"].values:
        nothing = interval([])
        return SchemeSummary(name, nothing, nothing, nothing, own, proved)
    energy = fairness_over_seeds(results, name)
    tested = last_value(results[tested_measure(results)[0]], name)
    return SchemeSummary(name, tested, energy["mean"], energy["std"], own, proved, _diverged(results, name))


def _comparison(results: xr.Dataset, new: str, base: str) -> Comparison:
    pair = common_rounds(results, new, base)
    measure = tested_measure(results)[0]
    tested = pair[measure].where(pair[measure].notnull().all("scheme"))
    ours, theirs = (_last_by_seed(tested.sel(scheme=name)) for name in (new, base))
    means, spreads = ([_energy(pair, name, what) for name in (new, base)] for what in ("mean", "std"))
    common = rounds_reached(pair).min("scheme").values.astype(int)
    reached = rounds_reached(results.sel(scheme=[new, base]))
    return Comparison(
        base=base,
        rounds=(int(common.min()), int(common.max())),
        uneven=bool((reached.min("scheme") != reached.max("scheme")).any()),
        tested=interval(ours - theirs) if has_classes(results) else change_interval(ours, theirs),
        energy=change_interval(*means),
        energy_std=change_interval(*spreads),
    )


def _energy(pair: xr.Dataset, scheme: str, what: str) -> np.ndarray:
    """Mean or std across devices of their mean energy, seed by seed."""
    each = mean_over_rounds(pair, "energy_j").sel(scheme=scheme).transpose("seed", "device").values
    known = [row[np.isfinite(row)] for row in each]
    measure = np.mean if what == "mean" else np.std
    return np.array([float(measure(row)) if row.size else np.nan for row in known])


def _last_by_seed(values: xr.DataArray) -> np.ndarray:
    rows = values.transpose("seed", "round").values
    return np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in rows])


def _diverged(results: xr.Dataset, name: str) -> bool:
    """Whether in any seed the loss was a number once and is none in the last round that devices trained in."""
    losses = mean_loss(results).sel(scheme=name).transpose("seed", "round").values
    trained = ((results["participating"] == 1).any("device")).sel(scheme=name).transpose("seed", "round").values
    return any(
        bool(np.isfinite(loss).any() and there.any() and not np.isfinite(loss[there][-1]))
        for loss, there in zip(losses, trained, strict=True)
    )


def _states_of(results: xr.Dataset) -> list[TrackState]:
    reached, asked = rounds_reached(results), asked_rounds(results)
    return [
        TrackState(str(scheme), int(seed), int(reached.sel(scheme=scheme, seed=seed)), asked)
        for scheme in results["scheme"].values
        for seed in results["seed"].values
    ]
