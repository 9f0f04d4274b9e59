"""Steps of every optimizer against plain loops, and the noise that they leave against its formula."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.double_precision import double_precision
from fairwave.learning.local import begin, step_along
from fairwave.learning.optimizer import Optimizer, rate_in

RATE = 0.1


def moved(optimizer: Optimizer, gradients: np.ndarray) -> np.ndarray:
    """Where a model of zeros is after steps along gradients."""
    training = begin(jnp.zeros(gradients.shape[1:], gradients.dtype), optimizer)
    for gradient in gradients:
        training = step_along(jnp.asarray(gradient), training, optimizer, RATE)
    return np.asarray(training.params)


def by_hand(name: str, kept: float, gradients: np.ndarray) -> np.ndarray:
    params, first, second = (np.zeros(gradients.shape[1:]) for _ in range(3))
    for number, gradient in enumerate(gradients, start=1):
        if name == "adam":
            first = kept * first + (1 - kept) * gradient
            second = 0.999 * second + 0.001 * gradient**2
            params -= RATE * (first / (1 - kept**number)) / (np.sqrt(second / (1 - 0.999**number)) + 1e-8)
        else:
            first = (kept if name == "momentum" else 0.0) * first + gradient
            params -= RATE * first
    return params


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_steps_are_those_of_a_plain_loop(name):
    gradients = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    np.testing.assert_allclose(moved(Optimizer(name, 0.8), gradients), by_hand(name, 0.8, gradients), rtol=2e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("steps", [1, 2, 4, 30])
def test_noise_left_in_the_model_is_what_the_formula_says(name, steps):
    """Gradients of nothing but noise. Std of 40,000 values within 6 standard errors (2.1 %), which a formula without
    the momentum's memory is not. Adam's divisors fluctuate in its first steps: it leaves up to 6 % less."""
    optimizer, std = Optimizer(name, 0.9), 0.3
    with double_precision():
        noise = std * np.random.default_rng(steps).normal(size=(steps, 40_000))
        told = RATE * float(optimizer.noise_gain(jnp.asarray(steps), jnp.asarray(std)))
        seen = moved(optimizer, noise).std()
    if name == "adam":
        assert 0.94 * told < seen < 1.021 * told
        return
    assert abs(seen / told - 1) < 0.021
    if name == "momentum" and steps > 1:
        assert abs(RATE * std * np.sqrt(steps) / told - 1) > 0.1


def test_the_rate_shrinks_from_round_to_round():
    assert rate_in(2.0, 1.0, jnp.asarray(7)) == 2.0
    assert float(rate_in(2.0, 0.9, jnp.asarray(3))) == pytest.approx(2.0 * 0.9**3)
    assert float(jax.jit(lambda number: rate_in(2.0, 0.9, number))(jnp.asarray(0))) == 2.0
