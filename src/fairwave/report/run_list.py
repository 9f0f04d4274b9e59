"""Stored runs as lines for a terminal: what each scheme reached, at what cost, and what is proved."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairwave.report.run_summary import RunSummary, SchemeSummary
from fairwave.report.style import percent_text

_COLUMNS = (("  scheme", 18), ("rounds", 17), ("accuracy", 9), ("energy (mJ)", 11), ("spread (mJ)", 11), ("epsilon", 8))
"""Heads and widths; with a space between columns, a line fits 80."""
LEGEND = (
    "Means over seeds; energy per device and round, spread is its std across devices;\n"
    "* marks schemes with rounds missing; epsilon is what is proved."
)


def list_heads() -> str:
    """The line above all runs."""
    return _line([head for head, _ in _COLUMNS])


def scheme_lines(run: RunSummary) -> list[str]:
    """A line for every scheme of a run."""
    return [_line(_cells(run, scheme)) for scheme in run.schemes]


def _cells(run: RunSummary, scheme: SchemeSummary) -> list[str]:
    missing = any(state.is_short for state in scheme.states)
    name = f"  {scheme.scheme}"
    tested = "-" if math.isnan(scheme.tested.mean) else percent_text(scheme.tested.mean)
    if run.classes is None and tested != "-":
        tested = f"RMSE {scheme.tested.mean:.3g}"
    spent = ((scheme.energy_j.mean, 1), (scheme.energy_std_j.mean, 2))
    energies = ["-" if math.isnan(each) else f"{1e3 * each:.{digits}f}" for each, digits in spent]
    proved = "none" if scheme.proved.epsilon is None else scheme.proved.brief()
    return [name, f"{scheme.rounds}{' *' if missing else ''}", tested, *energies, proved]


def _line(cells: Sequence[str]) -> str:
    first, second, *others = cells
    widths = [width for _, width in _COLUMNS]
    aligned = (cell.rjust(width) for cell, width in zip(others, widths[2:], strict=True))
    return " ".join((first.ljust(widths[0]), second.ljust(widths[1]), *aligned)).rstrip()
