"""Tables in HTML, with every value escaped, and in Markdown."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"[-+]?(\d|infinite$|no value$|none proved$)")


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A table with a title and what a reader has to know about it."""

    key: str
    title: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


Piece = str | Sheet
"""A part of a page: HTML as it is, or a table that is also written as files."""


def numeric_columns(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[bool]:
    """For each column whether it holds numbers, which are aligned on the right."""
    found = []
    for column in range(len(heads)):
        cells = [text for row in rows if column < len(row) and (text := str(row[column]))]
        found.append(bool(cells) and all(_NUMBER.match(text) for text in cells))
    return found


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in a box of its own, which scrolls where it is wider than the page; without any heading, none is drawn.

    The first cell of a row is its head.
    """
    rows = list(rows)
    numeric = numeric_columns(heads, rows)
    head = "".join(_cell(name, number, 'th scope="col"') for name, number in zip(heads, numeric, strict=True))
    body = "".join("<tr>" + "".join(_row(row, numeric)) + "</tr>" for row in rows)
    opening = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    return f'<div class="sheet" tabindex="0"><table>{opening}<tbody>{body}</tbody></table></div>'


def sheet_html(sheet: Sheet, files: str = "") -> str:
    """A table under its title, with links to its files where `files` names their folder."""
    links = " ".join(
        f'<a href="{html.escape(files)}/{html.escape(sheet.key)}.{ending}" download>{name}</a>'
        for ending, name in ((("csv", "CSV"), ("tex", "LaTeX")) if files else ())
    )
    return (
        f'<h3>{html.escape(sheet.title)}</h3><p class="caption">{html.escape(sheet.caption)}</p>'
        f"{table(sheet.heads, sheet.rows)}" + (f'<p class="files">{links}</p>' if links else "")
    )


def pieces_html(pieces: Iterable[Piece], files: str = "") -> str:
    """Parts of a page one after the other."""
    return "".join(piece if isinstance(piece, str) else sheet_html(piece, files) for piece in pieces)


def sheet_markdown(sheet: Sheet) -> str:
    """The table alone, as Markdown."""
    lines = [sheet.heads, ["---"] * len(sheet.heads), *sheet.rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _row(row: Sequence[object], numeric: Sequence[bool]) -> Iterable[str]:
    for place, (value, number) in enumerate(zip(row, numeric, strict=False)):
        yield _cell(value, number, "td" if place else 'th scope="row"')


def _cell(value: object, number: bool, element: str) -> str:
    kind = ' class="number"' if number else ""
    return f"<{element}{kind}>{html.escape(str(value))}</{element.split(maxsplit=1)[0]}>"
