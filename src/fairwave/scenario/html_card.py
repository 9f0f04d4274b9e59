"""What a notebook shows of an object: a line, a table, and the rest behind a click."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_card(title: str, heads: Sequence[str] = (), rows: Sequence[Sequence[str]] = (), more: str = "") -> str:
    """A title, a table whose first column has names, and text that is shown when it is asked for."""
    parts = [f"<div><strong>{escape(title)}</strong>"]
    if rows:
        first, *others = heads
        parts += ["<table><thead><tr>", _cell("th", first, "left", "col")]
        parts += [*(_cell("th", head, "right", "col") for head in others), "</tr></thead><tbody>"]
        for name, *values in rows:
            parts += ["<tr>", _cell("th", name, "left", "row")]
            parts += [*(_cell("td", value, "right") for value in values), "</tr>"]
        parts.append("</tbody></table>")
    if more:
        parts.append(f"<details><summary>all parameters</summary><pre>{escape(more)}</pre></details>")
    return "".join([*parts, "</div>"])


def _cell(tag: str, text: str, side: str, scope: str = "") -> str:
    scoped = f' scope="{scope}"' if scope else ""
    return f'<{tag}{scoped} style="text-align:{side};padding:2px 8px">{escape(text)}</{tag}>'
