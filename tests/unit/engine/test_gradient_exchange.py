"""The exchange of gradients under a robust aggregator, beside NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fairwave.engine.gradient_exchange import SentGradients, exchanged_gradient
from fairwave.engine.server_steps import RoundAddress
from fairwave.keys import Stream
from tests.builders import clusters, clusters_cell

DEVICES = 10
OWN = ("defences.validation_samples=40",)


def exchanged(aggregator: str, rows: np.ndarray, arrived: np.ndarray, *, round_index: int = 1) -> tuple:
    """What the access point returns for such gradients, flat, and whether there is anything to return."""
    cell = clusters_cell("proposed", f"defences.aggregator={aggregator}", *OWN, devices=DEVICES)
    point, server = cell.access_point, cell.start().server
    unravel = ravel_pytree(server.global_params)[1]
    stacked = jax.vmap(unravel)(jnp.asarray(rows, jnp.float32))
    samples = tuple(jnp.asarray(part[:40]) for part in (clusters().test_inputs, clusters().test_labels))
    address = RoundAddress(point.root, jnp.asarray(round_index))
    sent = SentGradients(stacked, jnp.arange(DEVICES), jnp.asarray(arrived), None)
    found = exchanged_gradient(point.rules, server.global_params, sent, address, samples)
    return np.asarray(ravel_pytree(found.gradient)[0]), bool(found.arrived), cell


def gradients() -> np.ndarray:
    size = 30 * 8 + 8 + 8 * 3 + 3
    draw = np.random.default_rng(0)
    return (draw.normal(size=size) + 0.1 * draw.normal(size=(DEVICES, size))).astype(np.float32)


def test_the_mean_is_eq_3_and_a_trimmed_mean_leaves_the_extremes_out():
    rows, arrived = gradients(), np.arange(DEVICES) != 4
    rows[:2] = 1e6
    mean, _, _ = exchanged("mean", rows, arrived)
    np.testing.assert_allclose(mean, rows[arrived].mean(axis=0), rtol=1e-5)
    trimmed, _, _ = exchanged("trimmed_mean", rows, arrived)
    kept = np.sort(rows[arrived], axis=0)[1:-1]  # a fifth of nine, rounded down
    np.testing.assert_allclose(trimmed, kept.mean(axis=0), rtol=1e-4)
    median, _, _ = exchanged("coordinate_median", rows, arrived)
    np.testing.assert_allclose(median, np.median(rows[arrived], axis=0), rtol=1e-5)
    assert np.abs(median).max() < 10.0 < np.abs(mean).max()


def test_gradients_of_refused_devices_do_not_count():
    everybody, caught = jnp.ones(5, bool), jnp.asarray([False, True, False, False, False])
    sent = SentGradients({}, jnp.asarray([4, 1, 0]), everybody.at[4].set(False), caught)
    np.testing.assert_array_equal(sent.counted(), [False, False, True])
    honest = SentGradients({}, jnp.asarray([4, 1, 0]), everybody.at[4].set(False), None)
    np.testing.assert_array_equal(honest.counted(), [False, True, True])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_counts_for_nothing(value):
    rows, everybody = gradients(), np.ones(DEVICES, bool)
    without, _, _ = exchanged("coordinate_median", rows, np.arange(DEVICES) > 0)
    rows[0, 5] = value
    found, arrived, _ = exchanged("coordinate_median", rows, everybody)
    assert arrived
    np.testing.assert_array_equal(found, without)
    _, arrived, _ = exchanged("coordinate_median", np.full_like(rows, value), everybody)
    assert not arrived


def test_fltrust_weighs_gradients_by_the_access_points_own_gradient():
    """Its own update points the other way: with that in the place of the gradient, everybody would be distrusted."""
    cell = exchanged("fltrust", gradients(), np.ones(DEVICES, bool))[2]
    params, data = cell.start().server.global_params, clusters()
    inputs, labels = data.test_inputs[:40].astype(np.float32) / 255.0, data.test_labels[:40]
    own = jax.grad(lambda at: jnp.mean(cell.access_point.model.losses(at, inputs, labels)))(params)
    flat = np.asarray(ravel_pytree(own)[0])
    rows = np.tile(flat, (DEVICES, 1))
    rows[:4] *= -50.0
    found, _, _ = exchanged("fltrust", rows, np.ones(DEVICES, bool))
    np.testing.assert_allclose(found, flat, rtol=1e-4, atol=1e-6)


def test_noise_is_drawn_by_round_and_not_that_of_the_models_step():
    rows, everybody = gradients(), np.ones(DEVICES, bool)
    first, again, other = (exchanged("norm_bounding", rows, everybody, round_index=number)[0] for number in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert Stream.GRADIENT_AGGREGATOR != Stream.AGGREGATOR
