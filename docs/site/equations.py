"""The equations of the paper, each with its mathematics beside the function that computes it.

The LaTeX is in equations.toml, in our own notation. It becomes MathML here, which browsers show without any script.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

from docs.site.contents import DOCS, ROOT
from latex2mathml.converter import convert

PACKAGE = ROOT / "src" / "fairwave"
LATEX = Path(__file__).with_name("equations.toml")
ROW = re.compile(r"^\| (\d+) \| ([^|]*?) \| `([\w.]+)` \| ?([^|]*?) ?\|$", re.MULTILINE)


@functools.cache
def latex() -> dict[int, str]:
    """The formula of every equation that a function computes."""
    return {int(number): text for number, text in tomllib.loads(LATEX.read_text("utf-8"))["equations"].items()}


def rows() -> list[tuple[int, str, str, str]]:
    """Number, name, function and use of every equation, as docs/equations.md lists them."""
    found = ROW.findall((DOCS / "equations.md").read_text("utf-8"))
    return [(int(number), name, function, use) for number, name, function, use in found]


def page() -> str:
    """The page of the reference."""
    symbols = tomllib.loads(LATEX.read_text("utf-8"))["symbols"]
    lines = [
        "# Equations with their code",
        "",
        "Each equation of the paper that fairwave computes is one function. This page shows the mathematics and the",
        "code of each. It is generated from the docstrings of the source and from the table in",
        "[How the paper is read](../equations.md), which also says where the code departs from the paper's wording.",
        "",
        "## Symbols",
        "",
        "The table explains the symbols of the equations below. The index of the device is left out where every symbol",
        "belongs to one device.",
        "",
        "| Symbol | Meaning |",
        "| --- | --- |",
        *(f"| {convert(entry['latex'])} | {entry['meaning']} |" for entry in symbols),
    ]
    for number, name, function, use in rows():
        lines += ["", f"## Eq. ({number}): {name}", "", math_block(latex()[number]), ""]
        lines += [
            f"`fairwave.{function}` computes it."
            if use == ""
            else f"`fairwave.{function}` computes it for tests alone."
        ]
        lines += ["", "```python", source(function), "```"]
    return "\n".join(lines) + "\n"


def math_block(text: str) -> str:
    """A displayed formula. Its LaTeX stays on the page as a title, so that it can be copied."""
    title = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'<div class="equation" title="{title}">{convert(text, display="block")}</div>'


def source(function: str) -> str:
    """The source of a function that is named as `folder.module.function`."""
    module, _, name = function.rpartition(".")
    text = (PACKAGE / f"{module.replace('.', '/')}.py").read_text("utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_source_segment(text, node) or ""
    raise KeyError(f"docs/equations.md: there is no function '{function}'; correct the table")
