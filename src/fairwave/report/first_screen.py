"""The first screen of a run's part of the page: what happened in one sentence, then the numbers behind it."""

from __future__ import annotations

import dataclasses
import datetime
import html
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from fairwave.extensions import SCHEMES
from fairwave.metrics.intervals import Interval
from fairwave.report.run_summary import RunSummary, SchemeSummary
from fairwave.report.run_verdict import verdict
from fairwave.report.style import change_text, counted, energy_text, percent_text, points_text

MOST_NOTES = 3
"""Tracks that are told of one by one; the list of runs and the tables have all."""
_SMALL = re.compile(r"\b\d+(\.\d+)?e-\d+")
_UNIT = re.compile(r"(?<=\d) (?=%|m?J\b|seeds?\b)")


@dataclasses.dataclass(frozen=True)
class Tile:
    """One number with its name, and what has to be known about it."""

    name: str
    value: str
    notes: Sequence[str]


def first_screen(run: RunSummary, described: Mapping[str, object], notes: Sequence[str]) -> str:
    """Verdict, tiles, where and when, and what a reader should know first."""
    cells = "".join(
        f'<div class="tile"><dt>{html.escape(tile.name)}</dt><dd><strong>{_text(tile.value)}</strong>'
        + "".join(f"<small>{_text(note)}</small>" for note in tile.notes)
        + "</dd></div>"
        for tile in tiles(run)
    )
    shown = [*notes[:MOST_NOTES], *([f"and {len(notes) - MOST_NOTES} more"] if notes[MOST_NOTES:] else [])]
    warnings = "".join(f'<p class="warning">{html.escape(note)}</p>' for note in shown)
    return (
        f'<p class="verdict">{_text(verdict(run))}</p><dl class="tiles">{cells}</dl>{warnings}'
        f'<p class="quiet">{_text(circumstances(run, described))}{_command(described)}</p>'
        f'<p class="quiet">{_text(_in_words(run))}</p>'
    )


def _text(text: str) -> str:
    """Text as HTML, in which no line ends within a number, or between it and what it counts."""
    return _SMALL.sub(r'<span class="whole">\g<0></span>', html.escape(_UNIT.sub("\u00a0", text)))


def _command(described: Mapping[str, object]) -> str:
    """The command, as it is typed."""
    command = described.get("command")
    return f" Made by <code>{html.escape(str(command))}</code>" if command else ""


def _in_words(run: RunSummary) -> str:
    """What the schemes of the tiles do; nothing of those that came from a file that is not at hand."""
    shown = dict.fromkeys(filter(None, (run.subject, run.base)))
    return " ".join(f"{name}: {SCHEMES[name].summary}" for name in shown if name in SCHEMES)


def tiles(run: RunSummary) -> list[Tile]:
    """The numbers of the scheme that the run is about, each beside the benchmark's."""
    own = run.of(run.subject)
    found = [_tested(run, own)]
    if not math.isnan(own.energy_j.mean):
        found += _energy(run, own)
    others = [f"{each.scheme}: {each.rounds}" for each in run.schemes if each.scheme != run.subject]
    found.append(Tile("Rounds done", own.rounds, others[:3] + ([f"and {len(others) - 3} more"] if others[3:] else [])))
    found.append(_epsilon(run, own))
    return found


def circumstances(run: RunSummary, described: Mapping[str, object]) -> str:
    """When it ran, on how many devices, with which seeds and schemes."""
    schemes = ", ".join(each.scheme for each in run.schemes)
    seeds = "one seed, so no intervals" if run.seeds == 1 else f"{run.seeds} seeds; intervals are 95 %, over seeds"
    parts = [*_data(described), counted(run.devices, "device"), seeds, f"schemes: {schemes}"]
    return f"{date_text(str(described.get('begun', '')))}{'; '.join(parts)}."


def _data(described: Mapping[str, object]) -> Iterator[str]:
    """The data set and the model, where a stored scenario tells them."""
    if described.get("scenario"):
        scenario = json.loads(str(described["scenario"]))
        source, model = (
            scenario.get(group, {}).get(name) for group, name in (("data", "source"), ("learning", "model"))
        )
        if source and model:
            yield f"Data: {Path(str(source)).name}"
            yield f"model: {model}"


