"""The noise that steps leave in a model that is pulled towards another one, against a closed form and simulation."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.double_precision import double_precision
from fairwave.learning.local import begin, step_along
from fairwave.learning.optimizer import Optimizer
from fairwave.learning.pull import Pull, noise_gain_under_pull, pulled

RATE, WEIGHT, STD = 0.4, 0.3, 0.5
SHRINKAGE = RATE * WEIGHT


def told(optimizer: Optimizer, steps: int, shrinkage: float | None = SHRINKAGE) -> float:
    with double_precision():
        return RATE * float(optimizer.noise_gain(jnp.asarray(steps), jnp.asarray(STD), shrinkage))


@pytest.mark.parametrize("steps", [0, 1, 2, 17])
@pytest.mark.parametrize("shrinkage", [0.01, 0.5, 1.0])
def test_plain_steps_shrink_earlier_noise_geometrically(steps, shrinkage):
    a = 1.0 - shrinkage
    with double_precision():
        gain = float(noise_gain_under_pull(jnp.asarray(steps), 0.0, shrinkage))
    assert gain == pytest.approx(np.sqrt((1 - a ** (2 * steps)) / (1 - a**2)) if steps else 0.0, rel=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["sgd", "momentum"])
@pytest.mark.parametrize("steps", [1, 4, 30])
def test_noise_left_under_a_pull_is_what_the_formula_says(name, steps):
    """Gradients of nothing but noise. Std of 40,000 values within 6 standard errors (2.1 %), which the formula without
    the pull is not after more than one step."""
    optimizer = Optimizer(name, 0.8)
    with double_precision():
        noise = STD * np.random.default_rng(steps).normal(size=(steps, 40_000))
        pull = Pull(jnp.zeros(40_000), WEIGHT)
        training = begin(jnp.zeros(40_000), optimizer)
        for gradient in noise:
            slope = pulled(jnp.asarray(gradient), training.params, pull)
            training = step_along(slope, training, optimizer, RATE)
        seen = float(np.asarray(training.params).std())
    assert abs(seen / told(optimizer, steps) - 1) < 0.021
    if steps > 1:
        assert abs(seen / told(optimizer, steps, None) - 1) > 0.05


@pytest.mark.parametrize("name", ["sgd", "momentum"])
def test_a_pull_of_nothing_changes_nothing(name):
    optimizer = Optimizer(name, 0.8)
    assert told(optimizer, 9, 0.0) == pytest.approx(told(optimizer, 9, None), rel=1e-12)
    gradient, params = jnp.arange(3.0), jnp.ones(3)
    assert pulled(gradient, params, None) is gradient
    np.testing.assert_array_equal(pulled(gradient, params, Pull(jnp.zeros(3), 0.0)), gradient)
    np.testing.assert_array_equal(pulled(gradient, params, Pull(jnp.zeros(3), 2.0)), gradient + 2.0)


def test_adam_under_a_pull_is_refused():
    with pytest.raises(ValueError, match="take 'sgd' or 'momentum'"):
        told(Optimizer("adam"), 3)
