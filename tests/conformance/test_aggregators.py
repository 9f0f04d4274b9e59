"""What every aggregator in the registry must do, and what each does, beside Flower's functions and NumPy."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

import fairwave
from fairwave.aggregators.aggregator import OwnShare
from fairwave.engine.server_steps import RoundAddress, own_share
from fairwave.errors import ScenarioError
from fairwave.extensions import AGGREGATORS
from fairwave.keys import Stream, round_key
from fairwave.runs.order import Order
from fairwave.scenario.defence_parameters import Defences
from tests.builders import clusters, clusters_cell, rounds_of

EVERYTHING = tuple(AGGREGATORS.builtin_names())
ROBUST = tuple(name for name in EVERYTHING if name != "mean")
DEVICES, SIZE, ATTACKERS = 15, 40, 3
SETTINGS = Defences(attacker_share=0.2, bounding_noise=0.0)
ALIKE = ("learning.gradient_exchange=false",)
"""With which max_power trains as the server optimizers do."""


def honest(seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return (draw.normal(size=SIZE) + 0.3 * draw.normal(size=(DEVICES, SIZE))).astype(np.float32)


def step(
    name: str,
    rows: np.ndarray,
    arrived: np.ndarray | None = None,
    settings: Defences = SETTINGS,
    reference: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """What an aggregator makes of updates; the access point's own update is their mean, if none is given."""
    present = np.ones(len(rows), bool) if arrived is None else arrived
    if reference is None:
        reference = rows[present].mean(axis=0) if present.any() else np.zeros(rows.shape[1])
    own = OwnShare(reference=jnp.asarray(reference, jnp.float32), key=jax.random.key(seed))
    compiled = jax.jit(AGGREGATORS[name].step, static_argnums=0)
    return np.asarray(compiled(settings, jnp.asarray(rows), jnp.asarray(present), own))


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
    np.testing.assert_allclose(step(name, rows, np.arange(DEVICES) == 4), rows[4], rtol=3e-6)


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
    found = step(name, attacked, reference=centre)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found - centre) <= farthest
    assert not np.linalg.norm(attacked.astype(np.float64).mean(axis=0) - centre) <= farthest  # as the mean is moved


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("name", EVERYTHING)
def test_rows_that_did_not_arrive_are_never_used(name, share):
    rows = np.array([[777.0], [888.0], [1.0], [1e20], [3.0]], np.float32)
    arrived = np.array([False, False, True, True, False])
    found = step(name, rows, arrived, Defences(attacker_share=share, bounding_noise=0.0))
    assert np.isfinite(found).all() and not 2.0 < found[0] < 1e10


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("name", EVERYTHING)
def test_equal_updates_of_few_devices_are_not_trimmed_away(name, count):
    rows = np.ones((count, 3), np.float32)
    np.testing.assert_allclose(
        step(name, rows, settings=Defences(attacker_share=0.5, bounding_noise=0.0)), 1.0, rtol=1e-5
    )


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


def test_fltrust_by_hand():
    """Opposed updates count for nothing, long ones for no more than short ones."""
    rows = honest(5).astype(np.float64)
    rows[:ATTACKERS] *= -3.0
    rows[ATTACKERS] *= 50.0
    reference = np.random.default_rng(8).normal(size=SIZE) + 0.5 * rows[-1]
    total, weights = np.zeros(SIZE), 0.0
    for row in rows:
        trust = max(0.0, row @ reference / np.linalg.norm(row) / np.linalg.norm(reference))
        total, weights = total + trust * row * np.linalg.norm(reference) / np.linalg.norm(row), weights + trust
    found = step("fltrust", rows.astype(np.float32), reference=reference)
    np.testing.assert_allclose(found, total / weights, rtol=1e-4, atol=1e-5)
    opposed = step("fltrust", -np.tile(reference, (4, 1)).astype(np.float32), reference=reference)
    assert (opposed == 0.0).all()


