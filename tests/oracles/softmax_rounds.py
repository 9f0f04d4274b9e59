"""Rounds of federated softmax regression with full batches, written as plain NumPy loops from the papers.

A model is one flat vector: the biases, then the weights row by row, as `ravel_pytree` lays out a dense layer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Slope = Callable[[np.ndarray], np.ndarray]
"""From a model to the gradient of a device's loss."""


def slope_of(inputs: np.ndarray, labels: np.ndarray, num_classes: int) -> Slope:
    """The gradient of the mean loss over these records, record by record."""
    width = inputs.shape[1]

    def slope(model: np.ndarray) -> np.ndarray:
        bias, weight = model[:num_classes], model[num_classes:].reshape(width, num_classes)
        total = np.zeros_like(model)
        for record, label in zip(inputs.astype(np.float64), labels, strict=True):
            logits = record @ weight + bias
            error = np.exp(logits) / np.exp(logits).sum() - np.eye(num_classes)[label]
            total += np.concatenate([error, np.outer(record, error).ravel()])
        return total / len(labels)

    return slope


def descended(start: np.ndarray, slope: Slope, steps: int, rate: float) -> np.ndarray:
    """A model after so many plain gradient steps."""
    model = start
    for _ in range(steps):
        model = model - rate * slope(model)
    return model


def fednova(model: np.ndarray, slopes: list[Slope], steps: list[int], rate: float, effective: float) -> np.ndarray:
    """The model after a round of FedNova: the mean direction per step, times the effective number of steps."""
    directions = [(descended(model, slope, own, rate) - model) / own for slope, own in zip(slopes, steps, strict=True)]
    return model + effective * np.mean(directions, axis=0)


def scaffold(
    model: np.ndarray,
    controls: tuple[np.ndarray, list[np.ndarray]],
    slopes: list[Slope],
    chosen: list[int],
    steps: int,
    rate: float,
) -> tuple[np.ndarray, tuple[np.ndarray, list[np.ndarray]]]:
    """The model and the control variates, the mean one first, after a round of SCAFFOLD with option II."""
    mean, own = controls
    changes, after = [], list(own)
    for device in chosen:
        local = model
        for _ in range(steps):
            local = local - rate * (slopes[device](local) - own[device] + mean)
        changes.append(local - model)
        after[device] = own[device] - mean + (model - local) / (steps * rate)
    moved = sum(after[device] - own[device] for device in chosen) / len(own)
    return model + np.mean(changes, axis=0), (mean + moved, after)


def feddyn(
    model: np.ndarray,
    carried: tuple[np.ndarray, list[np.ndarray]],
    slopes: list[Slope],
    steps: dict[int, int],
    rate: float,
    alpha: float,
) -> tuple[np.ndarray, tuple[np.ndarray, list[np.ndarray]]]:
    """The model, the server's h and the devices' linear terms after a round of FedDyn among the devices with steps."""
    state, own = carried
    models, after = [], list(own)
    for device, number in steps.items():
        local = model
        for _ in range(number):
            local = local - rate * (slopes[device](local) - own[device] + alpha * (local - model))
        models.append(local)
        after[device] = own[device] - alpha * (local - model)
    state = state - alpha / len(own) * sum(local - model for local in models)
    return np.mean(models, axis=0) - state / alpha, (state, after)
