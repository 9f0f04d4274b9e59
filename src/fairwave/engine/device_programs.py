"""What devices compute in a round, for all that take part: compiled once for all schemes and seeds that compute alike.

A device's copy and its correction are made where it computes: kept for all devices, each would take a model's memory.
"""

from __future__ import annotations

import functools

from fairwave.engine.device_map import DeviceMap
from fairwave.engine.device_side import (
    HeldSamples,
    LocalTraining,
    SharedInputs,
    gradient_of,
    received_from_8_bits,
    train_device,
)
from fairwave.keys import Stream
from fairwave.learning.evaluate import accuracy
from fairwave.learning.loss import local_loss
from fairwave.learning.model import Model, Tree
from fairwave.privacy.protection import Protection
from fairwave.types import Scalar


@functools.cache
def training_program(setting: LocalTraining) -> DeviceMap:
    """Local training of every participant."""
    return DeviceMap(
        functools.partial(train_device, setting),
        one_by_one=_on_host(setting.protection),
        length=lambda own: own.iterations,
    )


@functools.cache
def gradient_program(model: Model, protection: Protection | None) -> DeviceMap:
    """Loss of every device's copy over all its data, and the gradient that it may exchange."""
    return DeviceMap(functools.partial(gradient_of, model, protection), one_by_one=_on_host(protection))


@functools.cache
def rounding_program(stream: Stream) -> DeviceMap:
    """What every device sends, as it is received in 8 bits."""
    return DeviceMap(functools.partial(received_from_8_bits, stream))


def _on_host(protection: Protection | None) -> bool:
    return protection is not None and protection.source != "simulation"


@functools.cache
def copy_loss_program(model: Model) -> DeviceMap:
    """Loss of every device's copy over all its data."""
    return DeviceMap(functools.partial(_copy_loss, model))


def _copy_loss(model: Model, shared: SharedInputs, own: tuple[Tree, HeldSamples]) -> Scalar:
    of_device, held = own
    return local_loss(model, shared.copy(of_device), shared.samples(held))


@functools.cache
def copy_accuracy_program(model: Model) -> DeviceMap:
    """Accuracy of every device's copy on the same samples."""
    return DeviceMap(functools.partial(_copy_accuracy, model))


def _copy_accuracy(model: Model, shared: SharedInputs, of_device: Tree) -> Scalar:
    return accuracy(model, shared.copy(of_device), shared.inputs, shared.labels)


@functools.cache
def loss_program(model: Model) -> DeviceMap:
    """Loss of one model over every device's data."""
    return DeviceMap(functools.partial(_loss, model))


def _loss(model: Model, shared: tuple[Tree, SharedInputs], held: HeldSamples) -> Scalar:
    params, inputs = shared
    return local_loss(model, params, inputs.samples(held))
