"""Tables and the data of figures as files: CSV for other tools, LaTeX (booktabs) for papers."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairwave.errors import OutputError
from fairwave.report.figure_data import Panel
from fairwave.report.tables import Sheet, numeric_columns

FOLDER = "tables"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def write_sheets(sheets: Iterable[Sheet], folder: Path) -> list[Path]:
    """Every table as `KEY.csv` and `KEY.tex`; the files."""
    written = []
    for sheet in sheets:
        written += [folder / f"{sheet.key}.csv", folder / f"{sheet.key}.tex"]
        _write_rows(written[-2], [sheet.heads, *sheet.rows])
        _write(written[-1], sheet_latex(sheet))
    return written


def write_figure_data(panels: Iterable[Panel], folder: Path) -> list[Path]:
    """The points of every figure as `KEY.csv`, with the ends of bands and bars; the files."""
    written = []
    for panel in panels:
        heads = ("line", panel.x_label, panel.y_label, "low", "high")
        rows: list[Sequence[object]] = [heads]
        for line in panel.series:
            ends = line.ends()
            lows, highs = (line.y * float("nan"),) * 2 if ends is None else ends
            points = zip(line.x.tolist(), line.y.tolist(), lows.tolist(), highs.tolist(), strict=True)
            rows += [(line.label, *(_plain(value) for value in point)) for point in points]
        written.append(folder / f"{panel.key}.csv")
        _write_rows(written[-1], rows)
    return written


def sheet_latex(sheet: Sheet) -> str:
    """The table for a paper; the preamble needs the package booktabs."""
    numeric = numeric_columns(sheet.heads, sheet.rows)
    columns = "".join("r" if number else "l" for number in numeric)
    body = "".join(f"    {_latex_row(row)}\n" for row in sheet.rows)
    return (
        "\\begin{table}\n  \\centering\n"
        f"  \\caption{{{_escaped(f'{sheet.title}. {sheet.caption}'.strip())}}}\n"
        f"  \\begin{{tabular}}{{{columns}}}\n    \\toprule\n    {_latex_row(sheet.heads)}\n    \\midrule\n"
        f"{body}    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n"
    )


def _latex_row(cells: Sequence[object]) -> str:
    return " & ".join(_escaped(str(cell)) for cell in cells) + r" \\"


def _escaped(text: str) -> str:
    return re.sub(r"[\\~^±&%$#_{}]", lambda match: _SPECIAL[match[0]], text)


def _plain(value: object) -> object:
    """A value as CSV has it: nothing where there is none."""
    return "" if isinstance(value, float) and math.isnan(value) else value


def _write_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)
    except OSError as error:
        raise _unwritable(path, error) from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path}: cannot be written ({error.strerror}); choose a writable folder")
