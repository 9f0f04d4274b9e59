"""Malformed scenarios and device files: one line that says where, what and the remedy, exit code 2, no traceback."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.command_line import fairwave

PAPER = b'extends = "paper"\n'

SCENARIOS = {
    "empty file": (b"", "empty"),
    "only blanks": (b" \n\n", "empty"),
    "not utf-8": (b'extends = "paper"\n# \xff\xfe\n', "not UTF-8"),
    "utf-16": ('extends = "paper"\n'.encode("utf-16"), "not UTF-8"),
    "not toml": (b"[radio\n", "not valid TOML"),
    "duplicate key": (PAPER + b"[radio]\ncarrier_hz = 1\ncarrier_hz = 2\n", "not valid TOML"),
    "duplicate group": (PAPER + b"[run]\nseed = 1\n[run]\nseed = 2\n", "not valid TOML"),
    "unknown group": (PAPER + b"[radios]\nx = 1\n", "radios: unknown key; did you mean 'radio'?"),
    "unknown key": (
        PAPER + b"[radio]\nbandwith_hz = 1e6\n",
        "radio.bandwith_hz: unknown key; did you mean 'bandwidth_hz'?",
    ),
    "unknown nested key": (
        PAPER + b'[cell]\nplacement = { law = "disc", radius_m = 10, inner_m = 1 }\n',
        "cell.placement.inner_m: unknown key",
    ),
    "unknown law": (PAPER + b'[radio]\nfading = { law = "raleigh", scale = 1 }\n', "did you mean 'rayleigh'?"),
    "law left out": (PAPER + b"[radio]\nfading = { scale = 1 }\n", "no law given"),
    "law is no table": (PAPER + b'[radio]\nfading = "rayleigh"\n', "radio.fading"),
    "group is no table": (b'extends = "paper"\nradio = 3\n', "not a table"),
    "nothing extended": (b"[run]\nseed = 1\n", 'start the file with extends = "paper"'),
    "extends unknown": (
        b'extends = "papr"\n',
        "mine.toml: extends \"papr\": no such preset or file; did you mean 'paper'?",
    ),
    "extends missing file": (b'extends = "gone.toml"\n', 'mine.toml: extends "gone.toml": no such file'),
    "extends a number": (b"extends = 3\n", "is no name"),
    "wrong unit": (PAPER + b'[radio]\nbandwidth_hz = "250 mW"\n', "is a power; expected a frequency"),
    "unit in small letters": (
        PAPER + b'[radio]\nbandwidth_hz = "250 khz"\n',
        """in an unknown unit 'khz'; did you mean "250 kHz"?""",
    ),
    "unknown unit": (PAPER + b'[radio]\nbandwidth_hz = "250 hertz"\n', "unknown unit 'hertz'"),
    "dB without reference": (PAPER + b'[radio]\nmax_transmit_power_w = "0 dB"\n', "is a ratio; expected a power"),
    "text without unit": (PAPER + b'[radio]\nbandwidth_hz = "fast"\n', "is no frequency"),
    "number as text": (PAPER + b'[radio]\nbandwidth_hz = "250000"\n', "has no unit"),
    "nan": (PAPER + b"[cell]\ndeadline_s = nan\n", "not a finite number"),
    "infinite": (PAPER + b"[cell]\ndeadline_s = inf\n", "not a finite number"),
    "negative bandwidth": (PAPER + b"[radio]\nbandwidth_hz = -1\n", "out of range; it must be above 0 Hz"),
    "zero power": (PAPER + b"[compute]\ncompute_power_w = 0\n", "out of range"),
    "huge value": (PAPER + b"[radio]\nmax_transmit_power_w = 1e300\n", "out of range"),
    "huge decibel": (PAPER + b'[radio]\nmax_transmit_power_w = "9999 dBW"\n', "out of range"),
    "boolean number": (PAPER + b"[cell]\ndeadline_s = true\n", "is no time"),
    "efficiency above one": (PAPER + b"[radio]\namplifier_efficiency = 1.5\n", "at most 1"),
    "theta one": (PAPER + b"[privacy]\ndeviation_weight = 1\n", "privacy.deviation_weight: 1 is out of range"),
    "theta above one": (PAPER + b"[privacy]\ndeviation_weight = 1.2\n", "out of range"),
    "epsilon above one": (
        PAPER + b"[privacy]\nepsilon = 2\n",
        "privacy: epsilon 2 is out of range: the classical formula is proved below 1 only",
    ),
    "delta zero": (PAPER + b"[privacy]\ndelta = 0\n", "out of range"),
    "fractional count": (PAPER + b"[compute]\nmin_iterations = 2.5\n", "a whole number"),
    "no devices": (PAPER + b"[cell]\nnum_devices = 0\n", "cell.num_devices"),
    "fractional devices": (PAPER + b"[cell]\nnum_devices = 2.5\n", "cell.num_devices"),
    "devices as boolean": (PAPER + b"[cell]\nnum_devices = true\n", "True is no whole number"),
    "misspelt key hides a missing one": (
        PAPER + b'[cell]\nplacement = { law = "disc", far_m = 3 }\n',
        "far_m: unknown key",
    ),
    "missing nested key": (
        PAPER + b'[cell]\nplacement = { law = "disc" }\n',
        "cell.placement.radius_m: missing; add it",
    ),
    "date": (PAPER + b"[cell]\ndeadline_s = 2020-01-01\n", "is no time"),
    "uncountable iterations": (PAPER + b"[compute]\nseconds_per_bit = 1e-18\n", "set compute.max_iterations"),
    "ridge of zero": (PAPER + b"[utility]\neffort_ridge = 0\n", "utility.effort_ridge"),
    "devices as text": (PAPER + b'[cell]\nnum_devices = "ten"\n', "cell.num_devices"),
    "unknown choice": (PAPER + b'[utility]\neffort_fit = "best"\n', "utility.effort_fit: 'best' is not a choice"),
    "cap below minimum": (PAPER + b"[compute]\nmax_iterations = 3\n", "below the fewest iterations of device 0"),
    "near beyond far": (PAPER + b'[cell]\nplacement = { law = "linspace", near_m = 9, far_m = 3 }\n', "swap them"),
    "ring inside out": (
        PAPER + b'[cell]\nplacement = { law = "disc", radius_m = 3, min_distance_m = 5 }\n',
        "lower it",
    ),
    "negative distance": (
        PAPER + b'[cell]\nnum_devices = 1\nplacement = { law = "list", distance_m = [-5] }\n',
        "device 0: -5 is out of range",
    ),
    "wrong length": (PAPER + b"[compute]\ncompute_power_w = [0.1, 0.2]\n", "2 values for 10 devices"),
    "empty list": (PAPER + b"[compute]\ncompute_power_w = []\n", "the list is empty"),
    "bad list member": (PAPER + b'[compute]\ncompute_power_w = [0.1, "1 s"]\n', 'device 1: "1 s" is a time'),
    "column without file": (PAPER + b'[compute]\ncompute_power_w = { column = "p" }\n', "compute.compute_power_w"),
    "missing column file": (
        PAPER + b'[compute]\ncompute_power_w = { file = "gone.csv", column = "p" }\n',
        "cannot be read",
    ),
    "estimate drowned": (PAPER + b"[radio]\nchannel_error_std = 1\n", "drowns the channel"),
    "constants apart": (PAPER + b"[learning]\nsmoothness = 1\n", "go together"),
    "mu above L": (PAPER + b"[learning]\nsmoothness = 1\nstrong_convexity = 2\n", "exceeds smoothness"),
    "accuracy of other data": (
        PAPER + b"[data]\nsamples_per_device = 100\nrefreshed_samples = 5\n"
        b"[run]\nglobal_accuracy = 0.1\noptimal_loss = 0.1\n",
        "other data are another problem",
    ),
    "decay below all energies": (PAPER + b"[utility]\neffort_decay_j = 1e-13\n", "at least 1e-12 J"),
    "layer of nothing": (PAPER + b"[learning]\nlayer_sizes = [784, 0, 10]\n", "learning.layer_sizes"),
    "text for a list": (
        PAPER + b'[defences]\nuse = "reputation"\n',
        """defences.use: 'reputation' is not a list; write it in brackets, as in ["reputation"]""",
    ),
    "text for a table in a list": (
        PAPER + b'[cheating]\nadversaries = ["echo"]\n',
        "cheating.adversaries.0: 'echo' is not a table; write it as { behaviour = ..., devices = ... }",
    ),
    "text for a choice of two": (
        PAPER + b'[learning]\ngradient_exchange = "no way"\n',
        "'no way' is neither true nor false; write one of them, without quotes",
    ),
    "number for text": (PAPER + b"[data]\nsource = 3\n", "data.source: 3 is not text; write it in quotes"),
    "negative seed": (PAPER + b"[run]\nseed = -1\n", "run.seed"),
}

DEVICE_FILES = {
    "empty file": ("fleet.csv", b"", "the file is empty"),
    "header only": ("fleet.csv", b"distance_m\n", "no rows"),
    "missing column": ("fleet.csv", b"compute_power_w\n0.1\n", "no column 'distance_m'"),
    "unknown column": ("fleet.csv", b"distance_m,bandwith_hz\n10,1e6\n", "did you mean 'bandwidth_hz'?"),
    "duplicate column": ("fleet.csv", b"distance_m,distance_m\n10,20\n", "stands twice"),
    "negative distance": ("fleet.csv", b"distance_m\n10\n-3\n", "column 'distance_m', row 2: -3 is out of range"),
    "zero distance": ("fleet.csv", b"distance_m\n0\n", "out of range"),
    "nan": ("fleet.csv", b"distance_m\n10\nnan\n", "row 2: the value is blank or not finite"),
    "blank cell": (
        "fleet.csv",
        b"distance_m,compute_power_w\n10,0.1\n20,\n",
        "row 2: the value is blank or not finite",
    ),
    "infinite": ("fleet.csv", b"distance_m\ninf\n", "row 1: the value is blank or not finite"),
    "blank column": ("fleet.csv", b"distance_m,compute_power_w\n10,\n20,\n", "column 'compute_power_w' is blank"),
    "semicolons": ("fleet.csv", b"device;distance_m\na;10\n", "separated by ';'"),
    "comma too many": ("fleet.csv", b"distance_m,\n10,\n", "has no name"),
    "utf-16": ("fleet.csv", "distance_m\n10\n".encode("utf-16"), "not UTF-8"),
    "tiny distance": ("fleet.csv", b"distance_m\n1e-300\n", "out of range"),
    "name twice": ("fleet.csv", b"device,distance_m\na,10\na,20\n", "'a' stands twice"),
    "name left out": ("fleet.csv", b"device,distance_m\n,10\nb,20\n", "is no name"),
    "name not printable": ("fleet.csv", b"device,distance_m\na\x00b,10\n", "fleet.csv"),
    "name not utf-8": ("fleet.csv", b"device,distance_m\nb\xe9ta,10\n", "not UTF-8"),
    "text": ("fleet.csv", b"distance_m\n10 m\n", "not numeric"),
    "huge value": ("fleet.csv", b"distance_m\n1e300\n", "out of range"),
    "ragged rows": ("fleet.csv", b"distance_m,compute_power_w\n10,0.1\n20\n", "not a valid csv file"),
    "not utf-8": ("fleet.csv", b"distance_m,\xff\xfe\n10,1\n", "fleet.csv"),
    "not a csv": ("fleet.csv", b"\x00\x01\x02", "fleet.csv"),
    "not parquet": ("fleet.parquet", b"PAR1 but no", "not a valid parquet file"),
    "unknown kind": ("fleet.xlsx", b"distance_m\n10\n", "give .csv or .parquet"),
    "fractional count": ("fleet.csv", b"distance_m,min_iterations\n10,2.5\n", "a whole number"),
}

OVERRIDES = {
    "no value": ("radio.bandwidth_hz", "not of the form group.key=value"),
    "no group": ("bandwidth_hz=1e6", "not of the form group.key=value"),
    "unknown key": ("radio.bandwith_hz=1e6", "did you mean 'bandwidth_hz'?"),
    "through a value": ("radio.carrier_hz.x=1", "is a value, not a table"),
    "wrong unit": ("radio.bandwidth_hz=1 s", "is a time; expected a frequency"),
    "text for a list of tables": (
        "cheating.adversaries=echo",
        "cheating.adversaries: 'echo' is not a list; write a table for each member, as in [{ behaviour = ..., devices = ... }]",
    ),
    "required unset": ("radio.bandwidth_hz=unset", "radio.bandwidth_hz: missing"),
}


def one_line(outcome, said: str) -> None:
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("fairwave: ")
    assert outcome.err.count("\n") == 1 and outcome.err.endswith("\n")
    assert said in outcome.err


@pytest.mark.parametrize(("content", "said"), SCENARIOS.values(), ids=SCENARIOS)
def test_scenario(content, said, tmp_path: Path, capsys, monkeypatch):
    (tmp_path / "mine.toml").write_bytes(content)
    one_line(fairwave(capsys, monkeypatch, "plan", str(tmp_path / "mine.toml"), "--no-fading"), said)


@pytest.mark.parametrize(("name", "content", "said"), DEVICE_FILES.values(), ids=DEVICE_FILES)
def test_device_file(name, content, said, tmp_path: Path, capsys, monkeypatch):
    (tmp_path / name).write_bytes(content)
    one_line(fairwave(capsys, monkeypatch, "plan", "--devices", str(tmp_path / name), "--no-fading"), said)


@pytest.mark.parametrize(("override", "said"), OVERRIDES.values(), ids=OVERRIDES)
def test_override(override, said, capsys, monkeypatch):
    one_line(fairwave(capsys, monkeypatch, "plan", "paper", "--set", override), said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "papre"), "did you mean 'paper'?"),
        (("plan", "gone.toml"), "no such file"),
        (("plan", "--devices", "gone.csv"), "cannot be read"),
        (
            ("plan", "examples/fleet.csv"),
            "fleet.csv: is a table of devices, not a scenario; 'fairwave plan --devices examples/fleet.csv' plans for it",
        ),
        (("run", "gone.csv"), "gone.csv: no such file"),
        (("plan", "--policies", "proposd"), "did you mean 'proposed'?"),
        (("plan", "--policies", ","), "none given"),
        (("plan", "--battery", "2 W"), "is a power; expected an energy"),
        (("plan", "--battery", "2"), '--battery 2: has no unit; write it with one, such as "2 Wh"'),
        (("plan", "--battery", "2.5"), 'such as "2.5 Wh"'),
        (("run", "small", "--seeds", "4..0"), "--seeds '4..0': 4..0 ends before it begins; write 0..4"),
        (("sweep", "paper"), 'paper: is a scenario; a study file names it, as in scenario = "paper"'),
        (("plan", "--draws", "0"), "out of range"),
        (("plan", "--draws", "99999999999"), "out of range"),
        (("plan", "--rows", "0"), "at least one"),
        (("plan", "--out", "plan.xlsx"), "unknown ending '.xlsx'"),
        (("plan", "--plot", "plan.gif"), "unknown ending '.gif'"),
        (("scenario", "show", "."), "cannot be read"),
    ],
)
def test_arguments(arguments, said, capsys, monkeypatch):
    one_line(fairwave(capsys, monkeypatch, *arguments), said)


def test_a_scenario_file_is_no_study_file(tmp_path: Path, capsys, monkeypatch):
    (tmp_path / "mine.toml").write_bytes(PAPER)
    one_line(fairwave(capsys, monkeypatch, "sweep", str(tmp_path / "mine.toml")), "mine.toml: is a scenario")
    (tmp_path / "whole.toml").write_bytes(b"[cell]\nnum_devices = 3\n")
    one_line(fairwave(capsys, monkeypatch, "sweep", str(tmp_path / "whole.toml")), "whole.toml: is a scenario")


def test_the_file_of_a_run_and_a_folder_of_runs_are_not_runs(tmp_path: Path, capsys, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.sqlite").touch()
    file = tmp_path / "first" / "run.sqlite"
    said = fairwave(capsys, monkeypatch, "report", str(file))
    assert said.code == 5 and f"{file}: is the file of a run; give its folder, {file.parent}" in said.err
    said = fairwave(capsys, monkeypatch, "report", str(tmp_path))
    assert (
        said.code == 5 and f"{tmp_path}: holds 2 runs, not one; give one of them, such as {file.parent}\n" in said.err
    )
    (tmp_path / "sweep.html").touch()
    said = fairwave(capsys, monkeypatch, "report", str(tmp_path))
    assert f"such as {file.parent}, or open {tmp_path / 'sweep.html'}, which compares them\n" in said.err
    shutil.rmtree(tmp_path / "second")
    said = fairwave(capsys, monkeypatch, "report", str(tmp_path))
    assert f"{tmp_path}: is no run, and holds one; give its folder, {file.parent}\n" in said.err
    said = fairwave(capsys, monkeypatch, "runs", "rm", str(file), "--yes")
    assert said.code == 5 and f"{file}: is the file of a run; give its folder, {file.parent}" in said.err


def test_a_file_that_is_wrong_is_named_once(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.csv").write_bytes(b"distance_m\n10\n-3\n")
    said = fairwave(capsys, monkeypatch, "plan", "--devices", "fleet.csv", "--no-fading")
    one_line(said, "fairwave: fleet.csv: column 'distance_m', row 2: -3 is out of range")
    assert said.err.count("fleet.csv") == 1


def test_a_folder_keeps_to_its_scenario_and_a_coalition_to_its_cell(tmp_path: Path, capsys, monkeypatch):
    folder = str(tmp_path / "run")
    options = (*as_options(SOFTMAX_MNIST), "--rounds", "1", "--schemes", "max_power", "--out", folder)
    said = fairwave(capsys, monkeypatch, "run", "small", *options)
    assert said.code == 0 and said.err.startswith("warning: radio.payload_bits: plans charge 875 kbit")
    again = fairwave(capsys, monkeypatch, "run", "small", *options)
    assert again.code == 0 and "warning" not in again.err  # it has been said, and nothing is left to train
    said = fairwave(capsys, monkeypatch, "run", "paper", "--out", folder)
    assert (
        said.code == 5 and f"{folder}: holds a run of another scenario, with cell.num_devices = 3, not 10 (" in said.err
    )
    assert said.err.endswith(" parameters differ); choose another --out\n") and said.err.count("\n") == 1
    for form in ("text", "json"):
        said = fairwave(capsys, monkeypatch, "privacy", folder, "--coalition", "99", "--format", form)
        one_line(said, "--coalition 99: is more than the other devices of a cell of 3; give a number from 1 to 2")
    assert fairwave(capsys, monkeypatch, "privacy", folder, "--coalition", "2").code == 0


def test_plan_makes_the_folder_of_its_files_before_it_works(tmp_path: Path, capsys, monkeypatch):
    wanted = tmp_path / "not" / "there" / "plan.csv"
    assert fairwave(capsys, monkeypatch, "plan", "--no-fading", "--out", str(wanted)).code == 0 and wanted.exists()
    (tmp_path / "file").touch()
    said = fairwave(capsys, monkeypatch, "plan", "--no-fading", "--out", str(tmp_path / "file" / "plan.csv"))
    assert (said.code, said.out) == (4, "") and "cannot be made (File exists); choose another folder" in said.err


@pytest.mark.parametrize("command", [(), ("run",), ("study", "attacks"), ("runs",), ("scenario", "show")])
def test_help_has_a_short_name(command, capsys, monkeypatch):
    short, long = (fairwave(capsys, monkeypatch, *command, option) for option in ("-h", "--help"))
    assert (short.code, short.out) == (0, long.out) and "Usage:" in short.out


def test_there_are_enough_cases():
    assert len(SCENARIOS) + len(DEVICE_FILES) >= 40


def test_a_shell_sees_the_same(tmp_path: Path):
    (tmp_path / "mine.toml").write_bytes(SCENARIOS["wrong unit"][0])
    done = subprocess.run(
        [sys.executable, "-m", "fairwave", "plan", str(tmp_path / "mine.toml")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
