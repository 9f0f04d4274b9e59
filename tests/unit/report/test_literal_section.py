"""A run that follows the paper to the letter says what goes wrong, in its own numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

from fairwave.report.literal_section import consequences, literal_section
from fairwave.scenario.loading import load_scenario

ROUNDS, DEVICES, LEVEL = 9, 4, 0.05


@pytest.fixture
def results() -> xr.Dataset:
    """Two seeds: noise of std 0.05, accuracy that peaks in round 3, updates of length 0.5, deviation without work."""
    shape = (1, 2, ROUNDS, DEVICES)
    dims = ("scheme", "seed", "round", "device")
    norms = np.full(shape, 0.5)
    norms[:, :, 0] = 0.01
    accuracy = np.array([0.1, 0.5, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2])
    iterations = np.broadcast_to(np.arange(DEVICES), shape)
    values = {
        "noise_std": LEVEL * np.broadcast_to([1.0, 1.5, 2.0, 2.5], shape),
        "update_norm": norms,
        "local_iterations": iterations,
        "deviation": 1.0 - iterations / DEVICES,
    }
    return xr.Dataset(
        {name: (dims, value) for name, value in values.items()}
        | {"test_accuracy": (dims[:3], np.broadcast_to(accuracy, shape[:3]))},
        coords={"scheme": ["proposed"], "round": np.arange(1, ROUNDS + 1)},
    )


def said(results: xr.Dataset, *overrides: str, preset: str = "paper-literal") -> list[str]:
    return list(consequences(load_scenario(preset, overrides), results))


def test_every_reading_has_its_sentence(results):
    overwritten, zero, noise, fluctuating = said(results)
    assert "noise of all 9 rounds adds up in it. It reaches a std of 0.150 per parameter, 3.0 times" in overwritten
    assert said(results.assign(test_accuracy=np.nan * results["test_accuracy"]))[0].endswith("one release.")
    assert "is 0.200 at the end, and was 0.800 at best, in round 3" in overwritten
    error = results.rename(test_accuracy="test_rmse")  # of a model that predicts numbers: the least is best
    assert "test RMSE is 0.200 at the end, and was 0.100 at best, in round 1" in said(error)[0]
    assert "round 1 has length 0.01, that of round 2 0.5" in zero
    # 0.05 * sqrt(109,386) = 16.5 over 0.5 and over 0.01
    assert "33 to 1654 times as long" in noise and "its deviation is -1.00" in noise
    assert "here from 0.0500 to 0.0500" in fluctuating


def test_a_sentence_follows_its_setting_and_its_number(results):
    assert [line for line in said(results, "privacy.overwrite_model=false") if "noisy model" in line] == []
    assert [line for line in said(results, "learning.first_model=random") if "zeros" in line] == []
    one_layer = said(results, "learning.model=softmax", "learning.layer_sizes=[784, 10]")
    assert [line for line in one_layer if "zeros" in line] == []
    quiet = results.assign(noise_std=0.0 * results["noise_std"]).assign_coords(scheme=["no_privacy"])
    assert [line.split(":")[0] for line in said(quiet)] == [
        "no_privacy",
        "The sensitivity differs from round to "
        + ("round, and with it the least noise in a copy. A sensitivity has to be a bound over all possible data"),
    ]
    louder = results.assign(noise_std=2.0 * results["noise_std"])
    assert "std of 0.300 per parameter" in said(louder)[0]


def test_the_level_is_taken_seed_by_seed(results):
    """Another device is the best in each seed: the mean over seeds of every device is above the level."""
    mixed = results.copy(deep=True)
    mixed["noise_std"].values[0, 1] = LEVEL * np.array([2.0, 1.0, 1.5, 2.5])
    assert "std of 0.150 per parameter, 3.0 times" in said(mixed)[0]


def test_the_recommended_readings_have_no_section(results):
    for preset in ("paper", "paper-clean", "fair-mlp"):
        assert said(results, preset=preset) == []
    assert literal_section(results) == ""  # not stored, so that its scenario is not known
    described = load_scenario("paper-literal").model_dump_json()
    page = literal_section(results.assign_attrs(scenario=described))
    assert page.startswith("<h3>Read to the letter") and len(re.findall("<li>", page)) == 4
