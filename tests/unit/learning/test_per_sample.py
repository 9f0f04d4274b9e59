"""Sums of scaled per-sample gradients, against differentiating every sample by itself."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fairwave.learning.convolution import Convolutional
from fairwave.learning.dense import Dense
from fairwave.learning.model import classifier
from fairwave.learning.per_sample import CHUNK, scaled_sum
from fairwave.privacy.clipping import clip_factor

SAMPLES = CHUNK + 9
DENSE = Dense((36, 12, 8, 4))
CONVOLUTIONAL = Convolutional((6, 6, 1), (3, 5), 4)
MODELS = {
    "by layer": classifier(DENSE.init, DENSE.logits, l2=0.3, taps=DENSE.taps),
    "dense, by sample": classifier(DENSE.init, DENSE.logits),
    "convolutions": classifier(CONVOLUTIONAL.init, CONVOLUTIONAL.logits),
}


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(5)
    return (
        draw.normal(size=(SAMPLES, 6, 6)).astype(np.float32),
        draw.integers(0, 4, SAMPLES),
        draw.random(SAMPLES) < 0.8,
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("bound", [0.05, 1.0, 1e9])
def test_against_one_gradient_after_the_other(name, bound):
    model, (inputs, labels, counted) = MODELS[name], data()
    params = model.init(jax.random.key(1))
    factor = functools.partial(clip_factor, bound=bound)
    ours = scaled_sum(
        model, params, jnp.asarray(inputs), jnp.asarray(labels), jnp.asarray(counted), factor=factor, bound=bound
    )
    assert jax.tree.structure(ours) == jax.tree.structure(params)
    total = 0.0
    for image, label in zip(inputs[counted], labels[counted], strict=True):
        one = jax.grad(lambda p, x=image, y=label: model.losses(p, x[None], jnp.array([y]))[0])(params)
        flat = np.asarray(ravel_pytree(one)[0], np.float64)
        total = total + flat * min(1.0, bound * (1 - 1e-6) / np.linalg.norm(flat))
    np.testing.assert_allclose(ravel_pytree(ours)[0], total, rtol=2e-4, atol=2e-5 * min(bound, 1.0))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_sample_that_is_not_finite_counts_for_nothing(name, bad):
    model, (inputs, labels, _) = MODELS[name], data()
    params = model.init(jax.random.key(1))
    inputs[3, 2, 2] = bad
    everybody = np.ones(SAMPLES, bool)
    others = everybody.copy()
    others[3] = False
    factor = functools.partial(clip_factor, bound=0.5)
    with_it, without = (
        ravel_pytree(
            scaled_sum(
                model, params, jnp.asarray(inputs), jnp.asarray(labels), jnp.asarray(who), factor=factor, bound=0.5
            )
        )[0]
        for who in (everybody, others)
    )
    assert np.isfinite(with_it).all()
    np.testing.assert_allclose(with_it, without, atol=1e-6)
