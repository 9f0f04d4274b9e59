"""The candidates of each job, each in the fastest mode that was found for it on a few cores."""

from __future__ import annotations

import json
import os
import subprocess

from peers import jobs
from peers.environments import HERE, OWN, Failed, program, variables
from peers.harness import Candidate

CORES = os.cpu_count() or 1
ONE_THREAD = (("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1"))
REFERENCE = "fairwave-steps"
WHOLE, WHOLE_LIMIT = "fairwave-whole", "sgemm-whole"
PASSES_LIMIT_S = 300


def candidates(job: jobs.Job) -> list[Candidate]:
    """All of a job, fairwave first, limits last."""
    large, cores = job is jobs.PAPER, str(min(CORES, job.cohort))
    threads = cores if large else "1"
    many = f"{threads} threads" if large else "1 thread"
    own = ("fairwave_rounds.py",)
    found = [
        Candidate(REFERENCE, "fairwave, the same job", OWN, "python", (*own, "steps", job.name)),
        Candidate(
            "fairwave-training", "fairwave, local training with losses", OWN, "python", (*own, "training", job.name)
        ),
        Candidate(
            WHOLE,
            "fairwave, whole round, stored",
            OWN,
            "python",
            (*own, "whole", job.name),
            same_job=not large,
            limit=WHOLE_LIMIT,
        ),
        Candidate("numpy", f"NumPy, {many}", OWN, "python", ("numpy_rounds.py", job.name, threads), ONE_THREAD),
        Candidate("pytorch", f"PyTorch loop, {many}", "pytorch", "python", ("torch_rounds.py", job.name, threads)),
        Candidate(
            "flower", f"Flower simulation, {cores} actors", "flower", "python", ("flower_rounds.py", job.name, cores)
        ),
        Candidate("pfl", f"pfl, 1 process, {many}", "pfl", "python", ("pfl_rounds.py", job.name, threads)),
        Candidate("fedjax", "FedJAX, jit", "fedjax", "python", ("fedjax_rounds.py", job.name)),
    ]
    if large:
        split = ("--standalone", "--nproc-per-node", cores, "pfl_rounds.py", job.name, "1")
        found.insert(-1, Candidate("pfl-torchrun", f"pfl, {cores} processes", "pfl", "torchrun", split, ONE_THREAD))
    return [
        *found,
        _limit("sgemm", "limit: sgemm of the job", job.layers, job.passes()),
        Candidate(
            WHOLE_LIMIT, "limit: sgemm of fairwave's whole round", OWN, "python", (), ONE_THREAD, False, WHOLE_LIMIT
        ),
    ]


def _limit(name: str, label: str, layers: tuple[int, ...], passes: list[jobs.Pass]) -> Candidate:
    arguments = ("sgemm_limit.py", str(CORES), json.dumps(layers), json.dumps(passes))
    return Candidate(name, label, OWN, "python", arguments, ONE_THREAD, False, name)


def completed(candidate: Candidate, job: jobs.Job) -> Candidate:
    """A candidate whose arguments are known only once fairwave has been asked what its whole round computes."""
    if candidate.name != WHOLE_LIMIT:
        return candidate
    told = subprocess.run(
        [program(OWN), "fairwave_rounds.py", "passes", job.name],
        cwd=HERE,
        env=variables(OWN),
        capture_output=True,
        text=True,
        timeout=PASSES_LIMIT_S,
        check=False,
    )
    if told.returncode:
        raise Failed((told.stderr.strip().splitlines() or ["no passes"])[-1])
    return _limit(candidate.name, candidate.label, job.layers, [jobs.Pass(*one) for one in json.loads(told.stdout)])
