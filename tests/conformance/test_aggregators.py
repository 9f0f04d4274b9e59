"""What every aggregator in the registry must do, and what each does, beside Flower's functions and NumPy."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import fairwave
from fairwave.errors import ScenarioError
from fairwave.extensions import AGGREGATORS
from fairwave.runs.order import Order
from fairwave.scenario.defence_parameters import Defences
from tests.builders import clusters_cell, rounds_of

EVERYTHING = tuple(AGGREGATORS.builtin_names())
ROBUST = tuple(name for name in EVERYTHING if name != "mean")
DEVICES, SIZE, ATTACKERS = 15, 40, 3
SETTINGS = Defences(attacker_share=0.2)
ALIKE = ("learning.gradient_exchange=false",)
"""With which max_power trains as the server optimizers do."""


def honest(seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return (draw.normal(size=SIZE) + 0.3 * draw.normal(size=(DEVICES, SIZE))).astype(np.float32)


def step(name: str, rows: np.ndarray, arrived: np.ndarray | None = None, settings: Defences = SETTINGS) -> np.ndarray:
    present = np.ones(len(rows), bool) if arrived is None else arrived
    compiled = jax.jit(AGGREGATORS[name].step, static_argnums=0)
    return np.asarray(compiled(settings, jnp.asarray(rows), jnp.asarray(present)))


@pytest.mark.parametrize("name", EVERYTHING)
def test_equal_updates_give_that_update(name):
    rows = np.tile(honest()[0], (DEVICES, 1))
    np.testing.assert_allclose(step(name, rows), rows[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", EVERYTHING)
def test_updates_that_did_not_arrive_do_not_matter(name):
    rows, arrived = honest(), np.arange(DEVICES) < 10
    changed = np.where(arrived[:, None], rows, 1e6).astype(np.float32)
    np.testing.assert_array_equal(step(name, rows, arrived), step(name, changed, arrived))
    np.testing.assert_allclose(step(name, rows, arrived), step(name, rows[:10]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", EVERYTHING)
def test_nobody_and_one_alone(name):
    rows = honest()
    assert (step(name, rows, np.zeros(DEVICES, bool)) == 0.0).all()
    np.testing.assert_allclose(step(name, rows, np.arange(DEVICES) == 4), rows[4], rtol=1e-6)


@pytest.mark.parametrize("name", EVERYTHING)
def test_the_order_of_devices_does_not_matter(name):
    rows, order = honest(), np.random.default_rng(1).permutation(DEVICES)
    np.testing.assert_allclose(step(name, rows[order]), step(name, rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [10.0, 1e6, 1e30, 3e38])
@pytest.mark.parametrize("name", ROBUST)
def test_attackers_up_to_their_share_move_a_robust_step_little(name, size):
    rows = honest()
    attacked = rows.copy()
    attacked[:ATTACKERS] = size * np.sign(np.random.default_rng(2).normal(size=SIZE))
    centre = rows[ATTACKERS:].mean(axis=0)
    farthest = np.linalg.norm(rows[ATTACKERS:] - centre, axis=1).max()
    found = step(name, attacked)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found - centre) <= farthest
    assert not np.linalg.norm(attacked.astype(np.float64).mean(axis=0) - centre) <= farthest  # as the mean is moved


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("name", EVERYTHING)
def test_rows_that_did_not_arrive_are_never_used(name, share):
    rows = np.array([[777.0], [888.0], [1.0], [1e20], [3.0]], np.float32)
    arrived = np.array([False, False, True, True, False])
    found = step(name, rows, arrived, Defences(attacker_share=share))
    assert np.isfinite(found).all() and not 2.0 < found[0] < 1e10


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("name", EVERYTHING)
def test_equal_updates_of_few_devices_are_not_trimmed_away(name, count):
    rows = np.ones((count, 3), np.float32)
    np.testing.assert_allclose(step(name, rows, settings=Defences(attacker_share=0.5)), 1.0, rtol=1e-5)


def as_flower_has_them(rows: np.ndarray) -> list[tuple[list[np.ndarray], int]]:
    return [([row[:25].reshape(5, 5), row[25:]], 1) for row in rows]


@pytest.mark.parametrize("seed", range(4))
def test_as_flower_computes_them(seed):
    from flwr.server.strategy import aggregate as flower

    rows = honest(seed)
    rows[:ATTACKERS] += 5.0
    expected = {
        "coordinate_median": flower.aggregate_median(as_flower_has_them(rows)),
        "trimmed_mean": flower.aggregate_trimmed_avg(as_flower_has_them(rows), 0.2),
        "krum": flower.aggregate_krum(as_flower_has_them(rows), ATTACKERS, 0),
        "multi_krum": flower.aggregate_krum(as_flower_has_them(rows), ATTACKERS, DEVICES - ATTACKERS),
        "bulyan": flower.aggregate_bulyan(as_flower_has_them(rows), ATTACKERS, flower.aggregate_krum, to_keep=0),
    }
    for name, parts in expected.items():
        flat = np.concatenate([part.ravel() for part in parts])
        np.testing.assert_allclose(step(name, rows), flat, rtol=2e-5, atol=2e-5, err_msg=name)


def test_the_geometric_median_has_the_least_sum_of_distances():
    rows = honest(7)
    rows[:ATTACKERS] += 4.0

    def distances(point: np.ndarray) -> float:
        return float(np.linalg.norm(rows.astype(np.float64) - point, axis=1).sum())

    best = minimize(distances, rows.mean(axis=0, dtype=np.float64), method="BFGS", options={"gtol": 1e-6})
    found = step("geometric_median", rows)
    assert distances(found) <= best.fun * (1.0 + 1e-5)
    assert distances(rows.mean(axis=0)) > best.fun * 1.01


def test_centred_clipping_by_hand():
    rows = honest(3)
    rows[:ATTACKERS] += 4.0
    centre = np.median(rows.astype(np.float64), axis=0)
    radius = np.median(np.linalg.norm(rows - centre, axis=1))
    for _ in range(3):
        apart = rows - centre
        factor = np.minimum(1.0, radius / np.linalg.norm(apart, axis=1))
        centre = centre + (factor[:, None] * apart).mean(axis=0)
    np.testing.assert_allclose(step("centred_clipping", rows), centre, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_cell_trains_with_it(name):
    cell = clusters_cell("proposed", f"defences.aggregator={name}", "privacy.local_noise=false")
    records = [record for _, record in rounds_of(cell, 3)]
    assert float(records[-1].global_loss) < float(records[0].global_loss)
    assert AGGREGATORS[name].name == name and AGGREGATORS[name].summary


def test_server_optimizers_begin_with_it():
    moved = {}
    for name in ("mean", "krum"):
        cell = clusters_cell("fedavgm", f"defences.aggregator={name}", "peers.server_momentum=0")
        moved[name] = rounds_of(cell, 1)[0][0].server.global_params
        plain = rounds_of(clusters_cell("max_power", f"defences.aggregator={name}", *ALIKE), 1)[0][0]
        for one, other in zip(jax.tree.leaves(moved[name]), jax.tree.leaves(plain.server.global_params), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    pairs = zip(jax.tree.leaves(moved["mean"]), jax.tree.leaves(moved["krum"]), strict=True)
    assert any(not np.allclose(one, other) for one, other in pairs)


def test_mean_is_the_default_and_the_same_step():
    default = rounds_of(clusters_cell("proposed"), 1)[0][0]
    named = rounds_of(clusters_cell("proposed", "defences.aggregator=mean"), 1)[0][0]
    for one, other in zip(default.server.global_params, named.server.global_params, strict=True):
        for key in one:
            np.testing.assert_array_equal(one[key], other[key])


@pytest.mark.parametrize(
    ("preset", "overrides", "scheme", "said"),
    [
        ("small", [], "cgsv", "'cgsv' combines updates in a way of its own"),
        ("fair-mlp", ["privacy.mode=device"], "max_power", "privacy.mode 'device' has no proof"),
    ],
)
def test_where_there_is_no_mean_to_replace_it_is_refused(preset, overrides, scheme, said):
    with pytest.raises(ScenarioError, match=said):
        Order.checked(fairwave.load_scenario(preset, ["defences.aggregator=krum", *overrides]), [scheme])


def test_a_plugin_brings_its_own(tmp_path: Path):
    file = tmp_path / "first_only.py"
    file.write_text(
        "from fairwave.aggregators.aggregator import Aggregator\n"
        "first_only = Aggregator('first_only', 'the first device decides', lambda settings, rows, arrived: rows[0])\n"
    )
    scenario = fairwave.load_scenario("small", ["defences.aggregator=first_only"], plugins=[file])
    assert scenario.defences.aggregator == "first_only"
