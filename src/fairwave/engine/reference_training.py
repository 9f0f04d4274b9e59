"""What the access point's own training, on samples of its own, says about where honest training goes from a copy."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from fairwave.learning.local import train, update_of
from fairwave.learning.loss import Samples
from fairwave.learning.model import Model, Tree
from fairwave.learning.optimizer import Optimizer, optimizer_of, rate_in
from fairwave.scenario.parameters import Scenario
from fairwave.types import Count, Key, Params, UpdatePerDevice

EARLY_SHARE = 0.4
"""Share of the steps that are early: a device that does a few steps alone has only such."""
AT_A_TIME = 32
"""Copies that are trained from side by side: a bound on memory in large cells."""


@dataclasses.dataclass(frozen=True)
class ReferenceTraining:
    """How the access point trains from the copies that it sent."""

    model: Model
    batch_size: int
    learning_rate: float
    rate_decay: float
    optimizer: Optimizer
    steps: int

    def trained(self, params: Tree, samples: Samples, key: Key, round_index: Count) -> Halves:
        """How training moves a model: in its early steps, and in its late ones."""
        early = max(1, round(EARLY_SHARE * self.steps))
        rate = rate_in(self.learning_rate, self.rate_decay, round_index)

        def go(start: Tree, part: int, steps: int) -> Tree:
            return train(
                self.model,
                start,
                None,
                samples,
                key=jax.random.fold_in(key, part),
                iterations=jnp.asarray(steps),
                batch_size=self.batch_size,
                learning_rate=rate,
                optimizer=self.optimizer,
            )

        midway = go(params, 0, early)
        return Halves(update_of(midway, params), update_of(go(midway, 1, self.steps - early), midway))


class Halves(NamedTuple):
    """How a model moves in the early and in the late steps of training."""

    early: Tree
    late: Tree


def reference_training(scenario: Scenario, model: Model) -> ReferenceTraining:
    """As the scenario's devices train, on batches of the access point's own samples."""
    learning = scenario.learning
    return ReferenceTraining(
        model=model,
        batch_size=learning.batch_size,
        learning_rate=learning.learning_rate,
        rate_decay=learning.rate_decay,
        optimizer=optimizer_of(learning),
        steps=scenario.defences.reference_steps,
    )


def reference_directions(
    reference: ReferenceTraining,
    own_model: Tree,
    copies: UpdatePerDevice,
    held: tuple[Array, Array],
    key: Key,
    round_index: Count,
) -> Float[Array, "test device param"]:
    """For each copy, where training takes its noise back, and where the late steps go.

    The first is half the difference between training from the copy and from the copy with the opposite noise, on the
    same batches. Whatever training does from any bad copy, such as learning the classes anew, is in both and cancels;
    what is left changes its sign with the noise, so that an update that does not depend on the copy goes along it by
    chance alone. The noise itself is taken out of both directions: it can be guessed from earlier copies without any
    training.
    """
    inputs, labels = held
    samples = Samples(inputs, labels, jnp.arange(labels.shape[0]), jnp.asarray(labels.shape[0]))
    flat, unravel = ravel_pytree(own_model)

    def one(copy: Params) -> tuple[Params, Params]:
        noise = copy - flat
        halves, opposite = (
            reference.trained(unravel(flat + part), samples, key, round_index) for part in (noise, -noise)
        )
        response = 0.5 * (_flat_sum(halves) - _flat_sum(opposite))
        return _beside(response, noise), _beside(ravel_pytree(halves.late)[0], noise)

    return jnp.stack(jax.lax.map(one, copies, batch_size=AT_A_TIME))


def _flat_sum(halves: Halves) -> Params:
    return ravel_pytree(jax.tree.map(jnp.add, halves.early, halves.late))[0]


def _beside(direction: Params, noise: Params) -> Params:
    """A direction without its part along the noise."""
    squared = jnp.sum(noise**2)
    return direction - noise * jnp.where(
        squared > 0.0, (direction @ noise) / jnp.where(squared > 0.0, squared, 1.0), 0.0
    )
