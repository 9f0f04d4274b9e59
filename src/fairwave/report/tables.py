"""Tables in HTML, with every value escaped, and in Markdown."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A table with a title and what a reader has to know about it."""

    key: str
    title: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; without any heading, none is drawn."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads) if any(heads) else ""
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def sheet_html(sheet: Sheet) -> str:
    """A table under its title; one that is wider than the page can be scrolled."""
    return (
        f'<h3>{html.escape(sheet.title)}</h3><p class="caption">{html.escape(sheet.caption)}</p>'
        f'<div class="sheet">{table(sheet.heads, sheet.rows)}</div>'
    )


def sheet_markdown(sheet: Sheet) -> str:
    """The table alone, as Markdown."""
    lines = [sheet.heads, ["---"] * len(sheet.heads), *sheet.rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cell(value: object) -> str:
    text = html.escape(str(value))
    return (
        f'<td class="number">{text}</td>' if text[:1].isdigit() or text[:2].strip("-").isdigit() else f"<td>{text}</td>"
    )
