"""docs/reproduction.md and the README say what the runs of the study say, and no number besides."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import xarray as xr

from tests.made_up_results import made_up_results

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduction.md"
SCHEMES = ["proposed", "max_power", "amplifier_cap", "priced"]
MEASURED = re.compile(r"\d\.\d|\d (mJ|Mbit/s)|(?<!95) %")
"""What a number from a run looks like; intervals are 95 % whatever the run."""


@pytest.fixture(scope="module")
def filler() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reproduction", ROOT / "docs" / "reproduction.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results() -> xr.Dataset:
    """Energies 0.2, and 0.3 + 0.1 k for the others; losses of `proposed` 10 % above theirs."""
    energy = np.full((4, 2, 5, 3), 0.2) + 1e-3 * np.arange(3)
    energy[1:] += 0.1 + 0.1 * np.arange(3)
    loss = np.broadcast_to(np.linspace(2.2, 1.0, 5)[:, None], (4, 2, 5, 3)).copy()
    loss[0] *= 1.1
    return made_up_results(SCHEMES, seeds=2, path_loss_db=[70, 80, 90], loss=loss, energy_j=energy)


def runs(results: xr.Dataset) -> dict[str, xr.Dataset]:
    pair = results.sel(scheme=SCHEMES[:2])
    return {"paper": results, "paper-clean": results, "paper-prior": pair, "paper-clean-broadcast": pair}


def test_every_block_of_the_pages_can_be_filled(filler, results):
    told = filler.blocks(runs(results))
    for path in filler.FILES:
        text = path.read_text("utf-8")
        filled = filler.written(text, told)
        assert filler.BLOCK.findall(text) and filler.written(filled, told) == filled
        assert not re.search(r"<!-- \w+: [\w-]+ -->\n<!-- end -->", filled)
    used = {(found["run"], found["name"]) for path in filler.FILES for found in filler.BLOCK.finditer(path.read_text())}
    made = {(run, name) for run, each in told.items() for name in each} - {("paper", "summary")}
    assert used == made


def test_a_changed_number_changes_the_page_where_it_stands(filler, results):
    """Losses of `proposed` rise by a half in `paper-clean` alone."""
    text = PAGE.read_text("utf-8")
    other = results.copy(deep=True)
    other["loss"][0] *= 1.5
    before, after = (
        filler.written(text, filler.blocks(runs(results) | {"paper-clean": each})) for each in (results, other)
    )

    def part(page: str, name: str) -> str:
        return next(found[0] for found in filler.BLOCK.finditer(page) if found[0].startswith(f"<!-- {name} -->"))

    assert "+10.00 %" in part(before, "headlines: paper-clean") and "+65.00 %" in part(after, "headlines: paper-clean")
    for name in ("headlines: paper", "size: paper-clean", "fades: paper-clean"):
        assert part(before, name) == part(after, name)
    for name in ("gaps", "verdict", "values", "learning", "readings"):
        assert part(before, f"{name}: paper-clean") != part(after, f"{name}: paper-clean")


def test_other_readings_are_told_as_far_as_they_were_run(filler, results):
    told = filler.blocks(runs(results))
    assert "`utility.effort_fit=prior`" in told["paper"]["readings"]
    assert "broadcast" not in told["paper"]["readings"] and "broadcast" in told["paper-clean"]["readings"]


def test_a_preset_that_was_not_run_is_named(filler, results):
    with pytest.raises(SystemExit, match="paper-clean: no such run"):
        filler.blocks({"paper": results})


def test_prose_has_no_numbers_of_runs(filler):
    prose = filler.BLOCK.sub("", PAGE.read_text("utf-8"))
    assert MEASURED.findall(prose) == []
    assert MEASURED.search("+6.26 %") and MEASURED.search("adds 2 to 5 mJ") and not MEASURED.search("95 %, Student's t")


def test_figures_are_drawn_from_the_run(filler, results, tmp_path):
    filler.draw(results, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"training_loss.svg", "energy.svg"}
    assert "path loss (dB)" in (tmp_path / "energy.svg").read_text("utf-8")


@pytest.mark.parametrize("page", ["frontier", "external", "contribution"])
def test_measured_tables_are_what_their_rows_say(page):
    command = [sys.executable, ROOT / "docs" / f"{page}.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
