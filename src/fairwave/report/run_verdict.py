"""What happened in a run, in one sentence: how far it got, what it learned, what it cost, and what is proved."""

from __future__ import annotations

import math

from fairwave.metrics.intervals import Interval
from fairwave.report.averaging import PROPOSED
from fairwave.report.run_summary import Comparison, RunSummary, SchemeSummary
from fairwave.report.style import counted, energy_text, percent_interval, percent_text, points_text

GUESSING = 1.5
"""An accuracy below so many times that of guessing is close to it."""
NOT_CLEARLY = "not clearly more or less"
MOST_TOLD = 3
"""Schemes with missing rounds that are named."""
MANY_TIMES = 100.0
"""A rise by more than so many per cent is told as a factor."""


def verdict(run: RunSummary) -> str:
    """The sentence. Several seeds give intervals, within which nothing is called a difference; one seed is named."""
    own = run.of(run.subject)
    clauses = [_learned(run, own)]
    clauses += [clause for clause in (_energy(run, own), _missing(run)) if clause]
    said = ", ".join(clauses[:-1]) + (", and " if len(clauses) > 1 else "") + clauses[-1]
    return f"{_opening(run, own)}{said}; {own.proved.clause()}."


def _opening(run: RunSummary, own: SchemeSummary) -> str:
    with_rounds = sum(state.rounds > 0 for state in own.states)
    seeds = "one seed" if run.seeds == 1 else f"{run.seeds} seeds"
    seeds = seeds if with_rounds == run.seeds else f"{with_rounds} of {seeds}"
    shown = [each for each in run.schemes if any(state.is_unfinished for state in each.states)]
    if shown:
        told = [each for each in run.schemes if each.scheme == run.subject or each in shown]
        far = ", ".join(
            f"{each.scheme} has done {each.rounds} rounds{_by_seed(each)}"
            if each.begun
            else f"{each.scheme} has not begun"
            for each in told[:MOST_TOLD]
        )
        far += f" and {len(told) - MOST_TOLD} more schemes" if told[MOST_TOLD:] else ""
        return f"This run is not finished ({far}): so far, with {seeds}, "
    ended = next((state.why_ended for state in own.states if state.ended_early), "")
    if ended:
        return f"After {own.rounds} rounds with {seeds}, where it ended because {ended}, "
    return f"After {counted(own.states[0].asked, 'round')} with {seeds}, "


def _by_seed(scheme: SchemeSummary) -> str:
    return ", depending on the seed" if len({state.rounds for state in scheme.states}) > 1 else ""


def _learned(run: RunSummary, own: SchemeSummary) -> str:
    if own.diverged:
        return f"{_called(own.scheme)} has diverged (its training loss is not a number any more)"
    if math.isnan(own.tested.mean):
        return f"{_called(own.scheme)} has not been tested yet"
    if run.classes is None:
        return f"{_called(own.scheme)} predicts test data with an RMSE of {_with_ends(own.tested)}{_beside(run)}"
    guess = 1.0 / run.classes if run.classes > 1 else 0.0
    guessing = ""
    if own.tested.mean < GUESSING * guess:
        guessing = f", close to guessing among {run.classes} classes"
    elif own.tested.low <= guess:
        guessing = f", not clearly above guessing among {run.classes} classes"
    return f"{_called(own.scheme)} reaches {percent_interval(own.tested)} test accuracy{_beside(run)}{guessing}"


def _called(scheme: str) -> str:
    return "the proposed scheme" if scheme == PROPOSED else f"the scheme {scheme}"


def _with_ends(value: Interval) -> str:
    ends = "" if math.isnan(value.low) else f" ({value.low:.3g} to {value.high:.3g})"
    return f"{value.mean:.3g}{ends}"


def _beside(run: RunSummary) -> str:
    """The benchmark's in brackets; over the rounds that both have done, where these are not all."""
    against = run.against
    if against is None or math.isnan(against.tested.mean):
        return ""
    where = _over(against)
    if run.classes is None:
        told = f"{against.tested.mean:+.1f} % compared with {against.base}"
    elif where:
        told = f"{points_text(against.tested.mean)} compared with {against.base}"
    else:
        told = f"benchmark {against.base}: {percent_text(run.of(against.base).tested.mean)}"
    return f" ({told}{where}{_how_clear(run, against.tested)})"


def _how_clear(run: RunSummary, change: Interval) -> str:
    """Whether a difference in what was learned is one; with one seed, nobody can say."""
    if not math.isnan(change.low):
        return ", a clear difference" if _clear(change) else ", no clear difference"
    return "; one seed cannot tell whether they differ" if run.seeds == 1 else ""


def _over(against: Comparison) -> str:
    """What a comparison is over, where that is not all rounds."""
    if not against.uneven:
        return ""
    fewest, most = against.rounds
    number = counted(most, "round") if fewest == most else f"{fewest} to {most} rounds"
    return f" over the first {number}, which both have done"


def _energy(run: RunSummary, own: SchemeSummary) -> str:
    """What devices spend, and how evenly; nothing where they keep that to themselves."""
    if math.isnan(own.energy_j.mean):
        return ""
    against = run.against
    if against is None or math.isnan(against.energy.mean):
        spread = energy_text(own.energy_std_j.mean)
        between = f" with a spread (std) of {spread} between them" if run.devices > 1 else ""
        return f"its devices spend {energy_text(own.energy_j.mean)} a round on average{between}"
    clear = _clear(against.energy)
    said = (
        f"its devices spend {_change(against.energy) if clear else NOT_CLEARLY + ' energy than under'} {against.base}"
    )
    if run.devices == 1 or math.isnan(against.energy_std.mean):
        return said
    return (
        f"{said}, with {_size(against.energy_std) if _clear(against.energy_std) else NOT_CLEARLY} spread between them"
    )


def _change(change: Interval) -> str:
    if change.mean > MANY_TIMES:
        return f"{1.0 + change.mean / 100.0:.1f} times the energy of"
    return f"{_size_of(change.mean)} {'less' if change.mean < 0.0 else 'more'} energy than under"


def _size(change: Interval) -> str:
    if change.mean > MANY_TIMES:
        return f"{1.0 + change.mean / 100.0:.1f} times the"
    return f"{_size_of(change.mean)} {'less' if change.mean < 0.0 else 'more'}"


def _size_of(per_cent: float) -> str:
    """Never 100 % less, which would be nothing at all."""
    return "more than 99.9 %" if per_cent < -99.95 else f"{abs(per_cent):.1f} %"


def _clear(change: Interval) -> bool:
    """Whether an interval leaves out 0; one seed has no interval, and its number is told as it is."""
    return math.isnan(change.low) or not change.low <= 0.0 <= change.high


def _missing(run: RunSummary) -> str:
    """Why there is no comparison, where there is none."""
    if run.against is not None:
        return ""
    if run.base is None:
        return "there is no other scheme in this run to compare it with"
    return f"there is nothing to compare it with, since {run.base} has no round in common with it yet"
