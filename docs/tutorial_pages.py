"""Run the tutorials and write every one as an HTML page that loads nothing from another host.

    python docs/tutorial_pages.py                                   # pages in build/tutorials
    python docs/tutorial_pages.py plan_a_fleet --out /some/folder   # one page, elsewhere
    python docs/tutorial_pages.py plan_a_fleet --printed tests/end_to_end/tutorials   # what it prints, for the tests

marimo runs a notebook and returns its cells with their outputs. marimo's own HTML pages load their program from a
public host, so this module writes pages of its own: prose, coloured code, printed text, and figures inside the page.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS = (
    "paper_in_ten_minutes",
    "plan_a_fleet",
    "your_sensor_data",
    "prove_a_claim",
    "does_cheating_pay",
    "your_own_plugin",
    "three_machines_with_flower",
    "a_sweep_on_a_cluster",
)
"""All tutorials, in the order in which a newcomer reads them."""
FOLDER = Path(__file__).parent / "tutorials"
LONGEST_S = 900.0
"""A notebook takes a minute on two quiet cores; a busy machine gets more time, and a notebook that hangs is ended."""
CAPTION = re.compile(r"^# Figure: (.+)$", re.MULTILINE)
STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fff; --shade: #f3f5f7; --line: #d5dae0; --link: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --paper: #15181b; --shade: #1f2428; --line: #3a4148; --link: #7fb8f0; }
}
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 46rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, sans-serif; }
a { color: var(--link); }
h1, h2 { line-height: 1.25; } h2 { margin-top: 2.2rem; }
pre { overflow-x: auto; padding: .7rem .9rem; border-radius: 6px; background: var(--shade); font-size: .85rem;
  line-height: 1.45; }
pre.printed { border: 1px solid var(--line); background: none; }
code { font-family: ui-monospace, monospace; } :not(pre) > code { background: var(--shade);
  padding: 0 .2em; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
figcaption { font-size: .9rem; }
table { border-collapse: collapse; } th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem .25rem 0; }
"""

Cell = dict[str, Any]


