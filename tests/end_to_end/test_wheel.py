"""The wheel, in an empty environment, outside the checkout, without a network at run time."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from fairwave.cli.init_command import FILES
from tests.builders import SOFTMAX_MNIST, as_options

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_wheel_runs_elsewhere(tmp_path: Path):
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    starter = [f"cli/starter/{name}" for name in FILES]
    cited = [f"{folder}/{path.name}" for folder in ("docs", "examples") for path in (ROOT / folder).glob("*.*")]
    cited = [name for name in cited if name.endswith(".md") or name.startswith("examples/")]
    assert {"docs/wire.md", "examples/sweep.toml"} <= set(cited)
    data = ("data/mnist.npz", "scenario/presets/paper.toml", "report/page.html", "ui/static/dashboard.js", "py.typed")
    for needed in (*data, *starter, *cited):
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
    plan = ["plan", "mine/scenario.toml", "--policies", "half_power", "--no-fading"]
    sweep = ["sweep", "mine/examples/sweep.toml", "--dry-run"]
    start = ["init", "mine", "--docs"]
    for arguments in (["run", "small", "--rounds", "2"], ["report", "runs/small"], start, plan, sweep):
        command = [str(binaries / "fairwave"), *arguments]
        done = subprocess.run(command, check=False, cwd=away, env=offline, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert (away / "runs" / "small" / "report.html").stat().st_size > 1_000_000
    assert (away / "mine" / "docs" / "wire.md").read_bytes() == (ROOT / "docs" / "wire.md").read_bytes()
    asked = [str(binaries / "python"), "-c", "import fairwave; print(fairwave.__version__)"]
    printed = subprocess.run(asked, check=True, cwd=away, capture_output=True, text=True, timeout=60).stdout.strip()
    assert (
        printed
        == wheel.name.split("-")[1]
        == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    )


OFFERED = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "offered"
version = "1.2"
[project.entry-points."fairwave.schemes"]
frugal = "offered:frugal"
[project.entry-points."fairwave.rules"]
fewest = "offered:fewest"
[tool.hatch.build.targets.wheel]
packages = ["offered"]
"""


@pytest.mark.slow
def test_a_package_with_entry_points_extends_fairwave(tmp_path: Path):
    """A wheel of another package, installed into a folder: its scheme and its rule can be named like any other."""
    package = tmp_path / "source" / "offered"
    package.mkdir(parents=True)
    (tmp_path / "source" / "pyproject.toml").write_text(OFFERED)
    (package / "__init__.py").write_text((ROOT / "tests" / "plugins" / "everything.py").read_text())
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(package.parent)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path / "lib")]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=300)
    found = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}

    def fairwave(*arguments: str) -> str:
        command = [sys.executable, "-m", "fairwave", *arguments]
        done = subprocess.run(
            command, check=False, cwd=tmp_path, env=found, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "frugal" in fairwave("scenario", "schemes") and "fewest" in fairwave("plan", "--policies", "fewest")
    options = [*as_options(SOFTMAX_MNIST), "--rounds", "1", "--schemes", "frugal", "--out", "run"]
    assert "frugal" in fairwave("run", "small", *options)
    assert "plugin offered 1.2, offered:frugal" in fairwave("runs", "show", "run")
