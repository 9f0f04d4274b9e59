"""A run on two processes that meet over loopback is the run of one."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fairwave.runs.session import results
from fairwave.runs.store import RunStore

pytestmark = pytest.mark.slow

LIMIT_S = 240
SETTINGS = ("--schemes", "proposed,max_power", "--set", "cell.num_devices=5", "--set", "data.samples_per_device=200")


def command(out: Path, rounds: int, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "fairwave",
        "run",
        "small",
        *SETTINGS,
        "--rounds",
        str(rounds),
        "--out",
        str(out),
        *more,
    ]


def together(out: Path, rounds: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    meeting = [["--coordinator", place, "--processes", "2", "--process", str(number)] for number in range(2)]
    running = [
        subprocess.Popen(command(out, rounds, *each), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for each in meeting
    ]
    try:
        told = [process.communicate(timeout=LIMIT_S)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0], "\n".join(told)


def test_two_processes_compute_what_one_does_and_go_on_where_they_were(tmp_path):
    subprocess.run(command(tmp_path / "alone", 4), check=True, capture_output=True, timeout=LIMIT_S)
    together(tmp_path / "both", 2)
    together(tmp_path / "both", 4)
    stores = [RunStore(tmp_path / name) for name in ("alone", "both")]
    alone, both = map(results, stores)
    for store in stores:
        store.close()
    assert both.sizes == alone.sizes
    for name in ("loss", "deviation", "test_accuracy", "energy_j", "local_iterations"):
        np.testing.assert_allclose(both[name].values, alone[name].values, rtol=2e-4, atol=1e-6)
