"""HTML tables, with every value escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; without any heading, none is drawn."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads) if any(heads) else ""
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    text = html.escape(str(value))
    return (
        f'<td class="number">{text}</td>' if text[:1].isdigit() or text[:2].strip("-").isdigit() else f"<td>{text}</td>"
    )
