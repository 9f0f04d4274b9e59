"""Theorem 1 where it applies: softmax regression with L2 on MNIST is smooth and strongly convex."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

import fairwave
from fairwave.data import sources
from fairwave.learning.local import correction_term, descend, surrogate_gradient
from fairwave.learning.loss import mean_loss
from fairwave.learning.models import model_of
from fairwave.policy.convergence import accuracy_bound, contraction, iterations_for_accuracy

L2 = 0.1
SAMPLES = 400


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def problem():
    """The local problem of one device, Eq. (4), with its constants and its minimum found by L-BFGS."""
    data = sources.load("mnist")
    inputs = jnp.asarray(data.train_inputs[:SAMPLES].reshape(SAMPLES, -1) / 255.0)
    labels = jnp.asarray(data.train_labels[:SAMPLES])
    scenario = fairwave.load_scenario(
        "paper", ["learning.model=softmax", "learning.layer_sizes=[784, 10]", f"learning.l2={L2}"]
    )
    model = model_of(scenario.learning)
    start, unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf.astype(jnp.float64), model.init(jax.random.key(0))))

    def loss(flat):
        return mean_loss(model, unravel(flat), inputs, labels)

    mean = jax.grad(loss)(start) + 0.05 * jnp.sin(jnp.arange(start.size))
    correction = correction_term(jax.grad(loss)(start), mean, 1.0)

    def local(flat):
        return loss(flat) - correction @ (flat - start)

    value_and_gradient = jax.jit(jax.value_and_grad(local))
    best = minimize(
        lambda x: tuple(np.asarray(v, float) for v in value_and_gradient(x)),
        np.asarray(start),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    # The Hessian of the logistic loss is at most half the second moment of the inputs (with a one for the bias).
    with_bias = np.hstack([np.asarray(inputs), np.ones((SAMPLES, 1))])
    smoothness = L2 + 0.5 * np.linalg.eigvalsh(with_bias.T @ with_bias / SAMPLES).max()
    return loss, local, start, correction, float(best.fun), smoothness


def left_after(problem, learning_rate: float, iterations: int) -> list[float]:
    """Share of the initial distance to the minimum that is left after each iteration of Eq. (10)."""
    loss, local, start, correction, minimum, _ = problem
    gradient = jax.jit(jax.grad(loss))
    flat, left = start, []
    gap = float(local(start)) - minimum
    for _ in range(iterations):
        flat = descend(flat, surrogate_gradient(gradient(flat), correction), learning_rate)
        left.append((float(local(flat)) - minimum) / gap)
    return left


@pytest.mark.parametrize("share", [0.1, 1.0, 1.9])
def test_the_corrected_form_holds(problem, share):
    smoothness = problem[-1]
    rate = share / smoothness
    left = left_after(problem, rate, 60)
    for number, value in enumerate(left, start=1):
        bound = accuracy_bound(
            "corrected", jnp.asarray(float(number)), learning_rate=rate, smoothness=smoothness, strong_convexity=L2
        )
        assert value <= float(bound) * (1 + 1e-9)


def test_the_printed_form_is_violated(problem):
    """At eta = 1/L the printed theorem promises a factor 1/2 per iteration, whatever the conditioning."""
    smoothness = problem[-1]
    rate = 1.0 / smoothness
    factor = contraction("printed", learning_rate=rate, smoothness=smoothness, strong_convexity=L2)
    promised = int(np.ceil(iterations_for_accuracy(0.01, factor)))
    left = left_after(problem, rate, promised)
    assert left[-1] > 0.01 * 2
    honest = contraction("corrected", learning_rate=rate, smoothness=smoothness, strong_convexity=L2)
    assert iterations_for_accuracy(0.01, honest) > promised