def executed(notebook: Path) -> list[Cell]:
    """The cells of a notebook, in the order of the file, after all of them were run in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="fairwave-") as folder:
        target = Path(folder) / "cells.ipynb"
        command = [
            sys.executable,
            "-m",
            "marimo",
            "export",
            "ipynb",
            str(notebook),
            "--include-outputs",
            "--no-sandbox",
        ]
        command += ["--sort", "top-down", "--output", str(target)]
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            stdin=subprocess.DEVNULL,
            check=False,
            env={**os.environ, "TMPDIR": folder},  # marimo ends a notebook before it has removed its own folders
        )
        cells = list(json.loads(target.read_text("utf-8"))["cells"]) if target.exists() else []
        if done.returncode != 0:
            raise RuntimeError(f"{notebook.name}: a cell failed\n{done.stdout}{done.stderr}{_errors(cells)}")
        return cells


def _errors(cells: list[Cell]) -> str:
    """What the cells that failed said."""
    outputs = [output for cell in cells for output in cell.get("outputs", ()) if output["output_type"] == "error"]
    return "\n".join(f"{output['ename']}: {output['evalue']}" for output in outputs)


def source_of(cell: Cell) -> str:
    """The code or the prose of a cell."""
    return "".join(cell["source"])


def printed(cells: list[Cell]) -> str:
    """Everything that the cells print."""
    streams = (output for cell in cells for output in cell.get("outputs", ()) if output["output_type"] == "stream")
    return "".join("".join(stream["text"]) for stream in streams if stream["name"] == "stdout")


def figures(cells: list[Cell]) -> list[tuple[str, str]]:
    """Caption and PNG (as base64) of every figure; a cell that draws has its caption in a comment."""
    found = []
    for cell in cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                caption = CAPTION.search(source_of(cell))
                if caption is None:
                    raise ValueError(f"a cell draws without a caption; add '# Figure: ...' to it:\n{source_of(cell)}")
                found.append((caption[1], "".join(output["data"]["image/png"]).replace("\n", "")))
    return found


def title_of(cells: list[Cell]) -> str:
    """The first heading."""
    for cell in cells:
        if cell["cell_type"] == "markdown" and (heading := re.search(r"^# (.+)$", source_of(cell), re.MULTILINE)):
            return heading[1]
    raise ValueError("a notebook has no heading; begin its prose with '# Title'")


def page(cells: list[Cell], name: str) -> str:
    """One notebook as a page that holds all it needs."""
    from pygments.formatters import HtmlFormatter

    light, dark = (HtmlFormatter(style=style).get_style_defs("pre.code") for style in ("friendly", "github-dark"))
    colours = f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
    title = html.escape(title_of(cells))
    parts = [part for cell in cells for part in _parts(cell)]
    where = f"docs/tutorials/{name}.py"
    foot = f"<p>This page is the notebook <code>{where}</code>. Open it with <code>marimo edit {where}</code>.</p>"
    return _document(title, f"<style>{colours}\n{STYLE}</style>", "\n".join([*parts, foot]))


def contents(titles: dict[str, str]) -> str:
    """The page that lists the tutorials."""
    rows = "\n".join(f'<li><a href="{name}.html">{html.escape(title)}</a></li>' for name, title in titles.items())
    return _document("Tutorials", f"<style>{STYLE}</style>", f"<h1>Tutorials</h1>\n<ol>\n{rows}\n</ol>")


def _document(title: str, head: str, body: str) -> str:
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{viewport}\n<title>{title}</title>\n'
        f'<link rel="icon" href="data:,">\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def _parts(cell: Cell) -> list[str]:
    """A cell's prose, or its code and its outputs."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    if cell["cell_type"] == "markdown":
        return [_prose(source_of(cell))]
    parts = []
    if not cell["metadata"].get("marimo", {}).get("config", {}).get("hide_code", False):
        code = highlight(source_of(cell), PythonLexer(), HtmlFormatter(nowrap=True))
        parts.append(f'<pre class="code"><code>{code}</code></pre>')
    if said := printed([cell]):
        parts.append(f'<pre class="printed">{html.escape(said)}</pre>')
    for output in cell["outputs"]:
        if "text/markdown" in output.get("data", {}):
            parts.append(_prose("".join(output["data"]["text/markdown"])))
    for caption, png in figures([cell]):
        words = html.escape(caption)
        image = f'<img alt="{words}" src="data:image/png;base64,{png}">'
        parts.append(f"<figure>{image}<figcaption>{words}</figcaption></figure>")
    return parts


def _prose(text: str) -> str:
    import markdown

    return markdown.markdown(text, extensions=["tables", "fenced_code"])


def main() -> None:
    """Run the notebooks that are named, or all, and write their pages or what they print."""
    parser = argparse.ArgumentParser(description="Run the tutorials and write them as HTML pages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NOTEBOOKS)} (default: all)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "tutorials", help="folder of the pages")
    parser.add_argument("--printed", type=Path, help="folder for what the notebooks print, instead of pages")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in NOTEBOOKS]
    if unknown:
        parser.error(f"{unknown[0]}: no such tutorial; choose from {', '.join(NOTEBOOKS)}")
    target: Path = given.printed or given.out
    target.mkdir(parents=True, exist_ok=True)
    titles = {}
    for name in given.names or NOTEBOOKS:
        cells = executed(FOLDER / f"{name}.py")
        titles[name] = title_of(cells)
        file = target / (f"{name}.txt" if given.printed else f"{name}.html")
        file.write_text(printed(cells) if given.printed else page(cells, name), "utf-8")
        print(f"wrote {file}")
    if not given.printed and not given.names:
        (target / "index.html").write_text(contents(titles), "utf-8")


if __name__ == "__main__":
    main()
