"""`fairwave federate` as a shell sees it, with and without Flower."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fairwave.federate.settings import Settings
from tests.end_to_end.command_line import fairwave
from tests.federate.parties import TINY, federated, outcome, tiny

SETS = [part for override in TINY[1:] for part in ("--set", override)]
NO_FLOWER = "import sys; sys.modules['flwr'] = None; from fairwave.cli.main import main; main()"
ALONE = """
import sys
import fairwave, fairwave.cli.main
from fairwave.runs.session import run, results
from fairwave.report.page import write_report
from fairwave.planner import plan
import fairwave.engine.round, fairwave.studies.jobs
print(sorted(name for name in sys.modules if name.split(".")[0] in ("flwr", "ray", "torch", "cryptography", "grpc")))
"""


def test_in_one_process(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    local = ("federate", "local", "--preset", "small", "--nodes", "3", "--engine", "in-process", "--rounds", "2", *SETS)
    done = fairwave(capsys, monkeypatch, *local)
    assert done.code == 0, done.err
    assert "device 2 joined" in done.err
    assert "proposed, seed 0, round 2: 3 updates, test accuracy 0." in done.err
    assert "done: runs/federated-small" in done.out
    folder = Path("runs/federated-small")
    assert (folder / "models" / "proposed-0.npz").exists()
    assert len(outcome(folder).records) == 2
    again = fairwave(capsys, monkeypatch, *local)
    assert again.code == 0
    assert "round" not in again.err
    report = fairwave(capsys, monkeypatch, "report", str(folder))
    assert report.code == 0
    page = (folder / "report.html").read_text("utf-8")
    assert "<h3>Federation</h3>" in page
    assert "Membership inference</h3>" not in page
    export = fairwave(capsys, monkeypatch, "export", str(folder), "--to", "results.nc")
    assert export.code == 0
    import xarray as xr

    with xr.open_dataset("results.nc") as held:
        assert held["update_fault"].attrs["flag_meanings"].split()[1] == "no_answer"
        assert bool((held["update_fault"] == 0).all())
        assert float(held["round_s"].min()) > 0.0
        assert np.isnan(held["global_loss"]).all()
    privacy = fairwave(capsys, monkeypatch, "privacy", str(folder))
    assert privacy.code == 0
    removed = fairwave(capsys, monkeypatch, "runs", "rm", str(folder), "--yes")
    assert removed.out == f"removed {folder}\n"
    assert not folder.exists()


def test_a_federation_is_not_resumed_as_a_simulation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    federated(tiny(rounds=1), folder)
    resumed = fairwave(capsys, monkeypatch, "resume", str(folder))
    assert resumed.code == 5
    assert "holds a federation; resume it with the command that started it: test" in resumed.err


@pytest.mark.slow
def test_a_run_without_telemetry_is_reported_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No energy, no plans, no losses: what devices do not report is left out, without a warning."""
    federated(tiny(rounds=2), tmp_path / "run", Settings(noise="simulation"))
    done = fairwave(capsys, monkeypatch, "report", str(tmp_path / "run"))
    assert done.code == 0, done.err
    assert done.err == ""
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "The devices did not report their energy." in page
    assert "<h3>The devices" not in page
    shown = fairwave(capsys, monkeypatch, "runs", "show", str(tmp_path / "run"))
    assert shown.code == 0
    assert shown.err == ""


def test_init_writes_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = str(tmp_path / "deployment")
    done = fairwave(capsys, monkeypatch, "federate", "init", target, "fair", "--nodes", "2", "--host", "ap.example.org")
    assert done.code == 0, done.err
    assert (tmp_path / "deployment" / "node-1" / "start.sh").exists()
    scenario = (tmp_path / "deployment" / "access-point" / "app" / "fairwave_app" / "scenario.toml").read_text("utf-8")
    assert 'noise_source = "hardened"' in scenario


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("small", "--preset", "paper"), "--preset paper: and SOURCE is small; give one of them"),
        (("small", "--schemes", "propsed"), "did you mean 'proposed'?"),
        (("small", "--rounds", "0"), "rounds: 0 is too few"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = fairwave(capsys, monkeypatch, "federate", "local", *arguments)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", [("local",), ("init", "somewhere")])
def test_without_flower_one_line_says_how_to_install_it(command: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_FLOWER, "federate", *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "fairwave: federate: Flower is not installed; install it with: pip install 'fairwave[flower]'\n"
    )


def test_the_core_never_imports_flower() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
