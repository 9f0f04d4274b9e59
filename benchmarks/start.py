"""Seconds until something is there: the first round of a run and a plan, from a cold process and from a warm one.

    python benchmarks/start.py [--repeat 3] [--against FOLDER]

Cold means that no compiled program is kept; warm, that the same command has run before. `--against` names the root of
another checkout, whose commands take turns with this one's, so that their ratio stands on a busy machine as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
COMMANDS = {
    "first round of `run paper`": ("run", "paper", "--schemes", "proposed", "--rounds", "1", "--out", "{out}/run"),
    "first round of `run fair`": ("run", "fair", "--schemes", "proposed", "--rounds", "1", "--out", "{out}/run"),
    "`plan paper`": ("plan", "paper", "--out", "{out}/plan.csv"),
}


def seconds(checkout: Path, command: tuple[str, ...], cache: str) -> float:
    """How long a command of a checkout takes, with the programs that are kept in `cache`."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    surroundings |= {"PYTHONPATH": str(checkout / "src"), "XDG_CACHE_HOME": cache}
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        words = [word.format(out=out) for word in command]
        subprocess.run([sys.executable, "-m", "fairwave", *words], env=surroundings, check=True, capture_output=True)
        return time.perf_counter() - began


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--against", type=Path, help="root of another checkout")
    given = parser.parse_args()
    checkouts = [HERE] if given.against is None else [given.against, HERE]
    print("| | checkout | cold (s) | warm (s) |")
    print("| --- | --- | ---: | ---: |")
    for name, command in COMMANDS.items():
        measured: dict[Path, list[tuple[float, float]]] = {checkout: [] for checkout in checkouts}
        for _ in range(given.repeat):
            for checkout in checkouts:
                with tempfile.TemporaryDirectory() as cache:
                    measured[checkout].append((seconds(checkout, command, cache), seconds(checkout, command, cache)))
        for checkout, pairs in measured.items():
            cold, warm = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"| {name} | {'this' if checkout == HERE else 'other'} | {cold:.1f} | {warm:.1f} |", flush=True)


if __name__ == "__main__":
    main()
