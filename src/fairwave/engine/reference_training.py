"""What the access point's own training, on samples of its own, says about where honest training goes."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from fairwave.extensions import AGGREGATORS
from fairwave.learning.local import train, update_of
from fairwave.learning.loss import Samples
from fairwave.learning.model import Model, Tree
from fairwave.learning.optimizer import optimizer_of, rate_in
from fairwave.policy.rows import lengths, without_span
from fairwave.privacy.modes.mode import mode_of
from fairwave.scenario.learning_parameters import Learning
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.types import Count, Key, Params, UpdatePerDevice

EARLY_SHARE = 0.4
"""Share of the iterations that are early: a device that does a few alone has only such."""
AT_A_TIME = 32
"""Copies that are trained from side by side: a bound on memory in large cells."""

OwnSamples = tuple[Array, Array]
"""Inputs and labels that the access point holds itself."""


@dataclasses.dataclass(frozen=True)
class ReferenceTraining:
    """How the access point trains on samples of its own: as devices do, but without an exchange of gradients."""

    model: Model
    learning: Learning
    iterations: int

    def trained(self, start: Tree, held: OwnSamples, key: Key, iterations: int, round_index: Count) -> Tree:
        """A model after so many iterations."""
        inputs, labels = held
        learning, count = self.learning, labels.shape[0]
        return train(
            self.model,
            start,
            None,
            Samples(inputs, labels, jnp.arange(count), jnp.asarray(count)),
            key=key,
            iterations=jnp.asarray(iterations),
            batch_size=learning.batch_size,
            learning_rate=rate_in(learning.learning_rate, learning.rate_decay, round_index),
            optimizer=optimizer_of(learning),
        )


def scores_by_training(privacy: Privacy) -> bool:
    """Whether devices are scored by what the access point's own training gives."""
    return privacy.similarity == "training" and not mode_of(privacy).trusts_access_point


def reference_training(scenario: Scenario, model: Model) -> ReferenceTraining | None:
    """How the access point trains in a scenario; None where neither its aggregator nor its scores ask for that."""
    aggregator = AGGREGATORS.get(scenario.defences.aggregator, "defences.aggregator")
    if not (aggregator.needs_server_data or scores_by_training(scenario.privacy)):
        return None
    return ReferenceTraining(model, scenario.learning, scenario.defences.reference_iterations)


def reference_update(
    training: ReferenceTraining, params: Tree, held: OwnSamples, key: Key, round_index: Count
) -> Params:
    """The change of the access point's model by its training, as a flat vector."""
    trained = training.trained(params, held, key, training.iterations, round_index)
    return ravel_pytree(update_of(trained, params))[0]


def reference_directions(
    training: ReferenceTraining,
    own_model: Tree,
    copies: UpdatePerDevice,
    held: OwnSamples,
    key: Key,
    round_index: Count,
) -> tuple[Float[Array, "test device param"], Float[Array, "test device"]]:
    """For each copy, where training takes its noise back, and where the late iterations go; and how far it goes there.

    The first is half the difference between training from the copy and from the copy with the opposite noise, on the
    same batches. Whatever training does from any bad copy, such as learning the classes anew, is in both and cancels;
    what is left changes its sign with the noise, so that an update that does not depend on the copy goes along it by
    chance alone. The noise itself is taken out of both directions: it can be guessed from earlier copies without any
    training.
    """
    flat, unravel = ravel_pytree(own_model)
    early = max(1, round(EARLY_SHARE * training.iterations))

    def moved(start: Params) -> tuple[Params, Params]:
        """How a model moves in all iterations, and in the late ones."""
        first, second = (jax.random.fold_in(key, part) for part in range(2))
        midway = training.trained(unravel(start), held, first, early, round_index)
        end = ravel_pytree(training.trained(midway, held, second, training.iterations - early, round_index))[0]
        return end - start, end - ravel_pytree(midway)[0]

    def one(copy: Params) -> tuple[Array, Array]:
        noise = copy - flat
        (whole, late), (opposite, _) = moved(flat + noise), moved(flat - noise)
        directions = jnp.stack([without_span(each, (noise,)) for each in (0.5 * (whole - opposite), late)])
        length = lengths(directions)
        return directions, jnp.where(length > 0.0, directions @ whole / jnp.where(length > 0.0, length, 1.0), 0.0)

    directions, reached = jax.lax.map(one, copies, batch_size=AT_A_TIME)
    return jnp.moveaxis(directions, 1, 0), reached.T
