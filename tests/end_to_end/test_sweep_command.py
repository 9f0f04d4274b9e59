"""`fairwave sweep`, as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pytest

from fairwave.runs.database import FILE
from tests.end_to_end.command_line import Outcome, fairwave

STUDY = """
scenario = "small"
schemes = ["max_power"]
seeds = "0..1"
rounds = 1
set = [
    "cell.num_devices=3", "data.samples_per_device=40", "learning.batch_size=8", "learning.layer_sizes=[784, 10]",
    "learning.model=softmax", "compute.bits_per_iteration=802816",
]
"""
GRID = '[grid]\ncompute.compute_power_w = ["80 mW", "96 mW"]\n'


@pytest.fixture
def cli(capsys, monkeypatch):
    def call(*arguments: object) -> Outcome:
        return fairwave(capsys, monkeypatch, *map(str, arguments))

    return call


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of every run's file, by the name of the run."""
    return {path.parent.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.glob(f"*/{FILE}")}


def test_a_sweep_and_what_is_asked_for_later(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, folder = tmp_path / "tiny.toml", tmp_path / "runs" / "sweep-tiny"
    study.write_text(STUDY + GRID)
    said = cli("sweep", study, "--dry-run")
    assert said.code == 0 and not folder.exists()
    assert said.out.splitlines() == [
        "compute.compute_power_w=0.08",
        "compute.compute_power_w=0.096",
        "2 points, 4 rounds of training (max_power)",
    ]
    said = cli("sweep", study, "--jobs", 1)
    assert said.code == 0 and "report: runs/sweep-tiny/report.html" in said.out and "4 of 4 rounds" in said.err, (
        said.err
    )
    before = files(folder)
    assert sorted(before) == ["compute.compute_power_w=0.08", "compute.compute_power_w=0.096"]
    table = pyarrow.csv.read_csv(folder / "points.csv").to_pydict()
    assert table["compute.compute_power_w"] == [0.08, 0.08, 0.096, 0.096] and table["seed"] == [0, 1, 0, 1]
    assert all(energy > 0 for energy in table["energy_j"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "sweep of compute.compute_power_w" in page and "95 % intervals over 2 seeds" in page
    for measure in ("energy_j", "energy_std_j", "received_loss", "test_accuracy"):
        assert (folder / "figures" / f"compute.compute_power_w-{measure}.pdf").exists()

    study.write_text(STUDY.replace("0..1", "0") + '[grid]\ncompute.compute_power_w = ["80 mW", "120 mW"]\n')
    assert cli("sweep", study, "--jobs", 1).code == 0
    after = files(folder)
    assert len(after) == 3 and all(after[name] == content for name, content in before.items())
    table = pyarrow.csv.read_csv(folder / "points.csv").to_pydict()
    assert table["compute.compute_power_w"] == [0.08, 0.12] and table["seed"] == [0, 0]

    study.write_text(STUDY.replace("num_devices=3", "num_devices=4") + GRID)
    said = cli("sweep", study, "--jobs", 1)
    assert said.code == 5 and "cell.num_devices = 3, not 4; choose another --out" in said.err
    assert files(folder) == after


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "grid: cell.num_device: unknown key; did you mean 'num_devices'?"),
        (("--jobs", "2", "--scheduler", "tcp://127.0.0.1:1"), "--jobs: a cluster's workers say how many"),
    ],
)
def test_wrong_input_is_one_line(cli, tmp_path, options, said):
    study = tmp_path / "study.toml"
    study.write_text('scenario = "small"\n[grid]\ncell.num_device = [3]\n')
    outcome = cli("sweep", study, *options)
    assert outcome.code == 2 and said in outcome.err and outcome.err.count("\n") == 1


def test_help_teaches(cli):
    said = cli("sweep", "--help").out
    assert "--dry-run" in said and "[grid]" in said and "fairwave sweep examples/sweep.toml" in said
