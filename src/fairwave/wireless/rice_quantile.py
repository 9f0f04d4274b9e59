"""Quantiles of the Rice distribution: how small the amplitude of a channel can be around its estimate.

An amplitude R = |nu + e|, where e has two independent standard normal parts, falls below its quantile x(nu) with a
given probability. For one probability, x is a smooth function of nu alone. It is expanded in Chebyshev polynomials
once, on the host; a device then evaluates polynomials, which costs next to nothing beside its plan.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.types import Scalar

NEAR_TERMS, FAR_TERMS = 96, 40
"""Chebyshev polynomials. The probability of what they give is right to nine digits for targets from 1e-3 up, to six
from 1e-9 up."""
BEYOND = 3.0
"""Estimates count as strong from so far above the distance by which they are undercut."""
_NODES, _FARTHEST, _HALVINGS = 200, 14.0, 64


def rice_quantile(noncentrality: Scalar, probability: float) -> Scalar:
    """The amplitude, in units of the error's std, that is undercut with that probability around such an estimate.

    Around a weak estimate log(e^x - 1) is expanded in nu: it is nearly quadratic where x is small, and nearly straight
    where it is not. Around a strong estimate the distance from nu is expanded in 1 / nu.
    """
    end, near, far = _expansions(probability)
    strong = noncentrality > end
    weak = jax.nn.softplus(_chebyshev(near, 2.0 * jnp.minimum(noncentrality, end) / end - 1.0))
    shift = _chebyshev(far, 2.0 * end / jnp.where(strong, noncentrality, end) - 1.0)
    return jnp.where(strong, noncentrality + shift, weak)


def _chebyshev(coefficients: np.ndarray, at: Scalar) -> Scalar:
    """The expansion at a point of [-1, 1], by Clenshaw's recurrence."""

    def step(carry: tuple[Scalar, Scalar], coefficient: Scalar) -> tuple[tuple[Scalar, Scalar], None]:
        one, two = carry
        return (2.0 * at * one - two + coefficient, one), None

    nothing = jnp.zeros_like(at)
    (one, two), _ = jax.lax.scan(step, (nothing, nothing), jnp.asarray(coefficients[:0:-1]))
    return jnp.asarray(at * one - two + coefficients[0])


@functools.cache
def _expansions(probability: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Where weak channels end, and the coefficients for weak and for strong ones."""
    from scipy.special import ndtri

    end = BEYOND + abs(float(ndtri(probability)))
    near = _coefficients(lambda at: np.log(np.expm1(_solved(0.5 * end * (at + 1.0), probability))), NEAR_TERMS)

    def shift(at: np.ndarray) -> np.ndarray:
        noncentrality = 2.0 * end / (at + 1.0)
        return _solved(noncentrality, probability) - noncentrality

    return end, near, _coefficients(shift, FAR_TERMS)


def _coefficients(function: Callable[[np.ndarray], np.ndarray], terms: int) -> np.ndarray:
    """The Chebyshev expansion that agrees with a function at the nodes of [-1, 1]."""
    angles = (np.arange(terms) + 0.5) * np.pi / terms
    waves = np.cos(np.outer(np.arange(terms), angles))
    coefficients = np.asarray(2.0 / terms * waves @ function(np.cos(angles)))
    coefficients[0] *= 0.5
    return coefficients


def _solved(noncentrality: np.ndarray, probability: float) -> np.ndarray:
    """Quantiles, by halving an interval of their logarithm."""
    low, high = np.full(noncentrality.shape, -60.0), np.log(noncentrality + 10.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = distribution(np.exp(middle), noncentrality) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.exp(0.5 * (low + high))


@functools.cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def distribution(amplitude: np.ndarray, noncentrality: np.ndarray) -> np.ndarray:
    """Probability of a smaller amplitude, by Gauss-Legendre quadrature over the angle of the error's second part.

    With that part at amplitude * sin(angle), the first must lie within amplitude * cos(angle) of the origin. All terms
    are positive, so that small probabilities keep their digits.
    """
    from scipy.special import ndtr

    nodes, weights = _quadrature()
    widest = np.where(amplitude > _FARTHEST, np.arcsin(np.minimum(1.0, _FARTHEST / amplitude)), 0.5 * np.pi)
    angle = widest[..., None] * nodes
    across, along = amplitude[..., None] * np.sin(angle), amplitude[..., None] * np.cos(angle)
    # The difference of nearly equal numbers along - noncentrality, for strong channels.
    centre = noncentrality[..., None]
    inner = (amplitude[..., None] - centre) - 2.0 * amplitude[..., None] * np.sin(0.5 * angle) ** 2
    density = np.exp(-0.5 * across**2) / np.sqrt(2.0 * np.pi)
    inside = ndtr(inner) - ndtr(-along - centre)
    return np.asarray(widest * np.sum(weights * density * inside * along, axis=-1))
