"""`fairwave run` and its companions, as a user meets them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import xarray as xr

from fairwave.runs.database import FILE
from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.command_line import Outcome, fairwave

TINY = as_options((*SOFTMAX_MNIST, "radio.payload_bits=unset"))


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """A finished run of two schemes and two seeds."""
    folder = tmp_path_factory.mktemp("done") / "runs" / "tiny"
    command = [sys.executable, "-m", "fairwave", "run", "small", *TINY, "--rounds", "3", "--seeds", "0..1"]
    subprocess.run([*command, "--out", str(folder)], check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture
def cli(capsys, monkeypatch):
    def call(*arguments: object) -> Outcome:
        return fairwave(capsys, monkeypatch, *map(str, arguments))

    return call


def results(folder: Path, cli, tmp_path: Path) -> xr.Dataset:
    assert cli("export", folder, "--to", tmp_path / "r.nc").code == 0
    return xr.load_dataset(tmp_path / "r.nc")


@pytest.mark.slow
def test_the_same_command_again_says_done_and_changes_nothing(done, cli):
    before = (done / FILE).read_bytes()
    said = cli("run", "small", *TINY, "--rounds", 3, "--seeds", "0..1", "--out", done)
    assert said.code == 0 and f"already done: {done}" in said.out
    assert "the paper's headlines" not in said.out  # three rounds of another cell
    assert cli("resume", done).code == 0
    assert (done / FILE).read_bytes() == before


def test_a_second_run_is_byte_equal_and_more_can_be_added(done, cli, tmp_path):
    """First one scheme, one seed and one round; then the rest is added: the results are those of one go."""
    folder = tmp_path / "again"
    assert cli("run", "small", *TINY, "--rounds", 1, "--schemes", "max_power", "--out", folder).code == 0
    said = cli(
        "run", "small", *TINY, "--rounds", 3, "--schemes", "proposed,max_power", "--seeds", "0,1", "--out", folder
    )
    assert said.code == 0, said.err
    assert "of 12 rounds" in said.err
    shown = cli("runs", "show", folder).out
    first, second = (
        re.search(rf"^{name}: (.*)$", shown, re.MULTILINE)[1] for name in ("command", "session 2: command")
    )
    assert "--rounds 1" in first and "--seeds 0,1" in second
    ours, theirs = (results(f, cli, tmp_path) for f in (folder, done))
    xr.testing.assert_identical(ours.sel(scheme=theirs["scheme"]).drop_attrs(), theirs.drop_attrs())


def test_exports_agree(done, cli, tmp_path):
    dataset = results(done, cli, tmp_path)
    assert dict(dataset.sizes) == {"scheme": 2, "seed": 2, "round": 3, "device": 3, "class": 10}
    for ending, read in ((".parquet", pyarrow.parquet.read_table), (".csv", pyarrow.csv.read_csv)):
        assert cli("export", done, "--to", tmp_path / f"r{ending}").code == 0
        table = read(tmp_path / f"r{ending}").to_pydict()
        assert len(table["loss"]) == 2 * 2 * 3 * 3
        for row in (0, 17, 35):
            place = {dim: table[dim][row] for dim in ("scheme", "seed", "round", "device")}
            assert table["energy_j"][row] == pytest.approx(float(dataset["energy_j"].sel(place)), rel=1e-12)
            del place["device"]
            assert table["test_accuracy"][row] == pytest.approx(float(dataset["test_accuracy"].sel(place)), rel=1e-6)


def test_list_show_rm(done, cli, tmp_path):
    said = cli("runs", "list", "--in", done.parent)
    head, run, *schemes = said.out.splitlines()[:4]
    assert head.split() == ["scheme", "rounds", "accuracy", "energy", "(mJ)", "spread", "(mJ)", "epsilon"]
    assert re.fullmatch(rf"{re.escape(str(done))}: done; \d{{4}}-\d\d-\d\d; 2 seeds", run)
    stored = results(done, cli, tmp_path)
    for line, scheme in zip(schemes, ("proposed", "max_power"), strict=True):
        name, *rounds, accuracy, _, energy, spread, proved = line.split()
        means = stored["energy_j"].sel(scheme=scheme).mean("round")
        assert (name, " ".join(rounds), proved) == (scheme, "3 of 3", "none")
        tested = 100 * stored["test_accuracy"].sel(scheme=scheme)[:, -1].mean()
        assert float(accuracy) == pytest.approx(float(tested), abs=0.051)
        assert float(energy) == pytest.approx(1e3 * float(means.mean()), abs=0.051)
        assert float(spread) == pytest.approx(1e3 * float(means.std("device").mean()), abs=0.0051)
        assert len(line) <= 80
    shown = cli("runs", "show", done)
    assert "command: " in shown.out and "[radio]" in shown.out and "max_power" in shown.out
    assert cli("runs", "list", "--in", tmp_path).out.startswith("no runs in")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / FILE).write_bytes((done / FILE).read_bytes())
    assert cli("runs", "rm", copy).code == 2 and copy.exists()
    (copy / "thesis.txt").write_text("mine")
    said = cli("runs", "rm", copy, "--yes")
    assert said.code == 0 and "left thesis.txt" in said.out
    assert [path.name for path in copy.iterdir()] == ["thesis.txt"]
    (copy / FILE).write_text("a diary")
    assert cli("runs", "rm", copy, "--yes").code == 5 and (copy / FILE).exists()
    (copy / FILE).write_bytes((done / FILE).read_bytes())
    (copy / "thesis.txt").unlink()
    assert cli("runs", "rm", copy, "--yes").code == 0 and not copy.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "small", "--schemes", "best"], 2, "unknown scheme 'best'"),
        (["run", "small", "--seeds", "0-4"], 2, "give whole numbers such as 0..4"),
        (["run", "small", "--seeds", "1,1"], 2, "none twice"),
        (["run", "small", "--rounds", "0"], 2, "run at least one"),
        (["run", "fair-mlp", "--schemes", "no_privacy"], 2, "'no_privacy' trains without noise"),
        (["run", "small", "--set", "learning.layer_sizes=[10, 10]"], 2, "make them fit"),
        (["run", "small", "--set", "cell.num_devices=70000"], 2, "gets none of the 60000 samples"),
        (["run", "small", "--set", "data.source=nowhere"], 2, "no data set or file"),
        (["resume", "nowhere"], 5, "no run there"),
        (["report", "nowhere"], 5, "no run there"),
        (["runs", "show", "nowhere"], 5, "no run there"),
        (["runs", "rm", "nowhere", "--yes"], 5, "no run there"),
        (["export", "nowhere", "--to", "x.nc"], 5, "no run there"),
        (["export", "nowhere", "--to", "x.doc"], 2, "unknown ending '.doc'"),
    ],
)
def test_wrong_input_is_one_line(cli, monkeypatch, tmp_path, arguments, code, said):
    monkeypatch.chdir(tmp_path)
    outcome = cli(*arguments)
    assert outcome.code == code and said in outcome.err
    assert outcome.err.count("\n") == 1 and outcome.err.startswith("fairwave: ")


def test_another_scenario_in_the_same_folder_is_refused(done, cli):
    said = cli("run", "small", *TINY, "--set", "radio.bandwidth_hz=1MHz", "--out", done)
    assert said.code == 5 and "radio.bandwidth_hz = 250000.0, not 1000000.0" in said.err


def test_a_folder_with_other_files_is_left_alone(cli, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    assert cli("run", "small", *TINY, "--out", tmp_path).code == 5
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_place_that_cannot_be_written_is_said(cli, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "run", tmp_path / "file", tmp_path / ("long" * 100)):
        said = cli("run", "small", *TINY, "--out", place)
        assert said.code == 4 and str(place) in said.err and said.err.count("\n") == 1
    assert not (tmp_path / ("long" * 100)).parent.joinpath("run.lock").exists()


def test_wrong_data_leave_no_run_behind_and_files_are_found_beside_the_scenario(cli, tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "s.toml").write_text('extends = "small"\n[data]\nsource = "mine.npz"\n')
    monkeypatch.chdir(tmp_path)
    said = cli("run", "sub/s.toml", "--out", "run")
    assert said.code == 2 and str(tmp_path / "sub" / "mine.npz") in said.err and not (tmp_path / "run").exists()


def test_a_damaged_run_is_refused_by_every_command(done, cli, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    content = bytearray((done / FILE).read_bytes())
    middle = len(content) // 2
    content[middle : middle + 3_000] = bytes(3_000)
    (broken / FILE).write_bytes(content)
    for arguments in (
        ["resume", broken],
        ["report", broken],
        ["export", broken, "--to", tmp_path / "x.nc"],
        ["runs", "show", broken],
    ):
        said = cli(*arguments)
        assert said.code == 5 and "damaged" in said.err and said.err.count("\n") == 1
    assert (broken / FILE).read_bytes() == content
    assert "damaged" in cli("runs", "list", "--in", tmp_path).out


def test_ctrl_c_is_safe_and_says_how_to_go_on(done, cli, tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "fairwave", "run", "small", *TINY, "--rounds", "400", "--out", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    line = process.stderr.readline()  # the first round is stored
    os.kill(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert "round 1" in line and f"resume with: fairwave resume {folder}" in rest and "Traceback" not in rest
    stored = int(re.search(r"(\d+) of 800 rounds", cli("runs", "list", "--in", tmp_path).out)[1])
    assert 1 <= stored < 800
    ours = results(folder, cli, tmp_path).isel(round=0).sel(scheme=["proposed"], seed=[0])
    theirs = results(done, cli, tmp_path).isel(round=0).sel(scheme=["proposed"], seed=[0])
    np.testing.assert_array_equal(ours["loss"], theirs["loss"])


@pytest.mark.slow
def test_a_run_that_was_cut_short_is_marked_and_reported_without_warnings(done, cli, tmp_path):
    """The first scheme is done, the second has begun, and the second seed has not."""
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "fairwave"]
    asked = ["run", "small", *TINY, "--rounds", "150", "--seeds", "0,1", "--out", str(folder)]
    going = subprocess.Popen([*command, *asked], stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert going.stderr is not None
    while "max_power, seed 0, round 1:" not in going.stderr.readline():
        assert going.poll() is None
    os.kill(going.pid, signal.SIGINT)
    going.communicate(timeout=60)
    listed = cli("runs", "list", "--in", tmp_path).out
    stored = int(re.search(r"max_power +0 to (\d+) of 150 \*", listed)[1])
    assert 0 < stored < 150 and re.search(r"proposed +0 to 150 of 150 \*", listed)
    shown = cli("runs", "show", folder).out
    assert f"max_power with seed 0 is not finished: {stored} of 150 rounds (interrupted, or still running)" in shown
    assert "max_power with seed 1 has not begun: 0 of 150 rounds" in shown
    assert f"max_power ({stored} of 150 rounds)" in shown
    said = subprocess.run([*command, "report", str(folder)], capture_output=True, text=True, check=False)
    assert said.returncode == 0 and said.stderr == "", said.stderr
    assert said.stdout.startswith(
        "This run is not finished (proposed has done 0 to 150 of 150 rounds, depending on the seed, max_power has done"
    )
    assert (folder / "report.html").read_text("utf-8").count(f"max_power ({stored} of 150 rounds)") >= 4
    compared = cli("runs", "compare", done, folder).out
    assert re.search(r"rounds asked for +3 +150", compared) and "Rounds are missing" in compared
    assert "learning.batch_size" not in compared and max(map(len, compared.splitlines())) <= 80


def test_runs_share_a_page_that_opens_in_a_browser(done, cli, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / FILE).write_bytes((done / FILE).read_bytes())
    asked: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not asked.append(address))
    said = cli("report", done, copy, "--out", tmp_path / "both", "--open")
    assert said.code == 0 and said.out.startswith("Of 2 runs, ")
    assert asked == [(tmp_path / "both" / "report.html").as_uri()]
    rows = (tmp_path / "both" / "tables" / "joint.csv").read_text("utf-8").splitlines()
    assert [row.split(",")[:3] for row in rows[1:]] == [
        [name, scheme, "3 of 3"] for name in ("tiny", "copy") for scheme in ("proposed", "max_power")
    ]
    page = (tmp_path / "both" / "report.html").read_text("utf-8")
    assert "copy: proposed" in page and page.count('class="verdict"') == 3
    assert (tmp_path / "both" / "figures" / "joint-figure-1.svg").exists()
    compared = cli("runs", "compare", done, copy).out
    assert compared.startswith("the scenarios, rounds and seeds are equal") and "+0.0 %" in compared


def test_a_removed_run_leaves_no_report_behind(done, cli, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / FILE).write_bytes((done / FILE).read_bytes())
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    said = cli("report", copy, "--open")
    assert said.code != 0 and "no browser could be started" in said.err and said.err.count("\n") == 1
    assert (copy / "tables" / "energy.tex").exists() and (copy / "figures" / "figure-1.csv").exists()
    assert cli("runs", "rm", copy, "--yes").code == 0 and not copy.exists()


def test_progress_is_told_line_by_line_where_there_is_no_terminal(cli, tmp_path):
    said = cli("run", "small", *TINY, "--rounds", 11, "--schemes", "max_power", "--out", tmp_path / "run")
    lines = said.err.strip().splitlines()
    assert len(lines) == 2 and "round 1:" in lines[0] and "round 10:" in lines[1] and "10 of 11 rounds" in lines[1]
    assert len((tmp_path / "run" / "run.seal").read_text()) == 129


def test_estimates_leave_the_compilation_out():
    from fairwave.cli.progress import Board, duration
    from fairwave.runs.order import Track
    from fairwave.runs.session import TrackProgress

    now = 0.0
    board = Board(10, clock=lambda: now)
    board.take(TrackProgress(Track("proposed", 0), 0))
    now = 100.0
    board.take(TrackProgress(Track("proposed", 0), 1, 2.0, 0.1, 0.001))
    assert "estimating" in board.headline()
    now = 102.0
    board.take(TrackProgress(Track("proposed", 0), 2, 2.0, 0.1, 0.001))
    assert board.seconds_left() == pytest.approx(16.0)
    assert (duration(59.4), duration(61), duration(7_260)) == ("59 s", "1 min 01 s", "2 h 01 min")
