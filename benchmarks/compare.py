"""fairwave against its peers on the same jobs, all on this machine and in one interleaved run.

    python benchmarks/compare.py                          all jobs
    python benchmarks/compare.py paper-round --sweeps 15
    python benchmarks/compare.py tiny-clients --only fairwave-steps,numpy,sgemm

Jobs:
    paper-round        10 clients, 90 steps of 128 samples, MLP 784-128-64-10
    tiny-clients       10 of 1,000 clients, 6 steps of 10 samples, softmax regression
    paper-experiment   both schemes of the paper with noise and all measurements, from a cold process to results

Every peer runs in an environment of its own under build/peers, made on first use. All candidates of a job are started
and wait; in each sweep every one has its turn, in random order. A busy machine slows all of a sweep, so that ratios
are taken inside sweeps, and only they can be compared. Start-up is from the start of the process to the end of its
first round. The limit is the time that the round's matrix products alone take; "of limit" compares rates, since
candidates that do more than the job have more products. A waiting Flower simulation polls, at some per cent of a core,
which the others bear. Nothing else should run on the machine meanwhile.

Results: docs/benchmarks/JOB.json and docs/figures/benchmark-JOB.svg; with --only, the table alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers import experiment, jobs, table
from peers.environments import ROOT, program, variables, versions
from peers.experiment import FAIRWAVE, FLOWER
from peers.harness import FAILURES, READY_LIMIT_S, Candidate, Running
from peers.line_up import REFERENCE, candidates, completed

SEED = 0
TOLERANCE = {jobs.PAPER.name: 0.02, jobs.TINY.name: 0.03}
"""Of test accuracies: candidates draw their batches, and of tiny clients the cohorts, from different generators."""


def compare(job: jobs.Job, sweeps: int, only: list[str], logs: Path) -> list[table.Row]:
    """All candidates of a job, in turns."""
    rows: dict[str, table.Row] = {}
    running: dict[str, Running] = {}
    try:
        for candidate in candidates(job):
            if not only or candidate.name in only:
                rows[candidate.name] = _row(candidate)
                _start(candidate, job, rows[candidate.name], running, logs)
        rng = random.Random(SEED)
        for sweep in range(sweeps):
            print(f"{job.name}: sweep {sweep + 1} of {sweeps}", flush=True)
            for name in rng.sample(sorted(running), len(running)):
                try:
                    rows[name]["each_round"].append(running[name].rounds(job.rounds_per_turn))
                except FAILURES as failure:
                    rows[name]["failed"] = str(failure)
                    running.pop(name).kill()
        for name in list(running):
            try:
                rows[name] |= running[name].finish()
            except FAILURES as failure:
                rows[name]["failed"] = str(failure)
            running.pop(name).kill()
    finally:
        for left in running.values():
            left.kill()
    for row in rows.values():
        _account(row, job)
    return list(rows.values())


def _row(candidate: Candidate) -> table.Row:
    told = dataclasses.asdict(candidate)
    return {name: told[name] for name in ("name", "label", "environment", "same_job", "limit")} | {"each_round": []}


def _start(candidate: Candidate, job: jobs.Job, row: table.Row, running: dict[str, Running], logs: Path) -> None:
    print(f"{job.name}: starting {candidate.label}", flush=True)
    try:
        candidate = completed(candidate, job)
        command = [program(candidate.environment, candidate.program), *candidate.arguments]
        environment = variables(candidate.environment, **dict(candidate.variables))
        running[candidate.name] = Running(command, environment, logs / f"{candidate.name}.log")
        row |= running[candidate.name].hear(READY_LIMIT_S)
    except FAILURES as failure:
        row["failed"] = str(failure)
        if candidate.name in running:
            running.pop(candidate.name).kill()


def _account(row: table.Row, job: jobs.Job) -> None:
    """Seconds and work per round of every sweep; what a candidate says of its work counts from its first round on."""
    row["seconds"] = [sum(turn) / len(turn) for turn in row["each_round"]]
    told, size = row.get("gflop"), job.rounds_per_turn
    if told is None:
        row["gflop"] = [row.get("gflop_per_round", job.gflop())] * len(row["seconds"])
    else:
        firsts = range(1, len(told), size)
        row["gflop"] = [sum(told[first : first + size]) / size for first in firsts][: len(row["seconds"])]


def report(name: str, title: str, unit: str, about: dict[str, Any], rows: list[table.Row], keep: bool) -> None:
    """Print the table, and keep everything where that is wanted."""
    if not rows:
        return
    table.summarise(rows, about["reference"], about["tolerance"])
    table.show(title, unit, rows, about["tolerance"])
    if not keep:
        return
    working = {row["environment"] for row in rows if "failed" not in row}
    about |= {"job": name, "title": title, "versions": {each: versions(each) for each in sorted(working)}}
    for path in (table.write(name, about, rows), table.draw(name, title, unit, rows)):
        print(path.relative_to(ROOT), flush=True)


def main() -> None:
    """Run what was asked for."""
    names = [*jobs.ALL, experiment.NAME]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"{', '.join(names)}; left out, all")
    parser.add_argument("--sweeps", type=int, default=9, help="turns of every candidate (9)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side of paper-experiment (3)")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of each scheme of paper-experiment (20)")
    parser.add_argument("--only", default="", help="candidates, by the names in the JSON, separated by commas")
    options = parser.parse_args()
    wrong = [name for name in options.jobs if name not in names]
    if wrong:
        parser.error(f"unknown job '{wrong[0]}'; choose among {', '.join(names)}")
    only = [name for name in options.only.split(",") if name]
    known = {FAIRWAVE, FLOWER} | {each.name for job in jobs.ALL.values() for each in candidates(job)}
    if not known.issuperset(only):
        parser.error(f"unknown candidate '{min(set(only) - known)}'; choose among {', '.join(sorted(known))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that candidates are ended then, too
    with tempfile.TemporaryDirectory() as logs:
        for name in options.jobs or names:
            if name == experiment.NAME:
                about = {"reference": FAIRWAVE, "tolerance": experiment.TOLERANCE, "rounds": options.rounds}
                rows = experiment.compare(options.repeats, options.rounds, only, Path(logs))
                report(name, experiment.TITLE.format(options.rounds), "seconds", about, rows, not only)
                continue
            job = jobs.ALL[name]
            about = {"reference": REFERENCE, "tolerance": TOLERANCE[name], "work_gflop": job.gflop()}
            rows = compare(job, options.sweeps, only, Path(logs))
            report(name, job.title, "seconds per round", about, rows, not only)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted; all candidates have been ended")
