"""Write the table of docs/external.md from measured rows.

    python docs/external.py [--check]

`benchmarks/external.py --csv docs/external.csv` measures. `--check` writes nothing, and fails if the table is not what
the rows say.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parent
PAGE, ROWS = DOCS / "external.md", DOCS / "external.csv"
PLACE = re.compile(r"(<!-- external -->\n).*?(<!-- end -->)", re.DOTALL)
HEADS = (
    "row",
    "published by",
    "theirs (%)",
    "ours (%)",
    "difference",
    "epsilon, theirs",
    "epsilon, ours",
    "steps",
    "seeds",
)


def table() -> str:
    """One line per published figure; the spread is the standard deviation over runs."""
    seen: dict[str, list[dict[str, str]]] = defaultdict(list)
    with ROWS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            seen[row["row"]].append(row)
    lines = [f"| {' | '.join(HEADS)} |", "| --- | --- |" + " ---: |" * (len(HEADS) - 2)]
    for name, entries in seen.items():
        first, values = entries[0], np.array([float(entry["accuracy"]) for entry in entries])
        theirs = first["published"] + (f" ± {first['spread']}" if first["spread"] else "")
        ours = f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if values.size > 1 else "")
        difference = f"{values.mean() - float(first['published']):+.2f}"
        cells = (f"`{name}`", first["source"], theirs, ours, difference, first["epsilon"], first["proved"])
        lines.append(f"| {' | '.join(cells)} | {int(first['steps']):,} | {values.size} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write, or check."""
    old = PAGE.read_text("utf-8")
    new = PLACE.sub(lambda found: found[1] + table() + found[2], old)
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if new == old else f"{PAGE.name}: not what {ROWS.name} says; run 'python docs/external.py'")
    PAGE.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
