"""No record adds more than the bound, whatever parameters the access point sends and whatever the record holds.

The sensitivity is measured: what the sum of one record's clipped gradient is, in double precision. Parameters are drawn
over the whole range of single precision, taken from an attack that once worked, found by hypothesis, and by ascent.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from fairwave.learning.convolution import Convolutional
from fairwave.learning.dense import Dense
from fairwave.learning.model import classifier
from fairwave.learning.per_sample import scaled_sum
from fairwave.privacy.clipping import clip_factor

BOUND, ROUNDING = 0.1, 1e-9
"""The claim, and by which share of it a measured sum may exceed it: sums are in double precision."""
PIXELS, CLASSES = 36, 4
DENSE, CONVOLUTIONAL = Dense((PIXELS, 12, 8, CLASSES)), Convolutional((6, 6, 1), (3, 5), CLASSES)
MODELS = {
    "dense": classifier(DENSE.init, DENSE.logits, taps=DENSE.taps),
    "dense, sample by sample": classifier(DENSE.init, DENSE.logits),
    "cnn": classifier(CONVOLUTIONAL.init, CONVOLUTIONAL.logits),
}
RECORDS, COPIES = 128, 32
CASES = RECORDS * COPIES * len(MODELS)


def _sum(model, params, inputs, labels, counted):
    factor = functools.partial(clip_factor, bound=BOUND)
    return ravel_pytree(scaled_sum(model, params, inputs, labels, counted, factor=factor, bound=BOUND))[0]


@functools.partial(jax.jit, static_argnums=0)
def measured(model, params, inputs, labels):
    """Length of what each record alone adds to a sum."""

    def alone(record):
        total = _sum(model, params, inputs, labels, jnp.arange(labels.size) == record)
        return jnp.sqrt(jnp.sum(total**2))

    return jax.lax.map(alone, jnp.arange(labels.size))


def hostile(model, draw):
    """Parameters whose leaves are large and small beyond reason, some zero and some not finite."""
    shapes = model.init(jax.random.key(0))

    def leaf(like):
        values = draw.normal(size=like.shape) * 10.0 ** draw.uniform(-38, 38)
        if draw.random() < 0.3:
            values = values * (draw.random(like.shape) < 0.1)
        if draw.random() < 0.05:
            values.flat[draw.integers(values.size)] = draw.choice([np.nan, np.inf, -np.inf])
        return jnp.asarray(np.clip(values, -3.4e38, 3.4e38), jnp.float32)

    if draw.random() < 0.3:  # ordinary ones are cases too
        return model.init(jax.random.key(int(draw.integers(1 << 30))))
    return jax.tree.map(leaf, shapes)


def records(draw):
    inputs = draw.normal(size=(RECORDS, PIXELS)) * 10.0 ** draw.uniform(-30, 30, (RECORDS, 1))
    inputs[: RECORDS // 2] = draw.random((RECORDS // 2, PIXELS))
    inputs[0, 0], inputs[1, 1], inputs[2, 2] = np.nan, np.inf, 3e38
    return jnp.asarray(inputs, jnp.float32), jnp.asarray(draw.integers(0, CLASSES, RECORDS))


def test_enough_cases_are_tried():
    assert CASES >= 10_000


@pytest.mark.parametrize("name", MODELS)
def test_no_record_adds_more_than_the_bound(name):
    draw = np.random.default_rng(11)
    lengths = np.concatenate(
        [np.asarray(measured(MODELS[name], hostile(MODELS[name], draw), *records(draw))) for _ in range(COPIES)]
    )
    assert np.isfinite(lengths).all() and lengths.max() <= BOUND * (1 + ROUNDING)
    assert np.mean(lengths > 0.99 * BOUND) > 0.2  # many are clipped: the cases are hostile enough


@pytest.mark.parametrize("name", MODELS)
def test_a_record_that_is_added_moves_the_sum_by_the_bound_at_most(name):
    """Beside others, in places of its own: what the sum of a batch rounds is part of what is measured."""
    draw, model = np.random.default_rng(12), MODELS[name]
    total = jax.jit(functools.partial(_sum, model))
    for _ in range(10):
        params, (inputs, labels) = hostile(model, draw), records(draw)
        counted = draw.random(RECORDS) < 0.5
        for record in draw.choice(RECORDS, 5, replace=False):
            with_it, without = counted.copy(), counted.copy()
            with_it[record], without[record] = True, False
            moved = [np.asarray(total(params, inputs, labels, jnp.asarray(who))) for who in (with_it, without)]
            assert np.linalg.norm(moved[0] - moved[1]) <= BOUND * (1 + ROUNDING)


def attack(gain, gap, later=None):
    """A copy that sums a record's pixels, amplifies the sum and hides it behind a slope whose square underflows."""
    params = [{name: np.zeros(leaf.shape, np.float32) for name, leaf in layer.items()} for layer in DENSE.init(KEY)]
    params[0]["weight"][:, 0] = 1.0 / PIXELS
    params[1]["weight"][0, 0] = gain
    params[2]["bias"][0] = gap
    if later is not None:
        params[2]["weight"][:, 0] = later
    return jax.tree.map(jnp.asarray, params)


