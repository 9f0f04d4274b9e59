"""What devices compute in a round, for all that take part: compiled once for all schemes and seeds that compute alike.

A device's copy and its correction are made where it computes: kept for all devices, each would take a model's memory.
"""

from __future__ import annotations

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairwave.engine.device_map import DeviceMap
from fairwave.engine.device_side import LocalTraining, Outcome, Work, device_gradient, train_device
from fairwave.engine.model_copies import Copy, made
from fairwave.engine.private_training import Protection
from fairwave.learning.evaluate import accuracy
from fairwave.learning.local import correction_term
from fairwave.learning.loss import Samples, local_loss
from fairwave.learning.model import Model, Tree
from fairwave.types import Count, Flag, Key, Scalar


class Mean(eqx.Module):
    """What the access point sends back in the exchange of gradients."""

    gradient: Tree
    heard: Flag
    """Whether any gradient has arrived; otherwise nothing is corrected."""


class Common(eqx.Module):
    """What all devices compute with."""

    root: Key
    number: Count
    inputs: Array
    labels: Array
    models: Tree | None = None
    """Those that copies are of; None where devices hold models."""
    mean: Mean | None = None
    """None where no gradients are exchanged."""

    def copy(self, received: Tree | Copy) -> Tree:
        """A device's copy as a model."""
        return made(self.models, self.root, received) if isinstance(received, Copy) else received

    def samples(self, own: Held) -> Samples:
        """A device's view of the data."""
        return Samples(self.inputs, self.labels, own.samples, own.count)


class Held(eqx.Module):
    """The samples that a device has."""

    samples: Int[Array, " held"]
    count: Count


def _train(setting: LocalTraining, gradient_weight: float, common: Common, work: Work) -> Outcome:
    """`work.correction` is the device's own gradient where gradients were exchanged, and None where not."""
    correction, mean = None, common.mean
    if mean is not None:
        corrected = correction_term(work.correction, mean.gradient, gradient_weight)
        correction = jax.tree.map(lambda leaf: jnp.where(mean.heard, leaf, jnp.zeros_like(leaf)), corrected)
    work = dataclasses.replace(work, received=common.copy(work.received), correction=correction)
    return train_device(setting, (common.root, common.number, common.inputs, common.labels), work)


@functools.cache
def training_map(setting: LocalTraining, gradient_weight: float = 0.0) -> DeviceMap:
    """Local training."""
    return DeviceMap(
        functools.partial(_train, setting, gradient_weight),
        one_by_one=_on_host(setting.protection),
        length=lambda work: work.iterations,
    )


def _gradient(
    model: Model, protection: Protection | None, common: Common, own: tuple[Tree | Copy, Held, Count]
) -> tuple[Scalar, Tree]:
    received, held, index = own
    shared = (common.root, common.number, common.inputs, common.labels)
    return device_gradient(model, protection, shared, (common.copy(received), held.samples, held.count, index))


@functools.cache
def gradient_map(model: Model, protection: Protection | None) -> DeviceMap:
    """Loss of every device's copy over all its data, and the gradient that it may exchange."""
    return DeviceMap(functools.partial(_gradient, model, protection), one_by_one=_on_host(protection))


def _on_host(protection: Protection | None) -> bool:
    return protection is not None and protection.source != "simulation"


def _received_loss(model: Model, common: Common, own: tuple[Tree | Copy, Held]) -> Scalar:
    received, held = own
    return local_loss(model, common.copy(received), common.samples(held))


@functools.cache
def received_loss_map(model: Model) -> DeviceMap:
    """Loss of every device's copy over all its data."""
    return DeviceMap(functools.partial(_received_loss, model))


def _accuracy(model: Model, common: Common, received: Tree | Copy) -> Scalar:
    return accuracy(model, common.copy(received), common.inputs, common.labels)


@functools.cache
def accuracy_map(model: Model) -> DeviceMap:
    """Accuracy of every device's copy on the same samples."""
    return DeviceMap(functools.partial(_accuracy, model))


def _loss(model: Model, shared: tuple[Tree, Common], own: Held) -> Scalar:
    params, common = shared
    return local_loss(model, params, common.samples(own))


@functools.cache
def loss_map(model: Model) -> DeviceMap:
    """Loss of one model over every device's data."""
    return DeviceMap(functools.partial(_loss, model))
