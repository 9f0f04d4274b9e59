"""Local training of one device that proves something about each of its records.

Every step draws a Poisson batch, clips each record's gradient, and adds noise to their sum before anything else is done
with it. Whatever follows, on the device or anywhere else, is computed from such sums.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp

from fairwave.learning.local import PLAIN, Training, begin, step_along, surrogate_gradient
from fairwave.learning.loss import Samples, scaled
from fairwave.learning.model import Model, Tree
from fairwave.learning.optimizer import Optimizer
from fairwave.learning.per_sample import scaled_sum
from fairwave.learning.pull import Pull, pulled
from fairwave.privacy.clipping import clip_factor
from fairwave.privacy.noise import Source, noised, on_host_noised, random_bits
from fairwave.privacy.protection import Protection
from fairwave.privacy.sampling import poisson_batch, sampling_probability
from fairwave.types import Count, Key, Scalar

CHUNK = 128
"""Records at a time where all are used; single precision would not do for the sum of thousands."""


def train_privately(
    protection: Protection,
    model: Model,
    received: Tree,
    correction: Tree | None,
    samples: Samples,
    *,
    batch_key: Key,
    noise_key: Key,
    iterations: Count,
    batch_size: int,
    learning_rate: Scalar | float,
    optimizer: Optimizer = PLAIN,
    pull: Pull | None = None,
) -> Tree:
    """The device's model after its private iterations.

    A pull is added after the noise: it depends on the device's model and on a copy that it received, both of which are
    computed from noised sums alone.
    """
    probability, expected = _batch(batch_size, samples.count)
    std = protection.noise_multiplier * protection.clip_norm

    def step(iteration: Count, training: Training) -> Training:
        params = training.params
        bits = random_bits(protection.source, samples.own.shape[0], jax.random.fold_in(batch_key, iteration))
        drawn = poisson_batch(bits, samples.count, probability, protection.capacity)
        total = _sum_of_batch(protection, model, params, samples, drawn, batch_size=batch_size)
        blurred = noised_tree(protection.source, total, std, jax.random.fold_in(noise_key, iteration))
        gradient = _mean_with_penalty(model, params, blurred, expected)
        slope = pulled(surrogate_gradient(gradient, correction), params, pull)
        return step_along(slope, training, optimizer, learning_rate)

    trained: Training = jax.lax.fori_loop(0, iterations, step, begin(received, optimizer))
    return trained.params


def update_noise_std(
    protection: Protection,
    count: Count,
    iterations: Count,
    batch_size: int,
    learning_rate: Scalar | float,
    optimizer: Optimizer = PLAIN,
    *,
    pull_weight: float = 0.0,
) -> Scalar:
    """Std of the noise that so many steps leave in each value of an update; the device reports it with the update."""
    _, expected = _batch(batch_size, count)
    of_gradient = protection.noise_multiplier * protection.clip_norm / expected
    shrinkage = learning_rate * pull_weight if pull_weight else None
    return learning_rate * optimizer.noise_gain(iterations, of_gradient, shrinkage)


def private_gradient(protection: Protection, model: Model, params: Tree, samples: Samples, key: Key) -> Tree:
    """Gradient over all of a device's data, each record's clipped, with noise: fit to be exchanged."""
    blurred = private_sum(protection, model, params, samples, key)
    return _mean_with_penalty(model, params, blurred, samples.count.astype(jnp.float32))


def private_sum(protection: Protection, model: Model, params: Tree, samples: Samples, key: Key) -> Tree:
    """Sum of the clipped gradients of all records, with noise, in double precision."""
    held = samples.own.shape[0]
    size = min(CHUNK, held)

    def add(total: Tree, start: Count) -> tuple[Tree, None]:
        place = start + jnp.arange(size)
        members = samples.own[jnp.minimum(place, held - 1)]
        part = _clipped_sum(protection, model, params, samples, members, place < samples.count)
        return jax.tree.map(jnp.add, total, part), None

    zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.float64), params)
    total, _ = jax.lax.scan(add, zero, jnp.arange(0, held, size))
    if protection.exchange_noise_multiplier is None:
        raise ValueError("a gradient over all records must not leave its device without noise")
    std = protection.exchange_noise_multiplier * protection.clip_norm
    return noised_tree(protection.source, total, std, key)


def noised_tree(source: Source, tree: Tree, std: float, key: Key) -> Tree:
    """Noise on every value of a pytree, leaf by leaf: flattening it would cost more than the noise."""
    leaves, structure = jax.tree.flatten(tree)
    if source != "simulation":
        return jax.tree.unflatten(structure, on_host_noised(source, leaves, std))
    keys = [jax.random.fold_in(key, index) for index in range(len(leaves))]
    return jax.tree.unflatten(
        structure, [noised(source, leaf, std, own) for leaf, own in zip(leaves, keys, strict=True)]
    )


def _batch(batch_size: int, count: Count) -> tuple[Scalar, Scalar]:
    """Probability of each record, and the expected number of them: public, and what sums are divided by."""
    probability = sampling_probability(batch_size, count)
    return probability, (probability * count).astype(jnp.float32)


def _sum_of_batch(
    protection: Protection,
    model: Model,
    params: Tree,
    samples: Samples,
    drawn: tuple[jax.Array, jax.Array],
    *,
    batch_size: int,
) -> Tree:
    """Sum of the clipped gradients of a batch: the places of its members, which stand first, and which are in use.

    A batch has places for what is drawn once in 10^12 steps. Those beyond four standard deviations of its size are
    computed only where one of them is in use. Whether a record stands there depends on which others are drawn, so that
    all pieces go through the same compiled loop body: in another one, or in a matrix product of another shape, its
    gradient would be rounded differently, and a hostile copy can blow that up to more than the clip length.
    """
    places, taken = drawn
    usual = min(taken.shape[0], 8 * math.ceil((batch_size + 4.0 * math.sqrt(batch_size)) / 8))
    spare = -taken.shape[0] % usual
    members, counted = samples.own[jnp.pad(places, (0, spare))], jnp.pad(taken, (0, spare))

    def add(piece: Count, total: Tree) -> Tree:
        some, used = (jax.lax.dynamic_slice_in_dim(each, piece * usual, usual) for each in (members, counted))
        return jax.tree.map(jnp.add, total, _clipped_sum(protection, model, params, samples, some, used))

    zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.float64), params)
    total: Tree = jax.lax.fori_loop(0, -(-jnp.sum(taken) // usual), add, zero)
    return total


def _clipped_sum(
    protection: Protection, model: Model, params: Tree, samples: Samples, members: jax.Array, counted: jax.Array
) -> Tree:
    bound, inputs = protection.clip_norm, scaled(samples.inputs[members])
    factor = functools.partial(clip_factor, bound=bound)
    return scaled_sum(model, params, inputs, samples.labels[members], counted, factor=factor, bound=bound)


def _mean_with_penalty(model: Model, params: Tree, total: Tree, count: Scalar) -> Tree:
    """A sum over so many records as a mean, and the gradient of the penalty, which no record enters."""
    return jax.tree.map(
        lambda part, penalty: (part / count).astype(penalty.dtype) + penalty, total, jax.grad(model.penalty)(params)
    )
