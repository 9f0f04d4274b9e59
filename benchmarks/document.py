"""Write the tables of docs/benchmarks.md from the files in docs/benchmarks.

    python benchmarks/document.py [--check]

A table stands between `<!-- NAME -->` and `<!-- end -->`; NAME is that of its file. `--check` writes nothing, and fails
if a table is not what its file says.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "benchmarks.md"
BLOCK = re.compile(r"<!-- (?P<name>[\w-]+) -->\n.*?<!-- end -->", re.DOTALL)
GIB = 2**30


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As Markdown, numbers to the right."""
    ruler = ["---"] + ["---:"] * (len(heads) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ruler, *rows))


def comparison(told: dict[str, Any]) -> str:
    """Candidates of a job beside each other."""
    shown = [row for row in told["candidates"] if row["seconds_per_round"] is not None]
    small = min(row["seconds_per_round"]["median"] for row in shown) < 0.1
    unit, scale = ("ms", 1e3) if small else ("s", 1.0)
    rows = []
    for row in shown:
        took, ratio, share = row["seconds_per_round"], row["ratio"], row["share_of_limit"]
        rows.append(
            (
                row["label"],
                f"{scale * took['median']:.3g}",
                f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})",
                "" if share is None else f"{share['median']:.0%}",
                "" if row.get("ready") is None else f"{row['ready']:.1f}",
                "" if row.get("peak_mb") is None else f"{row['peak_mb']:,.0f}",
                "" if row.get("accuracy") is None else f"{row['accuracy']:.3f}",
            )
        )
    heads = ("", f"{unit} per round", "ratio (range)", "of the limit", "start-up (s)", "memory (MB)", "accuracy")
    if all(row.get("ready") is None for row in shown):  # whole experiments, start-up included
        heads = (heads[0], unit, *heads[2:])
    empty = {place for place in range(1, len(heads)) if not any(row[place] for row in rows)}
    keep = [place for place in range(len(heads)) if place not in empty]
    return table([heads[place] for place in keep], [[row[place] for place in keep] for row in rows])


def scale(told: dict[str, Any]) -> str:
    """Time and memory by number of devices."""
    rows = [
        (
            f"{each['devices']:,}",
            *(f"{1e3 * statistics.median(each[name]):,.1f}" for name in ("training", "round", "with_exchange")),
            f"{each['peak_bytes'] / GIB:.2f}",
        )
        for each in told["sizes"]
    ]
    heads = ("devices", "training alone (ms)", "whole round (ms)", "with gradient exchange (ms)", "peak memory (GiB)")
    return table(heads, rows)


def written(page: str) -> str:
    """The page with its tables as the files have them."""

    def block(found: re.Match[str]) -> str:
        told = json.loads((DOCS / "benchmarks" / f"{found['name']}.json").read_text())
        content = comparison(told) if "candidates" in told else scale(told)
        return f"<!-- {found['name']} -->\n{content}\n<!-- end -->"

    return BLOCK.sub(block, page)


def main() -> None:
    """Write, or check."""
    page = PAGE.read_text()
    if sys.argv[1:] == ["--check"]:
        if written(page) != page:
            sys.exit(f"{PAGE}: a table is not what its file says; run python benchmarks/document.py")
        return
    PAGE.write_text(written(page))


if __name__ == "__main__":
    main()
