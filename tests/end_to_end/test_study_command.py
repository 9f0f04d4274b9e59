"""A study through its command: in parallel, killed half-way, and gone on with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairwave.errors import FairwaveError
from fairwave.runs.database import FILE
from fairwave.runs.store import RunStore
from tests.builders import SOFTMAX_MNIST, as_options

STUDY = [
    sys.executable,
    "-m",
    "fairwave",
    "study",
    "incentives",
    "--behaviours",
    "echo_model,lazy",
    "--seeds",
    "0..1",
    "--rounds",
    "8",
    "--set",
    "cell.num_devices=4",
    "--set",
    "data.samples_per_device=60",
    "--set",
    "learning.batch_size=16",
    "--jobs",
    "2",
]
RUNS = 6


def started(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        return subprocess.Popen([*STUDY, "--out", str(folder)], stdout=stream, stderr=stream)


def finished(folder: Path) -> dict[str, bytes]:
    """Content of the runs that are done, by name."""
    found = {}
    for path in folder.glob(f"*/{FILE}"):
        try:
            store = RunStore(path.parent)
        except FairwaveError:  # being written to
            continue
        if all(store.summary(track).rounds == store.order.rounds for track in store.order.tracks()):
            found[path.parent.name] = path.read_bytes()
        store.close()
    return found


def children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]


@pytest.mark.slow
def test_a_killed_study_leaves_nobody_behind_and_goes_on(tmp_path: Path):
    folder, log = tmp_path / "study", tmp_path / "log"
    process = started(folder, log)
    while process.poll() is None and len(finished(folder)) < 2:
        time.sleep(0.5)
    crew = children(process.pid)
    assert process.poll() is None and len(crew) >= 2, log.read_text()
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in crew) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in crew)
    before = finished(folder)
    assert 2 <= len(before) < RUNS
    again = started(folder, log)
    assert again.wait(timeout=600) == 0, log.read_text()
    after = finished(folder)
    assert len(after) == RUNS and all(after[name] == content for name, content in before.items())
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Under &#x27;proposed + defences&#x27;" in page and "echo_model" in page
    assert f"of {RUNS * 2 * 8 * 2} rounds" in log.read_text()  # two schemes on average


@pytest.mark.slow
def test_the_other_studies(tmp_path: Path):
    small = [
        "--seeds",
        "0",
        "--rounds",
        "2",
        "--set",
        "cell.num_devices=3",
        "--set",
        "data.samples_per_device=40",
        "--set",
        "learning.batch_size=8",
        "--jobs",
        "1",
    ]
    for question, more in (("pareto", ["--schemes", "proposed,priced"]), ("responses", [])):
        command = [sys.executable, "-m", "fairwave", "study", question, *more, *small, "--out", tmp_path / question]
        said = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
        assert said.returncode == 0 and (tmp_path / question / "report.html").exists(), said.stderr


def test_attacks_through_the_command_and_what_is_done_is_not_repeated(tmp_path: Path):
    folder, done = tmp_path / "attacks", []
    asked = [sys.executable, "-m", "fairwave", "study", "attacks", "--attacks", "sign_flip", "--seeds", "0"]
    asked += ["--aggregators", "mean,coordinate_median", "--share", "0.34", "--rounds", "2", "--jobs", "1"]
    for _ in range(2):
        command = [*asked, "--out", str(folder), *as_options(SOFTMAX_MNIST)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        assert "coordinate" in said.stdout and "sign_flip" in said.stdout
        done.append(finished(folder))
    assert len(done[0]) == 4 and done[0] == done[1]
    lines = (folder / "attacks.csv").read_text("utf-8").splitlines()
    assert lines[0] == "attack,aggregator,seed,accuracy,backdoor_success" and len(lines) == 5
    assert lines[1].startswith("nobody,mean,0,0.") and lines[4].startswith("sign_flip,coordinate_median,0,0.")


@pytest.mark.slow
def test_contribution_goes_on_where_it_was(tmp_path: Path):
    more = [
        "--scenarios",
        "paper-clean",
        "--seeds",
        "0",
        "--rounds",
        "2",
        "--samples",
        "40",
        "--out",
        str(tmp_path),
        *as_options((*SOFTMAX_MNIST, "defences.validation_samples=40")),
    ]
    command = [sys.executable, "-m", "fairwave", "study", "contribution", *more]
    first = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert first.returncode == 0, first.stderr
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/seed-0.json")}
    assert len(kept) == 5 and "leave_one_out" in first.stdout and "Closest to the Shapley values" in first.stdout
    lost = tmp_path / "paper-clean-wrong_labels" / "seed-0.json"
    content = lost.read_bytes()
    lost.unlink()
    again = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert again.returncode == 0 and again.stdout == first.stdout and lost.read_bytes() == content
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items() if path != lost)
    other = subprocess.run([*command, "--every", "1"], capture_output=True, text=True, env=os.environ, check=False)
    assert other.returncode == 5 and "holds games of every 2, not 1" in other.stderr
    wrong = subprocess.run([*command, "--utility", "joy"], capture_output=True, text=True, env=os.environ, check=False)
    assert wrong.returncode == 2 and "--utility joy: unknown" in wrong.stderr
