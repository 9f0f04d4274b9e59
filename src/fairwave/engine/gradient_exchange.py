"""What the access point makes of the gradients that devices send, before it returns one gradient to all of them."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from fairwave.aggregators.aggregator import OwnShare
from fairwave.engine.device_side import MeanGradient
from fairwave.engine.server_steps import RobustAggregate, RoundAddress, ServerRules
from fairwave.keys import Stream
from fairwave.learning.aggregate import mean_gradient
from fairwave.learning.loss import Samples, local_gradient
from fairwave.learning.model import Tree, flat_rows
from fairwave.types import FlagPerDevice, Params


@functools.partial(jax.jit, static_argnums=0)
def exchanged_gradient(
    rules: ServerRules,
    params: Tree,
    gradients: Tree,
    arrived: FlagPerDevice,
    address: RoundAddress,
    samples: tuple[Array, Array] | None,
) -> MeanGradient:
    """The gradient that devices train towards: the mean of those that arrived, or a robust aggregate of them.

    Honest devices follow this gradient, so that a few poisoned gradients would reach the updates of all devices. The
    aggregator that protects the model's step therefore protects this exchange as well.
    """
    if rules.defences.aggregator == "mean":
        return MeanGradient(mean_gradient(gradients, arrived), jnp.any(arrived))
    rows, unravel = flat_rows(gradients)[0], ravel_pytree(params)[1]
    finite = arrived & jnp.all(jnp.isfinite(rows), axis=1)
    own = OwnShare(_own_gradient(rules, params, samples), address.key(Stream.GRADIENT_AGGREGATOR))
    robust = RobustAggregate(rules.defences, own)
    rows = jnp.where(finite[:, None], rows, 0.0)
    return MeanGradient(unravel(robust(rows, finite).astype(rows.dtype)), jnp.any(finite))


def _own_gradient(rules: ServerRules, params: Tree, samples: tuple[Array, Array] | None) -> Params:
    """The gradient of the access point's model on its own samples; zero where it has none."""
    if rules.reference is None or samples is None:
        return jnp.zeros_like(ravel_pytree(params)[0])
    inputs, labels = samples
    count = labels.shape[0]
    held = Samples(inputs, labels, jnp.arange(count), jnp.asarray(count))
    return ravel_pytree(local_gradient(rules.reference.model, params, held)[1])[0]
