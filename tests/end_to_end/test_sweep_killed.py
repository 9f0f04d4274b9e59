"""A sweep of forty runs, killed half-way, and gone on with by the same command."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from fairwave.errors import FairwaveError
from fairwave.runs.database import FILE
from fairwave.runs.store import RunStore
from tests.end_to_end.test_study_command import children

RUNS = 40
STUDY = """
scenario = "small"
schemes = ["max_power"]
rounds = 1
set = [
    "cell.num_devices=3", "data.samples_per_device=40", "learning.batch_size=8", "learning.layer_sizes=[784, 10]",
    "learning.model=softmax", "compute.bits_per_iteration=802816",
]

[grid]
compute.compute_power_w = ["60 mW", "80 mW", "96 mW", "120 mW"]

[random]
draws = 10
utility.energy_reference_j = { law = "log_uniform", low = "0.2 J", high = "1 J" }
"""


def started(study: Path, folder: Path, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "fairwave", "sweep", str(study), "--out", str(folder), "--jobs", "2"]
    with log.open("wb") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=stream)


def finished(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of the file of every run that is done."""
    found = {}
    for path in sorted(folder.glob(f"*/{FILE}")):
        try:
            store = RunStore(path.parent)
        except FairwaveError:  # being written to
            continue
        if all(store.summary(track).rounds == store.order.rounds for track in store.order.tracks()):
            found[path.parent.name] = (path.stat().st_mtime_ns, path.read_bytes())
        store.close()
    return found


@pytest.mark.slow
def test_forty_runs_killed_half_way(tmp_path: Path):
    study, folder, log = tmp_path / "study.toml", tmp_path / "out", tmp_path / "log"
    study.write_text(STUDY, encoding="utf-8")
    process = started(study, folder, log)
    while process.poll() is None and len(list(folder.glob(f"*/{FILE}"))) < RUNS // 2:
        time.sleep(0.05)
    crew = children(process.pid)
    assert process.poll() is None, log.read_text()
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in crew) and time.monotonic() < deadline:
        time.sleep(0.1)  # its workers notice, and end
    before = finished(folder)
    assert RUNS // 4 <= len(before) < RUNS, log.read_text()
    again = started(study, folder, log)
    assert again.wait(timeout=300) == 0, log.read_text()
    after = finished(folder)
    assert len(after) == RUNS and all(after[name] == content for name, content in before.items())
    done = pyarrow.parquet.read_table(folder / "points.parquet")
    assert done.num_rows == RUNS and set(done["run"].to_pylist()) == set(after)
    assert f"{RUNS} of {RUNS} rounds" in log.read_text()
