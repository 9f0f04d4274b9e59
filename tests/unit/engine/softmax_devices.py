"""Devices with a few records each that train softmax regression with full batches and no noise worth mentioning."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fairwave.engine.device_side import (
    HeldSamples,
    LocalTraining,
    SharedInputs,
    Trained,
    TrainingInputs,
    next_drift,
    train_device,
)
from fairwave.learning.dense import Dense
from fairwave.learning.model import classifier
from fairwave.learning.optimizer import Optimizer
from fairwave.privacy.protection import Protection
from fairwave.scenario.peers import Peers
from fairwave.schemes.scheme import Scheme, SchemeSettings
from tests.builders import updates_of
from tests.oracles.softmax_rounds import Slope, descended, slope_of

RATE, CLASSES = 0.3, 3
INPUTS = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
LABELS = np.array([0, 1, 2, 0, 1, 1, 2, 2, 0, 2, 1, 2], np.int32)
HOLDINGS = ([0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11])
"""The records of each device."""
SOFTMAX = Dense((4, CLASSES))
FIRST = SOFTMAX.init(jax.random.key(2))
SETTING = LocalTraining(
    classifier(SOFTMAX.init, SOFTMAX.logits, taps=SOFTMAX.taps),
    batch_size=8,
    learning_rate=RATE,
    rate_decay=1.0,
    optimizer=Optimizer(),
    noise_std=0.0,
    protection=Protection(1e3, 1e-15, None, 8, "simulation"),
)
"""Every record is in every batch, no gradient is clipped, and noise is negligible."""


_train = jax.jit(train_device, static_argnums=0)


def flat(tree) -> np.ndarray:
    return np.asarray(ravel_pytree(tree)[0], np.float64)


def as_model(row: np.ndarray):
    return ravel_pytree(FIRST)[1](jnp.asarray(row, jnp.float32))


def slopes() -> list[Slope]:
    """Every device's gradient, in NumPy."""
    return [slope_of(INPUTS[held], LABELS[held], CLASSES) for held in HOLDINGS]


def trained(
    device: int, iterations: int, model: np.ndarray, *, round_index: int = 0, own=None, told=None, **changes
) -> Trained:
    """What one device makes of a model, with changes of the setting; `own` and `told` are what drift needs."""
    data = jnp.asarray(INPUTS), jnp.asarray(LABELS)
    shared = SharedInputs(jax.random.key(0), jnp.asarray(round_index), *data, drift=told)
    held = HOLDINGS[device]
    inputs = TrainingInputs(
        copy=as_model(model),
        own_gradient=None,
        held=HeldSamples(jnp.asarray(held), jnp.asarray(len(held))),
        trained_count=jnp.asarray(len(held)),
        flipped=jnp.asarray(False),
        iterations=jnp.asarray(iterations),
        index=jnp.asarray(device),
        **(own or {}),
    )
    return _train(dataclasses.replace(SETTING, **changes), shared, inputs)


def played_by(scheme: Scheme, rounds: list[dict[int, int]], peers: Peers | None = None, **changes):
    """Model, memory and devices' vectors after rounds of the engine's functions, from each device's steps by round."""
    peers, setting = peers or Peers(), dataclasses.replace(SETTING, drift=scheme.drift, **changes)
    settings = SchemeSettings(peers, RATE, rate_decay=setting.rate_decay, update_weight=setting.update_weight())
    model, count = flat(FIRST), len(HOLDINGS)
    memory, own = scheme.start(settings, count, jnp.asarray(model)), [np.zeros_like(model)] * count
    for number, steps in enumerate(rounds):
        told = as_model(np.zeros_like(model) if scheme.drift.told is None else np.asarray(scheme.drift.told(memory)))
        rows, arrived = np.zeros((count, model.size)), np.isin(np.arange(count), list(steps))
        for device, iterations in steps.items():
            carried = as_model(own[device])
            with_drift = {"drift": scheme.drift, "own": {"drift": carried}, "told": told}
            sent = trained(device, iterations, model, round_index=number, **with_drift, **changes).update
            rows[device] = flat(sent)
            after = next_drift(setting, peers, jnp.asarray(number), told, (carried, sent, jnp.asarray(True)))
            own = [*own[:device], flat(after), *own[device + 1 :]]
        step, memory = scheme.combine(settings, updates_of(rows, arrived), memory)
        model = model + np.asarray(step)
    return model, memory, own


def averaged(rounds: int, steps: int) -> np.ndarray:
    """The model of plain averaging over all devices, in NumPy."""
    model = flat(FIRST)
    for _ in range(rounds):
        model = np.mean([descended(model, slope, steps, RATE) for slope in slopes()], axis=0)
    return model


def slope_left(model: np.ndarray) -> float:
    """Length of the gradient of the devices' mean loss, which is zero at its optimum."""
    return float(np.linalg.norm(np.mean([slope(model) for slope in slopes()], axis=0)))
