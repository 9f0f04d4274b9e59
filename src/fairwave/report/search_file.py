"""All members of a search as a CSV file, the nearest first; read again for the documentation."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairwave.errors import ArgumentError, OutputError
from fairwave.metrics.paper_distance import FIGURES, PUBLISHED, Member, Values
from fairwave.report.search_words import UNKNOWNS

FILE = "search.csv"
TERM, HOLDS = "term: ", "holds: "
"""Open the names of columns."""
ENDS = ("_low", "_high")
"""End the names of columns with what a figure's curves reach, in SI units."""


def write_search(ranking: Sequence[Member], path: Path) -> None:
    """A row for each member: rank, distance, what it misses, readings, terms, measured values and statements."""
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            for rank, member in enumerate(ranking, start=1):
                row = _row(rank, member)
                if rank == 1:
                    writer.writerow(row)
                writer.writerow(row.values())
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose a writable folder") from None


def read_search(path: Path) -> list[Member]:
    """The members of a file, in its order. Distances follow from the measured values, and are computed anew."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            found = [_member(row) for row in csv.DictReader(stream)]
    except OSError as error:
        raise ArgumentError(
            f"{path}: cannot be read ({error.strerror}); 'fairwave reproduce --search' writes it"
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{path}: is no file of a search ({error}); 'fairwave reproduce --search' writes one"
        ) from None
    if not found:
        raise ArgumentError(f"{path}: has no members; 'fairwave reproduce --search' writes all of them")
    return found


def _row(rank: int, member: Member) -> dict[str, object]:
    misses = {"misses": len(member.misses), "fits": int(member.fits)}
    measured = {
        column: value for name, ours in member.ours.items() for column, value in zip(_columns(name), ours, strict=True)
    }
    return {
        "rank": rank,
        "distance": member.distance,
        **misses,
        **member.readings,
        **{TERM + name: size for name, size in member.terms.items()},
        **measured,
        **{HOLDS + name: int(holds) for name, holds in member.statements.items()},
    }


def _member(row: Mapping[str, str]) -> Member:
    ours: dict[str, Values] = {name: tuple(float(row[column]) for column in _columns(name)) for name in PUBLISHED}
    statements = {
        name.removeprefix(HOLDS): bool(int(value)) for name, value in row.items() if name and name.startswith(HOLDS)
    }
    return Member({name: row[name] for name in UNKNOWNS}, ours, statements)


def _columns(name: str) -> tuple[str, ...]:
    """Columns of the measured values: one for a number, two for a figure."""
    return tuple(name + end for end in ENDS) if name in FIGURES else (name,)
