"""Write the tables of docs/search.md from the members of a search.

    python docs/search.py [runs/search/search.csv | --check]

With the file of a whole search, the rows that the tables show are first taken into docs/search.csv; the tables are
written from there. `--check` writes nothing, and fails if a table is not what docs/search.csv says. A table stands
between `<!-- search: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from fairwave.errors import FairwaveError
from fairwave.metrics.paper_distance import Member
from fairwave.report.search_file import read_search
from fairwave.report.search_sheets import search_sheets
from fairwave.report.search_words import UNKNOWNS, answer, best_of_each_training, best_with
from fairwave.report.tables import sheet_markdown
from fairwave.scenario.loading import load_scenario
from fairwave.studies.search_members import family_size

DOCS = Path(__file__).parent
PAGE, ROWS = DOCS / "search.md", DOCS / "search.csv"
PLACE = re.compile(r"(<!-- search: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
MOST_ROWS = 24
"""Of the longest table, the nearest trainings are enough."""


def shown(ranking: Sequence[Member]) -> list[int]:
    """Places of the members that the tables need: the best with every value of every unknown, and all that fit."""
    needed = [*best_of_each_training(ranking), *(member for member in ranking if member.fits)]
    needed += [member for unknown in UNKNOWNS for member in best_with(ranking, unknown).values()]
    kept = set(map(id, needed))
    return [place for place, member in enumerate(ranking) if id(member) in kept]


def excerpt(path: Path, total: int) -> str:
    """The rows of a whole search that the tables need."""
    ranking = read_search(path)
    if len(ranking) != total:
        sys.exit(f"{path}: has {len(ranking)} members of {total}; run 'fairwave reproduce --search' in full")
    head, *rows = path.read_text("utf-8").splitlines(keepends=True)
    return head + "".join(rows[place] for place in shown(ranking))


def table(name: str, ranking: Sequence[Member], total: int) -> str:
    """What stands in one place of the page."""
    if name == "answer":
        return answer(ranking, total) + "\n"
    sheet = search_sheets(ranking)[name]
    return sheet_markdown(dataclasses.replace(sheet, rows=sheet.rows[:MOST_ROWS]))


def written(page: str, rows: Path, total: int) -> str:
    """The page with its tables as the rows have them; without rows, they are empty."""
    ranking = read_search(rows) if rows.exists() else None

    def block(found: re.Match[str]) -> str:
        return found[1] + ("" if ranking is None else table(found[2], ranking, total)) + found[3]

    return PLACE.sub(block, page)


def main(arguments: Sequence[str]) -> None:
    """Write, or check."""
    total = family_size(load_scenario("paper").run.num_rounds)
    page = PAGE.read_text("utf-8")
    try:
        if list(arguments) == ["--check"]:
            if written(page, ROWS, total) != page:
                sys.exit(f"{PAGE.name}: a table is not what {ROWS.name} says; run: python docs/search.py")
            return
        for path in arguments:
            ROWS.write_text(excerpt(Path(path), total), "utf-8")
        PAGE.write_text(written(page, ROWS, total), "utf-8")
    except FairwaveError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
