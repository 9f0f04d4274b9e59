"""Odd sizes and odd data: each runs, or is refused with one clear line."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import fairwave
from fairwave.errors import ScenarioError

SOFTMAX = ["learning.model=softmax", "learning.layer_sizes=[784, 10]", "compute.bits_per_iteration=802816"]


def simulated(*overrides: str, rounds: int = 2) -> xr.Dataset:
    scenario = fairwave.load_scenario("small", [*SOFTMAX, "learning.batch_size=16", *overrides])
    return fairwave.simulate(scenario, ["proposed"], rounds=rounds).results.squeeze(("scheme", "seed"))


def check_sound(results: xr.Dataset) -> None:
    """What holds in any cell: the laws of energy, deviation and noise, and devices that have learned something."""
    names = ("loss", "received_loss", "energy_j", "deviation", "noise_std", "global_loss", "test_accuracy")
    assert all(np.isfinite(results[name]).all() for name in names)
    sent = results["delivered"] == 1
    assert sent.mean() > 0.5 and (sent == ~results["outage"].astype(bool)).all()
    np.testing.assert_allclose(results["energy_j"], results["compute_energy_j"] + results["transmit_energy_j"])
    assert ((results["energy_j"] > 0) == sent).all() and ((results["local_iterations"] >= 10) == sent).all()
    assert ((results["deviation"] >= 0) & (results["deviation"] <= 1)).all()
    np.testing.assert_allclose(results["noise_std"], 0.01 * 5.09980 / (1 - 0.6 * results["deviation"]), rtol=1e-5)
    gained = (results["received_loss"] - results["loss"]).where(sent).isel(round=0)  # from a model without noise
    assert gained.mean() > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ["cell.num_devices=3"],
        ["cell.num_devices=1"],
        ["cell.num_devices=200", "data.samples_per_device=20"],
        ["learning.batch_size=1"],
        ["data.samples_per_device=1"],
        ['data.partition={law="dirichlet", alpha=0.1}', "data.samples_per_device=unset", "cell.num_devices=10"],
        ['data.partition={law="shards", per_device=2}'],
        ['data.partition={law="quantity", alpha=1.0}'],
        ["learning.gradient_exchange=false"],
        ["privacy.similarity=leave_one_out", "cell.num_devices=1"],
        ["radio.fading={law='none'}"],
        ["utility.effort_fit=window", "utility.effort_window=1"],
    ],
    ids=" ".join,
)
def test_runs(overrides):
    check_sound(simulated(*overrides))


@pytest.mark.slow
def test_dirichlet_shares_are_as_skewed_as_asked():
    results = simulated(
        'data.partition={law="dirichlet", alpha=0.1}', "data.samples_per_device=unset", "cell.num_devices=10", rounds=1
    )
    share = results["samples"].values / results["samples"].values.sum(axis=1, keepdims=True)
    assert results["samples"].values.sum() == 60_000 and share.max(axis=1).mean() > 0.4


@pytest.mark.slow
def test_all_in_outage_trains_nothing_and_spends_nothing():
    results = simulated("radio.max_transmit_power_w=1e-9", rounds=3)
    assert results["outage"].all() and (results["energy_j"] == 0).all() and (results["local_iterations"] == 0).all()
    assert np.ptp(results["global_loss"].values) == 0 and np.isfinite(results["loss"]).all()


@pytest.mark.slow
def test_fashion_like_idx_files(tmp_path: Path):
    """The four files of MNIST's kin, with other content."""
    draw = np.random.default_rng(0)
    for name, count in (("train", 400), ("t10k", 100)):
        labels = draw.integers(0, 10, count)
        images = np.clip(draw.integers(0, 60, (count, 28, 28)) + 19 * labels[:, None, None], 0, 255)
        for kind, array in ((f"{name}-images-idx3-ubyte", images), (f"{name}-labels-idx1-ubyte", labels)):
            head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            (tmp_path / kind).write_bytes(head + array.astype(np.uint8).tobytes())
    check_sound(simulated(f"data.source={tmp_path}", "data.samples_per_device=100"))


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["cell.num_devices=60001"], "gets none of the 60000 samples"),
        (['data.partition={law="dirichlet", alpha=0.001}', "cell.num_devices=40"], "gets none of the 60000 samples"),
        (["cell.participants=5"], "exceeds num_devices 4"),
        (["data.refreshed_samples=10", "data.samples_per_device=unset"], "already holds all 15000 samples"),
        (["learning.layer_sizes=[784, 9]"], "make them fit"),
        (
            ["compute.min_iterations=1000000"],
            "is over before devices 0, 1, 2, 3 have done their fewest iterations, up to",
        ),
        (["compute.min_iterations=[10, 10, 1000, 10]"], "is over before device 2 has done its"),
        (
            ["learning.smoothness=1", "learning.strong_convexity=0.1", "learning.local_accuracy=0.5"],
            r"fewest iterations, up to 348 \(compute.min_iterations, or learning.local_accuracy\)",
        ),
    ],
)
def test_refused_in_one_line(overrides, said):
    with pytest.raises(ScenarioError, match=said) as error:
        simulated(*overrides)
    assert "\n" not in str(error.value)
