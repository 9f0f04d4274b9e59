"""Tables as plain text, for a terminal of 80 columns and for files that such text is piped into."""

from __future__ import annotations

from collections.abc import Sequence

from fairwave.report.tables import numeric_columns

WIDTH = 80
CUT = "…"


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], cut: Sequence[int] = ()) -> list[str]:
    """Lines with aligned columns, numbers on the right; columns named in `cut` give way where a line is too long.

    A value that is cut ends with `CUT`.
    """
    table = [list(map(str, row)) for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH and cut:
        widest = max(cut, key=widths.__getitem__)
        if widths[widest] <= len(heads[widest]) or widths[widest] <= 8:
            break
        widths[widest] -= 1
    numeric = numeric_columns(heads, rows)
    return [
        "  ".join(
            _fitted(cell, width).rjust(width) if number else _fitted(cell, width).ljust(width)
            for cell, width, number in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in table
    ]


def _fitted(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + CUT
