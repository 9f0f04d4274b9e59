"""Theorem 1: how many iterations a local accuracy takes, on a smooth and strongly convex loss.

`printed` is the paper's statement. Its proof bounds the gradient from the wrong side, and its step size eta > L/2 has
the wrong unit; `corrected` follows from ||grad F||^2 >= 2 mu (F - F*) and holds for 0 < eta < 2/L.
"""

from __future__ import annotations

import math
from typing import Literal

import jax.numpy as jnp

from fairwave.types import Scalar

Form = Literal["printed", "corrected"]


def contraction(form: Form, *, learning_rate: float, smoothness: float, strong_convexity: float) -> float:
    """Factor by which one iteration shrinks the distance to the optimal loss; at least 1 means no promise."""
    if form == "printed":
        return 0.5 * (learning_rate * smoothness) ** 2 - learning_rate * smoothness + 1.0
    factor = 1.0 - 2.0 * strong_convexity * learning_rate + strong_convexity * smoothness * learning_rate**2
    return max(factor, 0.0)  # 0 for mu = L and eta = 1/L, up to rounding


def iterations_for_accuracy(local_accuracy: float, factor: float) -> float:
    """Iterations after which the local problem is solved to an accuracy; infinite if the factor promises nothing.

    Paper: Eq. (22).
    """
    if factor <= 0.0:
        return 1.0
    return math.log(local_accuracy) / math.log(factor) if factor < 1.0 else math.inf


def relative_distance(loss: float, first_loss: float, optimal_loss: float) -> float:
    """Accuracy to which a problem is solved: what is left of the first loss's distance to the optimal one.

    Paper: Eq. (21).
    """
    return (loss - optimal_loss) / (first_loss - optimal_loss)


def accuracy_bound(
    form: Form, iterations: Scalar, *, learning_rate: float, smoothness: float, strong_convexity: float
) -> Scalar:
    """Bound on the local accuracy after some iterations.

    The printed form has another factor and one more iteration than Theorem 1; both are kept as printed.

    Paper: Eq. (41).
    """
    if form == "printed":
        factor = 0.5 * strong_convexity * smoothness * learning_rate**2 - strong_convexity * learning_rate + 1.0
        return jnp.exp((iterations + 1.0) * jnp.log(factor))
    factor = contraction(form, learning_rate=learning_rate, smoothness=smoothness, strong_convexity=strong_convexity)
    return jnp.minimum(factor**iterations, 1.0)
