"""The paper's whole experiment, from a cold process to its results: `fairwave run`, and the same written in Flower."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

from peers.environments import HERE, OWN, Failed, program, variables
from peers.harness import FAILURES, Running
from peers.line_up import CORES
from peers.table import Row

NAME, TITLE = "paper-experiment", "The paper's experiment: two schemes, {} rounds each, from a cold process to results"
FAIRWAVE, FLOWER = "fairwave", "flower"
LIMIT_S, PLANS_LIMIT_S = 3_600.0, 120.0
TOLERANCE = 0.05
"""Of test accuracies: the noise, the batches and who holds what are drawn differently."""


def compare(sweeps: int, rounds: int, only: list[str], folder: Path) -> list[Row]:
    """Both in random order, so many times; a run of fairwave's before them says what to do in each round."""
    rows = [
        {"name": FAIRWAVE, "label": "fairwave run paper", "environment": OWN},
        {"name": FLOWER, "label": f"Flower simulation, {CORES} actors", "environment": "flower"},
    ]
    rows = [row | {"seconds": [], "same_job": True, "limit": ""} for row in rows if not only or row["name"] in only]
    plans = folder / "plans.json"
    if not rows:
        return []
    try:
        _once(_fairwave(folder / "plans", rounds), OWN, folder / "plans.log")
        plans.write_text(_plans(folder / "plans"))
    except Failed as failure:
        return [row | {"failed": str(failure)} for row in rows]
    rng = random.Random(0)
    for sweep in range(sweeps):
        for row in rng.sample(rows, len(rows)):
            if "failed" in row:
                continue
            out, log = folder / f"run-{sweep}", folder / f"{row['name']}-{sweep}.log"
            print(f"sweep {sweep + 1} of {sweeps}: {row['label']}", flush=True)
            try:
                if row["name"] == FAIRWAVE:
                    seconds, memory, _ = _once(_fairwave(out, rounds), OWN, log)
                    told = json.loads(_plans(out))["schemes"]
                    row["accuracies"] = {scheme: each["test_accuracy"][-1] for scheme, each in told.items()}
                else:
                    command = [program("flower"), "flower_experiment.py", str(plans), str(CORES)]
                    seconds, memory, told = _once(command, "flower", log, hears=True)
                    reached = told["results"].items()
                    row["accuracies"] = {scheme: each[-1]["test_accuracy"] for scheme, each in reached}
                row["seconds"].append(seconds)
                row["peak_mb"] = max(memory, row.get("peak_mb", 0.0))
                row["accuracy"] = row["accuracies"]["proposed"]
            except FAILURES as failure:
                row["failed"] = str(failure)
    return rows


def _fairwave(out: Path, rounds: int) -> list[str]:
    schemes = ["--schemes", "proposed,max_power"]
    return [program(OWN), "-m", "fairwave", "run", "paper", "--rounds", str(rounds), *schemes, "--out", str(out)]


def _once(
    command: list[str], environment: str, log: Path, *, hears: bool = False
) -> tuple[float, float, dict[str, Any]]:
    """Seconds, megabytes, and what a process printed that speaks JSON."""
    running = Running(command, variables(environment), log)
    try:
        seconds, memory = running.wait(LIMIT_S)
        return seconds, memory, running.hear(1.0) if hears else {}
    finally:
        running.kill()


def _plans(run: Path) -> str:
    """What each device did in each round of a stored run, as JSON."""
    command = [program(OWN), "fairwave_rounds.py", "plans", str(run)]
    told = subprocess.run(
        command, cwd=HERE, env=variables(OWN), capture_output=True, text=True, timeout=PLANS_LIMIT_S, check=False
    )
    if told.returncode:
        raise Failed((told.stderr.strip().splitlines() or ["no plans"])[-1])
    return told.stdout
