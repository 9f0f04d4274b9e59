"""Write the tables and the figures of docs/contribution.md from the rows of a study.

    python docs/contribution.py [ROWS.csv | --check]

`fairwave study contribution` measures, and writes contribution.csv into its folder. The rows are kept in
docs/contribution.csv; `--check` writes nothing, and fails if the tables are not what they say.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from fairwave.report.agreement_rows import agreement_sheet, in_order, read_agreements
from fairwave.report.contribution_page import draw_agreements
from fairwave.report.tables import sheet_markdown

DOCS = Path(__file__).parent
PAGE, ROWS, FIGURES = DOCS / "contribution.md", DOCS / "contribution.csv", DOCS / "figures"
PLACE = re.compile(r"(<!-- contribution: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """The page with the table of each scenario that it has a place for."""
    rows = read_agreements(ROWS)
    return PLACE.sub(lambda found: found[1] + sheet_markdown(agreement_sheet(rows, found[2])) + found[3], text)


def draw() -> None:
    """The heat map of every scenario, as SVG."""
    rows = read_agreements(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        for scenario in in_order(rows, "scenario"):
            for path in draw_agreements(rows, scenario, Path(folder)):
                if path.suffix == ".svg":
                    shutil.copyfile(path, FIGURES / path.name)


def main() -> None:
    """Write, or check."""
    words = sys.argv[1:]
    if words and words != ["--check"]:
        shutil.copyfile(words[0], ROWS)
    old = PAGE.read_text("utf-8")
    new = filled(old)
    if words == ["--check"]:
        sys.exit(0 if new == old else f"{PAGE.name}: not what {ROWS.name} says; run 'python docs/contribution.py'")
    PAGE.write_text(new, "utf-8")
    draw()


if __name__ == "__main__":
    main()
