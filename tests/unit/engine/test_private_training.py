"""Private training does what the accounting says: clipped, sampled, noised, and nothing else."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fairwave.engine.private_training import (
    Protection,
    private_gradient,
    private_sum,
    train_privately,
    update_noise_std,
)
from fairwave.learning.dense import Dense
from fairwave.learning.loss import Samples
from fairwave.learning.model import classifier

CLIP, RATE = 0.7, 0.3
DENSE = Dense((6, 5, 3))
MODEL = classifier(DENSE.init, DENSE.logits, taps=DENSE.taps)
PARAMS = DENSE.init(jax.random.key(2))
SILENT = Protection(CLIP, 1e-12, 1e-12, 8, "simulation")


def records(count: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Ordinary ones, and such as an adversary would choose."""
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(count, 6)).astype(np.float32)
    inputs[1] *= 1e6
    inputs[2] = 0.0
    inputs[3, 0] = np.nan
    inputs[4] = 3e38
    return inputs, draw.integers(0, 3, count).astype(np.int32)


@jax.jit
def clipped_sum(inputs, labels, own, count):
    """What one step adds up, seen through the training function itself: all records are in, noise is negligible."""
    keys = jax.random.key(0), jax.random.key(1)
    zero = jax.tree.map(jnp.zeros_like, PARAMS)
    trained = train_privately(
        SILENT,
        MODEL,
        PARAMS,
        zero,
        Samples(inputs, labels, own, count),
        batch_key=keys[0],
        noise_key=keys[1],
        iterations=jnp.asarray(1),
        batch_size=8,
        learning_rate=RATE,
    )
    moved = jax.tree.map(jnp.subtract, PARAMS, trained)
    return ravel_pytree(moved)[0] * count / RATE


def test_sensitivity_by_enumeration():
    """All 64 subsets of six records, each record added to each subset that lacks it: the sum moves by the clip length
    at most, and replacing a record by any other moves it by twice that at most."""
    inputs, labels = records()

    def total(members: tuple[int, ...]) -> np.ndarray:
        if not members:
            return np.zeros(ravel_pytree(PARAMS)[0].size)
        own = jnp.asarray((*members, *[0] * (6 - len(members))), jnp.int32)
        return np.asarray(clipped_sum(jnp.asarray(inputs), jnp.asarray(labels), own, jnp.asarray(len(members))))

    sums = {who: total(who) for size in range(7) for who in itertools.combinations(range(6), size)}
    moves = []
    for who, value in sums.items():
        for record in set(range(6)) - set(who):
            moves.append(np.linalg.norm(sums[tuple(sorted((*who, record)))] - value))
    assert len(sums) == 64 and len(moves) == 192 and np.isfinite(moves).all()
    assert max(moves) <= CLIP * (1 + 1e-6) and max(moves) > 0.99 * CLIP
    swaps = [np.linalg.norm(sums[a] - sums[b]) for a, b in itertools.combinations([w for w in sums if len(w) == 1], 2)]
    assert max(swaps) <= 2 * CLIP


def test_clipping_is_what_bounds_it():
    """The same records without clipping move the sum by far more: the enumeration can fail."""
    inputs, labels = records()
    one = jax.grad(lambda p: MODEL.losses(p, jnp.asarray(inputs[1:2]), jnp.asarray(labels[1:2]))[0])(PARAMS)
    assert float(jnp.linalg.norm(ravel_pytree(one)[0])) > 100 * CLIP


@pytest.mark.statistical
@pytest.mark.parametrize("iterations", [1, 9])
def test_noise_of_an_update_is_what_the_device_tells(iterations):
    """Records without gradients (constant loss) leave the noise alone. Fixed key; std of 5,000 values within 6 standard
    errors (1 %), which noise 10 % too small is not; different rounds' noise is uncorrelated."""
    wide = Dense((4_999, 1))
    model = classifier(wide.init, wide.logits, taps=wide.taps)  # one class: the loss is constant
    protection = Protection(CLIP, 1.7, None, 32, "simulation")
    samples = Samples(jnp.ones((50, 4_999)), jnp.zeros(50, jnp.int32), jnp.arange(50), jnp.asarray(40))
    params = wide.init(jax.random.key(0))

    def update(key):
        trained = train_privately(
            protection,
            model,
            params,
            jax.tree.map(jnp.zeros_like, params),
            samples,
            batch_key=key,
            noise_key=key,
            iterations=jnp.asarray(iterations),
            batch_size=16,
            learning_rate=RATE,
        )
        return ravel_pytree(jax.tree.map(jnp.subtract, trained, params))[0]

    told = float(update_noise_std(protection, samples.count, jnp.asarray(iterations), 16, RATE))
    assert told == pytest.approx(RATE * 1.7 * CLIP / 16 * np.sqrt(iterations))
    first, second = (np.asarray(update(jax.random.key(seed))) for seed in (1, 2))
    assert abs(first.std() / told - 1) < 6 * 0.01 and abs(0.9 * first.std() / told - 1) > 6 * 0.01
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(5_000)


@pytest.mark.slow
def test_a_sum_over_thousands_moves_by_no_more_than_one_over_few():
    """6,000 equal records: in single precision the last would move the sum by a thousandth too much."""
    inputs = jnp.ones((6_001, 6), jnp.float32) * 50
    labels = jnp.full(6_001, jnp.argmin(DENSE.logits(PARAMS, inputs[:1])[0]))  # the least likely class
    quiet = Protection(CLIP, 1e-12, 1e-12, 8, "simulation")
    sums = []
    for count in (6_000, 6_001):
        samples = Samples(inputs, labels, jnp.arange(6_001, dtype=jnp.int32), jnp.asarray(count))
        blurred = private_sum(quiet, MODEL, PARAMS, samples, jax.random.key(0))
        sums.append(np.asarray(ravel_pytree(blurred)[0], np.float64))
    assert 0.99 * CLIP < np.linalg.norm(sums[1] - sums[0]) <= CLIP


def test_the_exchanged_gradient_is_clipped_and_noised():
    inputs, labels = records()
    own = jnp.arange(6, dtype=jnp.int32)
    samples = Samples(jnp.asarray(inputs), jnp.asarray(labels), own, jnp.asarray(6))
    quiet = ravel_pytree(private_gradient(SILENT, MODEL, PARAMS, samples, jax.random.key(0)))[0]
    total = clipped_sum(samples.inputs, samples.labels, own, samples.count)
    np.testing.assert_allclose(quiet * 6, total, atol=1e-5)
    loud = Protection(CLIP, 1.0, 5.0, 8, "simulation")
    noise = (ravel_pytree(private_gradient(loud, MODEL, PARAMS, samples, jax.random.key(0)))[0] - quiet) * 6
    assert float(np.std(noise)) == pytest.approx(5.0 * CLIP, rel=0.4)
