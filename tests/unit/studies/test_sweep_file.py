"""Study files: what is read, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairwave.errors import ArgumentError, FairwaveError
from fairwave.studies.laws import Choice, Range
from fairwave.studies.sweep import points
from fairwave.studies.sweep_file import Sweep, load_sweep

GRID = "\n[grid]\ncell.num_devices = [2, 3]\n"
TOP = 'scenario = "small"\n'
EXAMPLE = Path(__file__).parents[3] / "examples" / "sweep.toml"


def read(text: str, tmp_path: Path) -> Sweep:
    file = tmp_path / "study.toml"
    file.write_text(text, encoding="utf-8")
    return load_sweep(file)


def law(table: str, parameter: str = "utility.energy_reference_j") -> str:
    return f"{TOP}[random]\ndraws = 2\n{parameter} = {table}\n"


def test_the_example_is_read_whole():
    asked = load_sweep(EXAMPLE)
    assert asked.seeds == (0, 1) and asked.rounds == 5 and asked.schemes == ("proposed", "max_power")
    assert asked.parameters == ("cell.num_devices", "utility.energy_reference_j", "radio.bandwidth_hz")
    assert asked.laws["utility.energy_reference_j"] == Range("log_uniform", 0.2, 1.0, whole=False)
    assert asked.laws["radio.bandwidth_hz"] == Choice(law="choice", values=("250 kHz", "1 MHz"))
    assert EXAMPLE.read_text().partition("\n")[2] in (EXAMPLE.parents[1] / "docs" / "sweeps.md").read_text()
    found = points(asked, EXAMPLE)
    assert len(found) == asked.num_points == 12
    assert {point.job.order.scenario.data.samples_per_device for point in found} == {200}


def test_quoted_and_bare_names_are_the_same(tmp_path):
    bare = TOP + "[grid]\ncell.placement.near_m = [10, 20]\n"
    quoted = TOP + '[grid]\n"cell.placement.near_m" = [10, 20]\n'
    assert read(bare, tmp_path) == read(quoted, tmp_path)
    assert read(law('{ law = "uniform", low = 1, high = 2 }'), tmp_path).parameters == ("utility.energy_reference_j",)


def test_laws_of_a_scenario_are_swept_too(tmp_path):
    text = (
        TOP
        + '[grid]\nradio.fading.law = ["rayleigh"]\ncell.placement = [{ law = "disc", radius_m = "90 m" }, "unset"]\n'
    )
    asked = read(text, tmp_path)
    assert asked.parameters == ("radio.fading.law", "cell.placement")
    with pytest.raises(FairwaveError, match=r"cell.placement = 'unset': small: cell.placement: missing"):
        points(asked, tmp_path / "study.toml")
    (point,) = points(read(text.replace(', "unset"', ""), tmp_path), tmp_path / "study.toml")
    assert point.job.order.scenario.cell.placement.radius_m == 90.0
    assert point.job.name.startswith("cell.placement=-law-disc-radius_m-90-m-,radio.fading.law=rayleigh-")


def test_seeds_and_rounds_are_the_scenario_s_unless_given(tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "small"\n[run]\nseed = 7\nnum_rounds = 3\n')
    asked = read('scenario = "mine.toml"\n' + GRID, tmp_path)
    orders = [point.job.order for point in points(asked, tmp_path / "study.toml")]  # beside the file, wherever we are
    assert [(order.seeds, order.rounds) for order in orders] == [((7,), 3), ((7,), 3)]
    assert read(TOP + "seeds = [3, 1]\n" + GRID, tmp_path).seeds == (3, 1)


BAD = {
    "empty": ("", "scenario: missing; add it"),
    "not toml": ("[grid\n", "not valid TOML"),
    "unknown key": (TOP + 'scheme = ["proposed"]\n' + GRID, "scheme: unknown key; did you mean 'schemes'?"),
    "scenario no text": ("scenario = 3\n" + GRID, "scenario: 3 is no scenario; give a preset or a file"),
    "schemes no list": (TOP + 'schemes = "proposed"\n' + GRID, "schemes: 'proposed' is no list of texts"),
    "unknown scheme": (TOP + 'schemes = ["propsed"]\n' + GRID, "did you mean 'proposed'?"),
    "seeds unreadable": (TOP + 'seeds = "0-4"\n' + GRID, "seeds: '0-4': cannot be read; give whole numbers such as"),
    "seeds no numbers": (TOP + "seeds = [0.5]\n" + GRID, "seeds: [0.5] are no seeds"),
    "no rounds": (TOP + "rounds = 0\n" + GRID, "rounds: 0 is out of range; it must be a whole number at least 1"),
    "set no list": (TOP + 'set = "a.b=1"\n' + GRID, "set: 'a.b=1' is no list of texts"),
    "set wrong": (TOP + 'set = ["cell.deadline=1"]\n' + GRID, "cell.deadline: unknown key; did you mean 'deadline_s'?"),
    "nothing swept": (TOP, "nothing is swept; add [grid] or [random]"),
    "grid no table": (TOP + "grid = 3\n", "grid: 3 is not a table"),
    "grid without a dot": (TOP + "[grid]\ncel = [1]\n", "cel: no parameter; did you mean 'cell'?"),
    "unknown parameter": (
        TOP + "[grid]\ncell.num_device = [1]\n",
        "grid: cell.num_device: unknown key; did you mean 'num_devices'?",
    ),
    "below a number": (TOP + "[grid]\ncell.num_devices.x = [1]\n", "cell.num_devices.x: unknown key; shorten it"),
    "one value": (TOP + "[grid]\ncell.num_devices = 3\n", "cell.num_devices: 3 is no list of values"),
    "no value": (TOP + "[grid]\ncell.num_devices = []\n", "cell.num_devices: [] is no list of values"),
    "bad value": (
        TOP + "[grid]\ncell.num_devices = [2, 0]\n",
        "at cell.num_devices = 0: small: cell.num_devices: 0 is out of range",
    ),
    "bad unit": (
        TOP + '[grid]\nradio.bandwidth_hz = ["1 mW"]\n',
        "'1 mW': small: radio.bandwidth_hz: \"1 mW\" is a power",
    ),
    "twice": (TOP + '[grid]\nradio.bandwidth_hz = ["1 MHz", 1e6]\n', "radio.bandwidth_hz=1000000 stands twice"),
    "seed swept": (TOP + "[grid]\nrun.seed = [1, 2]\n", "run.seed is not swept: seeds at the top of the file"),
    "too many": (TOP + f"[grid]\ncell.num_devices = {list(range(1, 10_002))}\n", "10001 points, and at most 10000"),
    "in both": (
        law('{ law = "choice", values = [2] }', "cell.num_devices") + GRID,
        "cell.num_devices stands in both [grid] and [random]; keep one",
    ),
    "random no table": (TOP + "random = 3\n", "random: 3 is not a table"),
    "nothing drawn": (TOP + "[random]\ndraws = 3\n", "random: nothing to draw; add a law"),
    "no draws": (
        TOP + "[random]\ncell.num_devices = { law = 'choice', values = [2] }\n",
        "random.draws: missing; add it",
    ),
    "draws misspelt": (TOP + "[random]\ndarws = 3\n", "darws: no parameter; did you mean 'draws'?"),
    "zero draws": (law("{ law = 'choice', values = [1] }").replace("= 2", "= 0"), "random.draws: 0 is out of range"),
    "no law": (law("{ low = 1, high = 2 }"), "utility.energy_reference_j: no law given"),
    "law no table": (law("3"), "utility.energy_reference_j: 3 is no law"),
    "unknown law": (law('{ law = "loguniform", low = 1, high = 2 }'), "did you mean 'log_uniform'?"),
    "no high": (law('{ law = "uniform", low = 1 }'), "utility.energy_reference_j: high: missing; add it"),
    "misspelt bound": (law('{ law = "uniform", low = 1, hihg = 2 }'), "hihg: unknown key; did you mean 'high'?"),
    "bound unit": (law('{ law = "uniform", low = "1 W", high = 2 }'), 'low: "1 W" is a power; expected an energy'),
    "bound range": (law('{ law = "uniform", low = -1, high = 2 }'), "low: -1 is out of range; it must be above 0 J"),
    "bounds swapped": (law('{ law = "uniform", low = 2, high = 1 }'), "low 2 is not below high 1; swap them"),
    "no logarithm": (
        law('{ law = "log_uniform", low = 0, high = 1 }', "radio.channel_error_std"),
        "low 0 has no logarithm",
    ),
    "no number": (law('{ law = "uniform", low = 1, high = 2 }', "privacy.mode"), 'use law = "choice" with values'),
    "no values": (law('{ law = "choice", values = [] }'), "values: [] is no list of values"),
    "values and bounds": (law('{ law = "choice", low = 1 }'), "low: unknown key"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_in_one_line(tmp_path, text, said):
    file = tmp_path / "study.toml"
    with pytest.raises(FairwaveError) as caught:
        points(read(text, tmp_path), file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ") and said in message and "\n" not in message
    assert caught.value.exit_code == 2


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be read"):
        load_sweep(tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ArgumentError, match="not UTF-8"):
        load_sweep(tmp_path / "bytes.toml")
