"""What a notebook shows of an object: a line, a table, and the rest behind a click."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_card(title: str, heads: Sequence[str] = (), rows: Sequence[Sequence[str]] = (), more: str = "") -> str:
    """A title, a table whose first column has names, and text that is shown when it is asked for."""
    parts = [f"<div><strong>{escape(title)}</strong>"]
    if rows:
        parts += ["<table><thead><tr>", *(f'<th scope="col">{escape(head)}</th>' for head in heads), "</tr></thead>"]
        parts.append("<tbody>")
        for name, *values in rows:
            cells = "".join(f'<td style="text-align:right">{escape(value)}</td>' for value in values)
            parts.append(f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>{cells}</tr>')
        parts.append("</tbody></table>")
    if more:
        parts.append(f"<details><summary>all parameters</summary><pre>{escape(more)}</pre></details>")
    return "".join([*parts, "</div>"])