@pytest.mark.parametrize("given", [None, 2.5])
def test_norm_bounding_by_hand(given):
    rows = honest(6).astype(np.float64)
    rows[:ATTACKERS] *= 8.0
    length = np.linalg.norm(rows, axis=1)
    bound = 0.8 * np.median(length) if given is None else given
    expected = (rows * np.minimum(1.0, bound / length)[:, None]).mean(axis=0)
    settings = Defences(bounding_ratio=0.8, bounding_length=given, bounding_noise=0.0)
    found = step("norm_bounding", rows.astype(np.float32), settings=settings)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.statistical
def test_the_noise_of_norm_bounding_is_as_long_as_asked_for_and_comes_from_its_key():
    """100,000 values: the length's relative std is 0.0022, so that a false alarm beyond 0.0115 has odds of 2e-7."""
    rows = np.random.default_rng(0).normal(size=(3, 100_000)).astype(np.float32)
    settings = Defences(bounding_length=4.0, bounding_noise=0.5)
    plain = step("norm_bounding", rows, settings=Defences(bounding_length=4.0, bounding_noise=0.0))
    noise, again, other = (step("norm_bounding", rows, settings=settings, seed=seed) - plain for seed in (1, 1, 2))
    assert np.linalg.norm(noise) == pytest.approx(0.5 * 4.0, rel=0.0115)
    assert np.linalg.norm(2.0**0.5 * noise) != pytest.approx(0.5 * 4.0, rel=0.0115)  # of twice the variance
    np.testing.assert_array_equal(noise, again)
    assert abs(noise @ other) / np.linalg.norm(noise) / np.linalg.norm(other) < 5.2 / 100_000**0.5
    assert (step("norm_bounding", rows, np.zeros(3, bool), settings) == 0.0).all()


def test_the_access_points_own_update_is_training_on_its_own_samples():
    """Beside a plain loop of gradient steps on the same batches; accuracy is measured on the other samples."""
    overrides = ("defences.validation_samples=40", "defences.reference_iterations=7", "learning.rate_decay=0.5")
    cell = clusters_cell("max_power", "defences.aggregator=fltrust", *overrides)
    point, server = cell.access_point, cell.start().server
    assert point.test[1].size == 60 and point.rules.model is None and point.rules.reference is not None
    inputs, labels = clusters().test_inputs[:40], clusters().test_labels[:40]
    address, params = RoundAddress(point.root, jnp.asarray(2)), server.global_params
    key = round_key(point.root, 2, Stream.REFERENCE_BATCH)
    for iteration in range(7):
        picks = jax.random.randint(jax.random.fold_in(key, iteration), (16,), 0, 40)
        batch = inputs[picks].astype(np.float32) / 255.0, labels[picks]
        gradient = jax.grad(lambda at, batch=batch: jnp.mean(cell.access_point.model.losses(at, *batch)))(params)
        params = jax.tree.map(lambda p, g: p - 0.05 * 0.25 * g, params, gradient)
    expected = ravel_pytree(params)[0] - ravel_pytree(server.global_params)[0]
    samples = (jnp.asarray(inputs), jnp.asarray(labels))
    own = own_share(point.rules, server, address, samples)
    np.testing.assert_allclose(own.reference, expected, rtol=1e-3, atol=1e-6)
    assert np.linalg.norm(expected) > 0.01


def test_only_those_that_ask_for_it_take_samples_away():
    assert [name for name in EVERYTHING if AGGREGATORS[name].needs_server_data] == ["fltrust"]
    with pytest.raises(ScenarioError, match="leaves none to measure accuracy on"):
        clusters_cell("proposed", "defences.aggregator=fltrust")
    assert clusters_cell("proposed", "defences.aggregator=krum").access_point.test[1].size == 100


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_cell_trains_with_it(name):
    few = ("privacy.local_noise=false", "defences.validation_samples=40")
    cell = clusters_cell("proposed", f"defences.aggregator={name}", *few)
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
        "def first(settings, rows, arrived, own):\n    return rows[0]\n"
        "first_only = Aggregator('first_only', 'the first device decides', first)\n"
    )
    scenario = fairwave.load_scenario("small", ["defences.aggregator=first_only"], plugins=[file])
    assert scenario.defences.aggregator == "first_only"
