"""How often `fairwave audit` flags planted faults, and correct code: writes benchmarks' table for docs/audit.md.

Every mutant is audited under `--runs` seeds, correct code under `--clean` seeds. Finished runs are kept in the results
file and not repeated, so that a run that was stopped goes on where it was. Example, on a machine with 16 cores:

    python benchmarks/audit_mutants.py --jobs 14 --runs 20 --clean 100
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "benchmarks" / "audit_mutants.json"
PAGE = ROOT / "docs" / "audit.md"
BEGIN, END = "<!-- table of mutants: written by benchmarks/audit_mutants.py -->", "<!-- end of the table -->"
CLEAN = {"correct code": (), "correct code, mode 'device'": ("privacy.mode=device",)}
CHUNK = 5
"""Seeds that a process audits between two writes: compiling is paid once per chunk."""


def audited(job: tuple[str, list[int]]) -> tuple[str, dict[str, list[str]], float]:
    """Name of what was audited, the flagged tests of every seed, and the seconds that it took."""
    from fairwave.audit.audit import audit
    from fairwave.scenario.loading import load_scenario
    from tests.audit.mutants import MUTANTS, planted

    name, seeds = job
    start = time.perf_counter()
    overrides = CLEAN[name] if name in CLEAN else MUTANTS[name].overrides
    scenario = load_scenario("fair", list(overrides))

    def flags() -> dict[str, list[str]]:
        found = {}
        for seed in seeds:
            try:
                # Correct code is audited to the end, a fault to the first part of the audit that flags it.
                verdicts = (verdict for verdict in audit(scenario, seed) if verdict.flagged)
                flagged = next(verdicts, None)
                found[str(seed)] = [] if flagged is None else [f.test for f in flagged.findings if f.flagged]
            except Exception as error:  # an audit that breaks has found nothing; the run is tried again next time
                print(f"{name}, seed {seed}: {type(error).__name__}: {error}", flush=True)
        return found

    if name in CLEAN:
        return name, flags(), time.perf_counter() - start
    with planted(name):
        return name, flags(), time.perf_counter() - start


def jobs_left(done: dict[str, dict[str, list[str]]], names: list[str], runs: int, clean: int) -> list:
    """Chunks of seeds that are not in the results yet."""
    jobs = []
    for name in names:
        wanted = clean if name == "correct code" else runs
        missing = [seed for seed in range(wanted) if str(seed) not in done.get(name, {})]
        jobs += [(name, missing[first : first + CHUNK]) for first in range(0, len(missing), CHUNK)]
    return jobs


def table(done: dict[str, dict[str, list[str]]]) -> str:
    """The table of docs/audit.md."""
    from tests.audit.mutants import MUTANTS

    lines = ["| Fault | From | Runs | Flagged | Test that flags it most often |", "| --- | --- | ---: | ---: | --- |"]
    for name in [*CLEAN, *MUTANTS]:
        runs = done.get(name)
        if not runs:
            continue
        fault, origin = (name, "") if name in CLEAN else (MUTANTS[name].fault, MUTANTS[name].origin)
        tests = [test for flags in runs.values() for test in set(flags)]
        most = max(sorted(set(tests)), key=tests.count, default="")
        lines.append(f"| {fault} | {origin} | {len(runs)} | {sum(map(bool, runs.values()))} | {most} |")
    return "\n".join(lines)


def document(done: dict[str, dict[str, list[str]]]) -> str:
    """The page with the table in it."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{table(done)}\n\n{END}{rest.split(END)[1]}"


def main() -> int:
    """Run what is missing, write the results and the table."""
    from tests.audit.mutants import MUTANTS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--clean", type=int, default=100)
    parser.add_argument("--only", action="append", help="a mutant's name, or 'correct code'; may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--check", action="store_true", help="only say whether the page has the table of the results")
    options = parser.parse_args()
    done = json.loads(options.results.read_text("utf-8")) if options.results.exists() else {}
    if options.check:
        return 0 if PAGE.read_text("utf-8") == document(done) else 1
    jobs = jobs_left(done, options.only or [*CLEAN, *MUTANTS], options.runs, options.clean)
    # A process per core; within it, threads would only contend.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=8) as pool:
        for name, flags, seconds in pool.imap_unordered(audited, jobs):
            done.setdefault(name, {}).update(flags)
            options.results.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n", "utf-8")
            tests = sorted({test for found in flags.values() for test in found})
            flagged = sum(map(bool, flags.values()))
            print(f"{name}: {flagged} of {len(flags)} in {seconds:.0f} s: {', '.join(tests)}", flush=True)
    if options.results == RESULTS:
        PAGE.write_text(document(done), "utf-8")
    return 0


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    sys.exit(main())