KEY = jax.random.key(0)
ONES = jnp.ones((1, PIXELS), jnp.float32), jnp.zeros(1, jnp.int32)


@pytest.mark.parametrize("gap", np.arange(42.0, 48.0, 0.5))
def test_slopes_that_underflow_hide_nothing(gap):
    params = attack(1.8e19, gap)
    for model in MODELS.values():
        if model is not MODELS["cnn"]:
            assert float(measured(model, params, *ONES)[0]) <= BOUND * (1 + ROUNDING)


def single_precision_length(params):
    """What clipping took for the length before: the same products, in single precision throughout."""
    squares = [
        (jnp.sum(seen**2, axis=1) + 1.0) * jnp.sum(slope**2, axis=1) for seen, slope in DENSE.taps(params, *ONES)
    ]
    return jnp.sqrt(jnp.sum(jnp.stack(squares), axis=0))[0]


def test_the_attack_is_one():
    """In single precision such a gradient passes for shorter than the bound, and is ten times as long."""
    params = attack(1.8e19, 44.0)
    one = ravel_pytree(jax.grad(lambda p: MODELS["dense"].losses(p, *ONES)[0])(params))[0]
    true_length = np.linalg.norm(np.asarray(one, np.float64))
    assert jax.jit(single_precision_length)(params) < BOUND < true_length / 10


@settings(max_examples=300, deadline=None)
@given(
    st.floats(-38, 38), st.floats(-100, 100), st.floats(-45, 38), st.sampled_from(["dense", "dense, sample by sample"])
)
def test_no_gain_and_no_gap_passes_the_bound(gain, gap, later, name):
    params = attack(min(10.0**gain, 3e38), gap, 10.0**later)
    assert float(measured(MODELS[name], params, *ONES)[0]) <= BOUND * (1 + ROUNDING)


@pytest.mark.parametrize("name", MODELS)
def test_ascent_on_the_measured_sensitivity_stays_below_the_bound(name):
    """From hostile starts, along the gradient of the measured length by the logarithms of all layers' scales."""
    model, draw = MODELS[name], np.random.default_rng(13)
    image = jnp.asarray(draw.random((1, PIXELS)), jnp.float32), jnp.asarray([1])

    @jax.jit
    def length(scales, params):
        flat, structure = jax.tree.flatten(params)
        grown = [leaf * jnp.exp(scale).astype(leaf.dtype) for leaf, scale in zip(flat, scales, strict=True)]
        total = _sum(model, jax.tree.unflatten(structure, grown), *image, jnp.ones(1, bool))
        return jnp.sqrt(jnp.sum(total**2))

    climb = jax.jit(jax.value_and_grad(length))
    for start in range(5):
        params = model.init(jax.random.key(start))
        scales = jnp.asarray(draw.uniform(-40, 40, len(jax.tree.leaves(params))))
        for _ in range(60):
            found, slope = climb(scales, params)
            assert float(found) <= BOUND * (1 + ROUNDING)
            slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
            scales = scales + 2.0 * jnp.sign(slope) + jnp.asarray(draw.normal(size=scales.shape))
