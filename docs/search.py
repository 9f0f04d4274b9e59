"""Write the tables of docs/search.md from the members of a search.

    python docs/search.py [runs/search/search.csv | --check]

With the file of a whole search, the rows that the tables show are first taken into docs/search.csv; the tables are
written from there. `--check` writes nothing, and fails if a table is not what docs/search.csv says. A table stands
between `<!-- search: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from fairwave.errors import FairwaveError
from fairwave.metrics.paper_distance import Member
from fairwave.report.search_file import read_search
from fairwave.report.search_words import (
    TRAINING,
    UNKNOWNS,
    answer,
    averaging_in_words,
    best_member,
    best_of_each_training,
    best_with,
    misses_in_words,
    ours_in_words,
    paper_in_words,
    published_in_words,
    value_in_words,
)
from fairwave.scenario.loading import load_scenario
from fairwave.studies.search_members import family_size

DOCS = Path(__file__).parent
PAGE, ROWS = DOCS / "search.md", DOCS / "search.csv"
PLACE = re.compile(r"(<!-- search: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
MOST_ROWS = 12


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
    heads, rows = {"best": _best, "terms": _terms, "unknowns": _unknowns}[name](ranking)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads), *rows))


def _best(ranking: Sequence[Member]) -> tuple[list[str], list[list[str]]]:
    heads = ["Distance", *(UNKNOWNS[name].title.capitalize() for name in TRAINING), "Averages", "Misses (term)"]
    rows = [
        [
            f"{member.distance:.2f}",
            *(f"`{member.readings[name]}`" for name in TRAINING),
            averaging_in_words(member),
            misses_in_words(member),
        ]
        for member in best_of_each_training(ranking)[:MOST_ROWS]
    ]
    return heads, rows


def _terms(ranking: Sequence[Member]) -> tuple[list[str], list[list[str]]]:
    best = best_member(ranking)
    rows = [
        [published_in_words(name), paper_in_words(name), ours_in_words(name, best), f"{size:.2f}"]
        for name, size in best.terms.items()
    ]
    return ["Published", "Paper", "Best member", "Term"], rows


def _unknowns(ranking: Sequence[Member]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [UNKNOWNS[unknown].title, value_in_words(unknown, value), f"{best.distance:.2f}", misses_in_words(best)]
        for unknown in UNKNOWNS
        for value, best in best_with(ranking, unknown).items()
    ]
    return ["Unknown", "Read as", "Least distance", "Which misses (term)"], rows


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
