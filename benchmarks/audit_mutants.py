"""How often `fairwave audit` flags planted faults, and correct code: writes benchmarks' table for docs/audit.md.

Every mutant is audited under `--runs` seeds, correct code under `--clean` seeds. Finished runs are kept in the results
file and not repeated, so that a run that was stopped goes on where it was. Example, on a machine with 16 cores:

    TMPDIR=/dev/shm python benchmarks/audit_mutants.py --fresh --jobs 15 --chunk 10 --runs 20 --clean 100

Devices write their states to the disk for good, so that a folder in memory saves half of the time.
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
CLEAN = {
    "correct code": (),
    "correct code, mode 'device'": ("privacy.mode=device",),
    "correct code, gradients exchanged": (
        "learning.gradient_exchange=true",
        "privacy.exchange_noise_multiplier=5",
        "privacy.max_epsilon=unset",
    ),
}
"""Overrides of the preset 'fair' under which correct code is audited."""
ALONE = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OPENBLAS_NUM_THREADS": "1"}
"""Environment of every process, so that as many as there are cores do not contend."""


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


def jobs_left(done: dict[str, dict[str, list[str]]], wanted: dict[str, int], chunk: int) -> list:
    """Chunks of seeds that are not in the results yet, in rounds over all names."""
    jobs = []
    for name, runs in wanted.items():
        missing = [seed for seed in range(runs) if str(seed) not in done.get(name, {})]
        jobs += [(name, missing[first : first + chunk]) for first in range(0, len(missing), chunk)]
    return sorted(jobs, key=lambda job: job[1][0] // chunk)


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
    parser.add_argument("--chunk", type=int, default=5, help="seeds that one process audits: it compiles once for all")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--check", action="store_true", help="only say whether the page has the table of the results")
    options = parser.parse_args()
    known = options.results.exists() and not options.fresh
    done = json.loads(options.results.read_text("utf-8")) if known else {}
    if options.check:
        return 0 if PAGE.read_text("utf-8") == document(done) else 1
    names = options.only or [*CLEAN, *MUTANTS]
    jobs = jobs_left(done, {name: options.clean if name in CLEAN else options.runs for name in names}, options.chunk)
    os.environ.update({name: value for name, value in ALONE.items() if name not in os.environ})
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
