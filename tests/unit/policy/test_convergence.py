"""Theorem 1 on quadratics, where gradient descent can be followed exactly."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.policy.convergence import accuracy_bound, contraction, iterations_for_accuracy

SMOOTH, CONVEX = 4.0, 0.5


def true_accuracy(learning_rate: float, iterations: int, curvature: float) -> float:
    """Loss left after gradient descent on x^2 c / 2, relative to the start."""
    return (1 - learning_rate * curvature) ** (2 * iterations)


@pytest.mark.parametrize("learning_rate", [0.01, 0.1, 0.25, 0.4, 0.49])
@pytest.mark.parametrize("iterations", [1, 5, 40])
def test_corrected_bound_holds_for_every_curvature(learning_rate, iterations):
    bound = float(
        accuracy_bound(
            "corrected",
            jnp.asarray(float(iterations)),
            learning_rate=learning_rate,
            smoothness=SMOOTH,
            strong_convexity=CONVEX,
        )
    )
    worst = max(true_accuracy(learning_rate, iterations, c) for c in np.linspace(CONVEX, SMOOTH, 200))
    assert worst <= bound * (1 + 1e-12)


def test_printed_theorem_promises_what_gradient_descent_does_not_do():
    """At eta = 1/L the printed factor is 1/2 whatever mu is; the flattest direction shrinks by (1 - mu/L)^2 only."""
    factor = contraction("printed", learning_rate=1 / SMOOTH, smoothness=SMOOTH, strong_convexity=CONVEX)
    assert factor == pytest.approx(0.5)
    promised = math.ceil(iterations_for_accuracy(0.01, factor))
    assert true_accuracy(1 / SMOOTH, promised, CONVEX) > 0.01
    honest = contraction("corrected", learning_rate=1 / SMOOTH, smoothness=SMOOTH, strong_convexity=CONVEX)
    enough = math.ceil(iterations_for_accuracy(0.01, honest))
    assert true_accuracy(1 / SMOOTH, enough, CONVEX) <= 0.01


def test_printed_equation_41_has_its_own_factor_and_one_more_iteration():
    printed = float(
        accuracy_bound("printed", jnp.asarray(3.0), learning_rate=0.1, smoothness=SMOOTH, strong_convexity=CONVEX)
    )
    assert printed == pytest.approx((0.5 * CONVEX * SMOOTH * 0.01 - CONVEX * 0.1 + 1) ** 4)


def test_no_promise_outside_the_step_size_range():
    too_long = contraction("corrected", learning_rate=2.1 / SMOOTH, smoothness=SMOOTH, strong_convexity=CONVEX)
    assert iterations_for_accuracy(0.1, too_long) == math.inf
    bound = accuracy_bound(
        "corrected", jnp.asarray(9.0), learning_rate=2.1 / SMOOTH, smoothness=SMOOTH, strong_convexity=CONVEX
    )
    assert float(bound) == 1.0


@pytest.mark.parametrize("curvature", [7.0, 0.7, 3.0])
def test_perfect_conditioning_takes_one_step(curvature):
    factor = contraction("corrected", learning_rate=1 / curvature, smoothness=curvature, strong_convexity=curvature)
    assert factor == pytest.approx(0.0, abs=1e-15)
    bound = accuracy_bound(
        "corrected", jnp.asarray(1.0), learning_rate=1 / curvature, smoothness=curvature, strong_convexity=curvature
    )
    assert 0.0 <= float(bound) < 1e-15
    assert iterations_for_accuracy(0.01, 0.0) == 1.0
