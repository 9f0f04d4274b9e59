"""Do the tests notice a fault? Random mutants of the code of three folders, each run against the tests.

    pip install cosmic-ray==8.7.0
    python benchmarks/mutants.py [FOLDER ...] [--each 40] [--seed 0] [--jobs 2] [--python .venv/bin/python] [--out FILE]

Places in the code are drawn at random, and at each place one change of those that Cosmic Ray knows (another operator,
another number, a negated condition, a decorator less, ...). Type annotations are left alone, since they are not run. A
mutant counts as killed if the tests of its folder fail, or those of properties and golden values. The table of all
mutants is written to a file as they are done; the score is printed with a 95 % interval (Wilson).
"""

from __future__ import annotations

import argparse
import ast
import collections
import csv
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).parents[1]
FOLDERS = ("wireless", "policy", "privacy")
TESTS = (("tests/unit/{folder}",), ("tests/properties", "tests/golden"))
"""One after the other, until a mutant is killed."""
LONGEST_S = 300
NEED_ARGUMENTS = {"core/VariableReplacer", "core/VariableInserter"}
FAIL_AT_ONCE = re.compile("(Add|Sub|Mul|Div|FloorDiv|Mod|Pow)_(RShift|LShift|BitOr|BitAnd|BitXor)|_Is(Not)?$|_Invert$")
"""Operators that numbers do not have, or that any test notices: they would only raise the score."""
COLUMNS = ("folder", "file", "line", "operator", "change", "outcome")


class Mutant(NamedTuple):
    """One change of one file."""

    folder: str
    path: Path
    line: int
    operator: str
    occurrence: int


def mutants_of(folder: str) -> dict[tuple[Path, object], list[Mutant]]:
    """All that could be changed in a folder, by place."""
    places: dict[tuple[Path, object], list[Mutant]] = collections.defaultdict(list)
    for path in sorted((ROOT / "src" / "fairwave" / folder).glob("*.py")):
        code = path.read_text()
        hidden, tree = set(_annotated(code)), get_ast(code)
        for name in sorted(set(cosmic_ray.plugins.operator_names()) - NEED_ARGUMENTS):
            if FAIL_AT_ONCE.search(name):
                continue
            operator = cosmic_ray.plugins.get_operator(name)()
            found = (place for node in ast_nodes(tree) for place in operator.mutation_positions(node))
            for occurrence, (start, end) in enumerate(found):
                if not any(first <= start and end <= last for first, last in hidden):
                    places[path, (start, end)].append(Mutant(folder, path, start[0], name, occurrence))
    return places


def _annotated(code: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """From where to where annotations go."""
    for node in ast.walk(ast.parse(code)):
        for field in ("annotation", "returns"):
            note = getattr(node, field, None)
            if note is not None:
                yield (note.lineno, note.col_offset), (note.end_lineno, note.end_col_offset)


def drawn(folder: str, count: int, seed: int) -> list[Mutant]:
    """So many places of a folder, and one change of each."""
    draw = random.Random(f"{seed} {folder}")
    places = list(mutants_of(folder).values())
    return [draw.choice(each) for each in draw.sample(places, min(count, len(places)))]


def outcome(mutant: Mutant, python: Path, source: Path) -> tuple[str, str]:
    """The change, and 'killed' or 'survived'; `source` is a copy of the code that the mutant may change."""
    code = mutant.path.read_text()
    changed = mutate_code(code, cosmic_ray.plugins.get_operator(mutant.operator)(), mutant.occurrence)
    target = source / mutant.path.relative_to(ROOT / "src")
    lines = difflib.unified_diff(code.splitlines(), changed.splitlines(), n=0, lineterm="")
    change = " ".join(line.strip() for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---"))
    surroundings = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        target.write_text(changed)
        for tests in TESTS:
            which = [each.format(folder=mutant.folder) for each in tests]
            command = [str(python), "-m", "pytest", "-qx", "-m", "not slow", "-p", "no:cacheprovider", *which]
            try:
                done = subprocess.run(
                    command, cwd=ROOT, env=surroundings, capture_output=True, timeout=LONGEST_S, check=False
                )
            except subprocess.TimeoutExpired:
                return change, "killed"
            if done.returncode:
                return change, "killed"
        return change, "survived"
    finally:
        target.write_text(code)


def wilson(hits: int, count: int) -> tuple[float, float]:
    """95 % interval of a share."""
    z, share = 1.96, hits / count
    middle, half = share + z**2 / (2 * count), z * (share * (1 - share) / count + z**2 / (4 * count**2)) ** 0.5
    return (middle - half) / (1 + z**2 / count), (middle + half) / (1 + z**2 / count)


def main() -> None:
    """Run mutants, and print the score of each folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--each", type=int, default=40, help="mutants of each folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="has fairwave and its tests' needs")
    parser.add_argument("--out", type=Path, default=Path("runs/mutants.csv"))
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    mutants = [each for folder in given.folders for each in drawn(folder, given.each, given.seed)]
    own, counts = threading.local(), collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as scratch, given.out.open("w", newline="") as stream:
        table, turn = csv.writer(stream), threading.Lock()
        table.writerow(COLUMNS)

        def run(mutant: Mutant) -> None:
            if not hasattr(own, "source"):
                own.source = Path(tempfile.mkdtemp(dir=scratch)) / "src"
                shutil.copytree(ROOT / "src", own.source)
            change, result = outcome(mutant, given.python, own.source)
            with turn:
                counts[mutant.folder][result] += 1
                where = mutant.path.relative_to(ROOT)
                table.writerow([mutant.folder, where, mutant.line, mutant.operator, change, result])
                stream.flush()

        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(run, mutants))
    print("| folder | mutants | killed | score (95 % interval) |\n| --- | ---: | ---: | ---: |")
    for folder, found in counts.items():
        killed, count = found["killed"], found.total()
        low, high = wilson(killed, count)
        print(f"| `{folder}` | {count} | {killed} | {killed / count:.0%} ({low:.0%} to {high:.0%}) |")


if __name__ == "__main__":
    main()
