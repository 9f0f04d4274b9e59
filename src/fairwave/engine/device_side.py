"""What one device computes in a round. The simulator maps these functions; a real device calls them."""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Int

from fairwave.engine.private_training import Protection, private_gradient, train_privately, update_noise_std
from fairwave.keys import Stream, device_key
from fairwave.learning.local import norm, train, train_beside, update_of
from fairwave.learning.loss import Samples, local_gradient, local_loss
from fairwave.learning.model import Model, Tree
from fairwave.policy.deviation import uniform_levels
from fairwave.privacy.noise import standard_normal
from fairwave.scenario.parameters import Scenario
from fairwave.schemes.scheme import Scheme
from fairwave.types import Count, Flag, Key, Scalar

_PERSONAL = 1 << 30
"""Address of the personal model's batches, beyond those of any iteration."""


@dataclasses.dataclass(frozen=True)
class LocalTraining:
    """What a compiled training program depends on."""

    model: Model
    batch_size: int
    learning_rate: float
    noise_std: float
    """Of the noise on the update; 0 for none."""
    protection: Protection | None = None
    """What makes every step private; None for plain training."""
    attachment: float | None = None
    """Pull of a device's own model towards the shared one; None where devices have no model of their own."""


def local_training(scenario: Scenario, scheme: Scheme, model: Model, protection: Protection | None) -> LocalTraining:
    """How devices train under a scenario and a scheme."""
    learning, attachment = scenario.learning, scenario.peers.ditto_weight if scheme.personal else None
    noise_std = update_noise(scenario, scheme)
    return LocalTraining(model, learning.batch_size, learning.learning_rate, noise_std, protection, attachment)


def exchanges_gradients(scenario: Scenario, scheme: Scheme) -> bool:
    """Whether a round begins with an exchange of gradients."""
    return scenario.learning.gradient_exchange and scheme.exchanges


def update_noise(scenario: Scenario, scheme: Scheme) -> float:
    """Std of the noise that devices add to their updates; 0 for none."""
    if not (scenario.privacy.local_noise and scheme.noisy_updates):
        return 0.0
    with jax.enable_x64(True):
        return float(uniform_levels(scenario.privacy, jnp.zeros(1))[0])


class Work(eqx.Module):
    """What one device trains with in one round."""

    received: Tree
    correction: Tree | None
    """What the exchange of gradients changes in its local problem; None without."""
    own: Int[Array, " held"]
    count: Count
    """Samples that it trains on."""
    held: Count
    """Samples that it has, on which its loss is measured."""
    iterations: Count
    flipped: Flag
    """It takes the last class for the first, and so on."""
    index: Count
    personal: Tree | None = None
    """Its own model, beside the shared one."""


class Outcome(eqx.Module):
    """What one device's training gave."""

    update: Tree
    """As it is sent, noise included."""
    loss: Scalar
    """On the device's own data, after training; of its own model, where it has one."""
    update_norm: Scalar
    """Before noise is added to the update; noise inside training counts."""
    told_noise_std: Scalar
    """What the device tells about the noise of its training in each value of the update; 0 without."""
    personal: Tree | None
    """Its own model after training."""


def train_device(setting: LocalTraining, shared: tuple[Key, Count, Array, Array], work: Work) -> Outcome:
    """Local training of one device, from its received copy to the update that it sends."""
    root, number, inputs, labels = shared
    samples = Samples(inputs, jnp.where(work.flipped, jnp.max(labels) - labels, labels), work.own, work.count)
    noise_key = device_key(root, number, Stream.LOCAL_NOISE, work.index)
    batch_key = device_key(root, number, Stream.BATCH, work.index)
    size, rate, protection = setting.batch_size, setting.learning_rate, setting.protection
    told, iterations = jnp.zeros(()), work.iterations
    if setting.attachment is not None:  # the other half is for its own model: the deadline is one
        iterations = work.iterations - work.iterations // 2
    if protection is None:
        trained = train(
            setting.model, work.received, work.correction, samples,
            key=batch_key, iterations=iterations, batch_size=size, learning_rate=rate,
        )  # fmt: skip
    else:
        trained = train_privately(
            protection, setting.model, work.received, work.correction, samples,
            batch_key=batch_key, noise_key=noise_key, iterations=iterations, batch_size=size, learning_rate=rate,
        )  # fmt: skip
        told = update_noise_std(protection, work.count, iterations, size, rate)
    update, used, own = update_of(trained, work.received), trained, None
    if setting.attachment is not None:
        used = own = train_beside(
            setting.model, work.personal, work.received, samples,
            key=jax.random.fold_in(batch_key, _PERSONAL), iterations=work.iterations // 2, batch_size=size,
            learning_rate=rate, attachment=setting.attachment,
        )  # fmt: skip
    return Outcome(
        update=with_noise(update, setting.noise_std, noise_key),
        loss=local_loss(setting.model, used, Samples(inputs, labels, work.own, work.held)),
        update_norm=norm(update),
        told_noise_std=told,
        personal=own,
    )


def with_noise(tree: Tree, std: float, key: Key) -> Tree:
    """A pytree plus Gaussian noise on every value."""
    if std == 0.0:
        return tree
    flat, unravel = ravel_pytree(tree)
    return unravel(flat + std * standard_normal(key, flat.shape))


def device_gradient(
    model: Model, protection: Protection | None, shared: tuple[Key, Count, Array, Array], own: Any
) -> tuple[Scalar, Tree]:
    """Loss of one device's copy over all its data, and the gradient that it may exchange."""
    root, number, inputs, labels = shared
    received, held, count, index = own
    samples = Samples(inputs, labels, held, count)
    if protection is None:
        return local_gradient(model, received, samples)
    key = device_key(root, number, Stream.GRADIENT_NOISE, index)
    return local_loss(model, received, samples), private_gradient(protection, model, received, samples, key)
