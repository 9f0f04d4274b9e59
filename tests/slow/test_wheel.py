"""The wheel, in an empty environment, outside the checkout, without a network at run time."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_wheel_runs_elsewhere(tmp_path: Path):
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("data/mnist.npz", "scenario/presets/paper.toml", "report/page.html", "py.typed"):
        assert f"fairwave/{needed}" in names
    venv.create(tmp_path / "env", with_pip=True)
    binaries = tmp_path / "env" / "bin"
    install = [
        str(binaries / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "-c",
        str(ROOT / "constraints.txt"),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True, timeout=600)
    away = tmp_path / "away"
    away.mkdir()
    # A proxy that nobody answers: whatever tried to reach a network would fail.
    offline = {
        "PATH": os.environ["PATH"],
        "HOME": str(away),
        "https_proxy": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }
    for arguments in (["run", "small", "--rounds", "2"], ["report", "runs/small"]):
        command = [str(binaries / "fairwave"), *arguments]
        done = subprocess.run(command, check=False, cwd=away, env=offline, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert (away / "runs" / "small" / "report.html").stat().st_size > 1_000_000
