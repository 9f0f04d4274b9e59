"""What the access point makes of the gradients that devices send, before it returns one gradient to all of them."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Int

from fairwave.aggregators.aggregator import OwnShare
from fairwave.engine.device_side import MeanGradient
from fairwave.engine.programs import program
from fairwave.engine.server_steps import RobustAggregate, RoundAddress, ServerRules
from fairwave.keys import Stream
from fairwave.learning.aggregate import mean_gradient
from fairwave.learning.loss import Samples, local_gradient
from fairwave.learning.model import Tree, flat_rows
from fairwave.types import FlagPerDevice, Params


class SentGradients(eqx.Module):
    """What the participants of a round send before they train."""

    gradients: Tree
    """With a leading participant axis."""
    participants: Int[Array, " participant"]
    arrives: FlagPerDevice
    """A mask of the devices whose channel carries what they send."""
    caught: FlagPerDevice | None
    """A mask of the devices whose last update was refused; None where nobody is judged."""

    def counted(self) -> Bool[Array, " participant"]:
        """A mask of the participants whose gradient arrives and counts."""
        arrived = self.arrives[self.participants]
        return arrived if self.caught is None else arrived & ~self.caught[self.participants]


@program(static_argnums=0)
def exchanged_gradient(
    rules: ServerRules,
    params: Tree,
    sent: SentGradients,
    address: RoundAddress,
    samples: tuple[Array, Array] | None,
) -> MeanGradient:
    """The gradient that devices train towards: the mean of those that arrived, or a robust aggregate of them.

    Honest devices follow this gradient, so that a few poisoned gradients would reach the updates of all devices. The
    aggregator that protects the model's step therefore protects this exchange as well.
    """
    gradients, arrived = sent.gradients, sent.counted()
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
