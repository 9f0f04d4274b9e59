"""A record's clipped gradient is the same to the bit wherever it stands in a batch, whatever copy was sent."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.double_precision import double_precision
from fairwave.engine.private_training import _sum_of_batch
from fairwave.learning.loss import Samples
from fairwave.learning.model import Model, Tree
from fairwave.learning.models import model_of
from fairwave.privacy.protection import Protection
from fairwave.privacy.sampling import sufficient_capacity
from fairwave.scenario.loading import load_scenario

BATCH, RECORDS = 128, 6_000
CAPACITY = sufficient_capacity(BATCH, RECORDS, 1e-5)
USUAL = 8 * math.ceil((BATCH + 4.0 * math.sqrt(BATCH)) / 8)
DENSE = ("learning.layer_sizes=[784, 32, 10]",)
CONVOLUTIONS = ("learning.model=cnn", "learning.layer_sizes=[784, 10]", "learning.image_shape=[28, 28, 1]")


def hostile(model: Model, record: np.ndarray, settings: tuple[str, ...]) -> Tree:
    """Parameters under which a rounding error of the first layer decides which units are active."""
    params = model.init(jax.random.key(0))
    if settings is not DENSE:
        return jax.tree.map(lambda leaf: 30.0 * leaf, params)
    first = jnp.asarray(np.random.default_rng(1).normal(size=(784, 32)), jnp.float32)
    outputs = jax.jit(lambda rows: rows @ first)(jnp.tile(jnp.asarray(record), (USUAL, 1)))[0]
    last = jnp.asarray(1e3 * np.random.default_rng(2).normal(size=(32, 10)), jnp.float32)
    return [{"weight": first, "bias": -outputs}, {"weight": last, "bias": jnp.zeros(10, jnp.float32)}]


@pytest.mark.parametrize("settings", [DENSE, CONVOLUTIONS], ids=["dense", "convolutions"])
def test_a_records_contribution_does_not_depend_on_its_place(settings):
    assert CAPACITY > USUAL  # some places are beyond the usual size of a batch
    model = model_of(load_scenario("fair-mlp", settings).learning)
    record = np.random.default_rng(3).random(784).astype(np.float32)
    # The second record is not finite and counts as zero: what is left of a batch of both is the first one's gradient.
    inputs = jnp.asarray(np.stack([record, np.full(784, np.nan, np.float32)]))
    samples = Samples(inputs, jnp.zeros(2, jnp.int32), jnp.arange(2), jnp.asarray(2))
    protection = Protection(1.0, 1.0, None, CAPACITY, "simulation")
    with double_precision():
        params = hostile(model, record, settings)
        total = jax.jit(functools.partial(_sum_of_batch, protection, model, batch_size=BATCH))
        found = []
        for place in (0, 17, USUAL - 1, USUAL, CAPACITY - 1):
            places = jnp.ones(CAPACITY, jnp.int32).at[place].set(0)
            summed = total(params, samples, (places, jnp.arange(CAPACITY) <= place))
            found.append(np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(summed)]))
    assert np.linalg.norm(found[0]) > 0.5
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