def date_text(begun: str) -> str:
    """A date as people read it, with a full stop; nothing where none is known."""
    if not begun:
        return ""
    moment = datetime.datetime.fromisoformat(begun)
    return f"Begun on {moment.day} {moment:%B %Y} at {moment:%H:%M} UTC. "


def _tested(run: RunSummary, own: SchemeSummary) -> Tile:
    name, number = ("Test RMSE", _error) if run.classes is None else ("Test accuracy", percent_text)
    value = "not tested yet" if math.isnan(own.tested.mean) else number(own.tested.mean)
    difference = None if run.against is None else run.against.tested
    return Tile(name, value, [*_ends(run, own.tested, number), *_change(run, "tested", difference)])


def _energy(run: RunSummary, own: SchemeSummary) -> Iterator[Tile]:
    """What devices spend, and, where there are several, how unevenly."""
    against = run.against
    changes = (None, None) if against is None else (against.energy, against.energy_std)
    shown = [("Mean energy per device and round", "energy_j", changes[0])]
    shown += [("Spread of energy across devices (std)", "energy_std_j", changes[1])] if run.devices > 1 else []
    for title, name, change in shown:
        value: Interval = getattr(own, name)
        yield Tile(title, energy_text(value.mean), [*_ends(run, value, energy_text), *_change(run, name, change)])


def _epsilon(run: RunSummary, own: SchemeSummary) -> Tile:
    beside = []
    if run.base is not None and run.of(run.base).begun:
        beside = [f"{run.base}: {run.of(run.base).proved.brief()}"]
    value = f"{'' if own.proved.epsilon is None else 'epsilon '}{own.proved.brief()}"
    title = (
        "Proved privacy" if own.proved.epsilon is None or not own.proved.seeded else "Privacy with noise for deployment"
    )
    return Tile(title, value, [*own.proved.notes(), *beside])


def _error(value: float) -> str:
    return f"{value:.3g}"


def _ends(run: RunSummary, value: Interval, number: Callable[[float], str]) -> Iterator[str]:
    """The interval, or that there is one seed and hence none."""
    if value.count == 1:
        yield "one seed" if run.seeds == 1 else f"one of {run.seeds} seeds"
    elif value.count > 1:
        low, high = number(value.low), number(value.high)
        yield f"the same with all {value.count} seeds" if low == high else f"{low} to {high} ({value.count} seeds)"


def _change(run: RunSummary, name: str, change: Interval | None) -> Iterator[str]:
    """The benchmark's own number, the change against it, and the rounds that this is over where these are not all."""
    if run.base is None or not run.of(run.base).begun:
        yield "nothing to compare with" if run.base is None else f"{run.base} has not begun"
        return
    own: Interval = getattr(run.of(run.subject), name)
    theirs: Interval = getattr(run.of(run.base), name)
    if math.isnan(theirs.mean) or change is None or math.isnan(change.mean):
        yield f"{run.base}: no value to compare with"
        return
    points = name == "tested" and run.classes is not None
    text = percent_text if points else _error if name == "tested" else energy_text
    said = points_text(_as_shown(own.mean) - _as_shown(theirs.mean)) if points else change_text(change.mean)
    against = run.against
    if against is not None and against.uneven:
        fewest, most = against.rounds
        number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        said = points_text(change.mean) if points else said
        yield f"{said} compared with {run.base} over the first {number} rounds, which both have done{_clear(change)}"
        return
    yield f"{run.base}: {text(theirs.mean)}"
    yield f"{said} compared with {run.base}{_clear(change)}"


def _as_shown(share: float) -> float:
    """As it stands beside the difference, which is then that of what a reader sees."""
    return round(share, 3)


def _clear(change: Interval) -> str:
    if math.isnan(change.low):
        return ""
    return "" if not change.low <= 0.0 <= change.high else ", no clear difference"
