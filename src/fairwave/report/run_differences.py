"""What two runs differ in: their scenarios, and what came of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairwave.metrics.intervals import Interval
from fairwave.report.run_summary import RunSummary
from fairwave.report.style import points_text, with_interval

if TYPE_CHECKING:
    from fairwave.runs.order import Order
    from fairwave.scenario.parameters import Scenario

Row = tuple[str, ...]


def scenario_differences(one: Scenario, other: Scenario) -> list[Row]:
    """Name and both values of every parameter that differs; '-' where a scenario has no such parameter."""
    ours, theirs = (dict(_flat(scenario.model_dump(mode="json"))) for scenario in (one, other))
    names = dict.fromkeys((*ours, *theirs))
    return [
        (name, _told(ours.get(name, _ABSENT)), _told(theirs.get(name, _ABSENT)))
        for name in names
        if ours.get(name, _ABSENT) != theirs.get(name, _ABSENT)
    ]


def order_differences(one: Order, other: Order) -> list[Row]:
    """The same for the rounds and seeds that were asked for, which are no part of a scenario."""
    asked = (("rounds asked for", str(one.rounds), str(other.rounds)),)
    seeds = (("seeds", *(", ".join(map(str, order.seeds)) for order in (one, other))),)
    return [row for row in (*asked, *seeds) if row[1] != row[2]]


def result_rows(one: RunSummary, other: RunSummary) -> list[Row]:
    """Scheme, quantity, both values, and the change from the first run to the second, for schemes that both have."""
    rows: list[Row] = []
    for ours in one.schemes:
        theirs = next((each for each in other.schemes if each.scheme == ours.scheme), None)
        if theirs is None:
            continue
        name = ours.scheme
        rows.append((name, "rounds", ours.rounds, theirs.rounds, ""))
        if one.classes is None and other.classes is None:
            rows.append((name, "test RMSE", *_both(ours.tested, theirs.tested, 3)))
        elif one.classes is not None and other.classes is not None:
            change = theirs.tested.mean - ours.tested.mean
            texts = _both(ours.tested, theirs.tested, 1, 100.0)
            rows.append((name, "test accuracy (%)", *texts[:2], "" if math.isnan(change) else points_text(change)))
        rows.append((name, "mean energy (mJ)", *_both(ours.energy_j, theirs.energy_j, 1, 1e3)))
        rows.append((name, "spread of energy (mJ)", *_both(ours.energy_std_j, theirs.energy_std_j, 2, 1e3)))
        rows.append((name, "proved epsilon", ours.proved.brief(), theirs.proved.brief(), ""))
    return rows


def cautions(one: RunSummary, other: RunSummary) -> list[str]:
    """What must be known before anything is concluded from a comparison of two runs."""
    said = []
    if 1 in (one.seeds, other.seeds):
        said.append("With one seed, a difference may be chance: --seeds 0..4 gives intervals.")
    missing = [s for run in (one, other) for scheme in run.schemes for s in scheme.states if s.is_short]
    if missing:
        said.append("Rounds are missing (see 'rounds'), so schemes that have trained longer cannot be compared fairly.")
    ours, theirs = ({each.scheme for each in run.schemes} for run in (one, other))
    for where, names in (("first", ours - theirs), ("second", theirs - ours)):
        if names:
            said.append(f"Only the {where} run has {', '.join(sorted(names))}.")
    return said


_ABSENT = object()


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, content in value.items():
        if isinstance(content, dict) and content:
            yield from _flat(content, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", content


def _told(value: object) -> str:
    if value is _ABSENT or value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value)


def _both(ours: Interval, theirs: Interval, digits: int, scale: float = 1.0) -> Row:
    texts = (with_interval(ours, digits, scale), with_interval(theirs, digits, scale))
    if math.isnan(ours.mean) or math.isnan(theirs.mean) or ours.mean == 0.0:
        return (*texts, "")
    return (*texts, f"{100.0 * (theirs.mean / ours.mean - 1.0):+.1f} %")
