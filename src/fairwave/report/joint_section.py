"""Several runs beside each other: one sentence, one table, and figures with the lines of all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from fairwave.report.figure_data import Panel, Series, without_limits
from fairwave.report.run_summary import RunSummary, SchemeSummary
from fairwave.report.section import Part, RunReport, figures_html
from fairwave.report.style import energy_text, percent_text, with_interval
from fairwave.report.tables import Sheet

KEY = "joint"


@dataclasses.dataclass(frozen=True)
class Joint:
    """What is shown of all runs together."""

    part: Part
    panels: list[Panel]


def joint_part(runs: Sequence[RunReport]) -> Joint:
    """The table of all schemes of all runs, and the figures that at least two runs have."""
    panels = joint_panels(runs)
    drawn = figures_html(panels, "", "")
    return Joint(Part(KEY, "All runs together", [joint_sheet(runs), drawn]), panels)


def joint_panels(runs: Sequence[RunReport]) -> list[Panel]:
    """Figures with the lines of every run that has them, each called after its run and scheme."""
    found: dict[str, list[tuple[str, Panel]]] = {}
    for run in runs:
        for panel in run.panels:
            found.setdefault(panel.key, []).append((run.name, panel))
    return [_joined(key, panels) for key, panels in found.items() if len(panels) > 1]


def joint_sheet(runs: Sequence[RunReport]) -> Sheet:
    """A row for every scheme of every run."""
    rows = [
        (run.name, scheme.scheme, *_numbers(scheme, summary))
        for run, summary in ((run, run.summary()) for run in runs)
        for scheme in summary.schemes
    ]
    heads = (
        "run",
        "scheme",
        "rounds",
        "seeds",
        "test accuracy (%)",
        "test RMSE",
        "mean energy (mJ)",
        "std across devices (mJ)",
        "proved epsilon",
    )
    kept = [place for place in range(len(heads)) if place not in (4, 5) or any(row[place] for row in rows)]
    caption = (
        "Values are means over devices and seeds, with 95 % intervals if there are several seeds. Energy is "
        "that of a device in a round. Schemes of one run had the same data and channels. Runs may differ in "
        "everything in which their scenarios differ ('fairwave runs compare' shows it)."
    )
    shown = [tuple(row[place] for place in kept) for row in rows]
    return Sheet(KEY, "Every scheme of every run", caption, [heads[place] for place in kept], shown)


def joint_verdict(runs: Sequence[RunReport]) -> str:
    """Which scheme of which run does best, in one sentence that names single seeds and missing rounds."""
    summaries = [(run.name, run.summary()) for run in runs]
    everyone = [(f"{scheme.scheme} of {name}", scheme) for name, run in summaries for scheme in run.schemes]
    clauses = []
    if all(run.classes is not None for _, run in summaries):
        tested = [each for each in everyone if not math.isnan(each[1].tested.mean)]
        if tested:
            name, best = max(tested, key=lambda each: each[1].tested.mean)
            clauses.append(f"{name} has the highest test accuracy ({percent_text(best.tested.mean)})")
    spending = [each for each in everyone if not math.isnan(each[1].energy_j.mean)]
    if spending:
        name, least = min(spending, key=lambda each: each[1].energy_j.mean)
        clauses.append(f"{name} spends the least energy ({energy_text(least.energy_j.mean)} per device and round)")
        name, even = min(spending, key=lambda each: each[1].energy_std_j.mean)
        clauses.append(f"and {name} spreads it most evenly (std {energy_text(even.energy_std_j.mean)})")
    single = [name for name, run in summaries if run.seeds == 1]
    unfinished = [name for name, run in summaries for each in run.schemes if any(s.is_unfinished for s in each.states)]
    notes = [f"one seed in {', '.join(single)}, so that chance is not ruled out"] if single else []
    notes += [f"not finished: {', '.join(dict.fromkeys(unfinished))}"] if unfinished else []
    said = "; ".join((", ".join(clauses) or "nothing can be compared", *notes))
    return f"Of {len(runs)} runs, {said}."


def _joined(key: str, panels: Sequence[tuple[str, Panel]]) -> Panel:
    first = without_limits(panels[0][1])
    series = [
        Series(f"{name}: {line.label}", line.x, line.y, line.spread) for name, panel in panels for line in panel.series
    ]
    return dataclasses.replace(
        first,
        key=f"{KEY}-{key}",
        series=series,
        joined=all(panel.joined for _, panel in panels),
    )


def _numbers(scheme: SchemeSummary, run: RunSummary) -> tuple[str, ...]:
    accuracy = with_interval(scheme.tested, 1, 100.0) if run.classes is not None else ""
    error = with_interval(scheme.tested, 3) if run.classes is None else ""
    seeds = sum(state.rounds > 0 for state in scheme.states)
    spent = [with_interval(each, digits, 1e3) for each, digits in ((scheme.energy_j, 1), (scheme.energy_std_j, 2))]
    return (
        scheme.rounds + (", unfinished" if any(state.is_unfinished for state in scheme.states) else ""),
        str(seeds),
        accuracy,
        error,
        *spent,
        scheme.proved.brief(),
    )
