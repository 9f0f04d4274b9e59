"""Planning with a channel estimate that may be wrong."""

from __future__ import annotations

import math
from statistics import NormalDist

import jax.numpy as jnp

from fairwave.types import Scalar


def safe_gain(estimated_gain: Scalar, error_std: float, outage_probability: float) -> Scalar:
    """Largest gain in closed form that the true channel undercuts with at most the given probability.

    With an error e of independent Gaussian parts, |estimate + e| is at least |estimate| plus the part of e along
    the estimate (projection), and it exceeds |e| in distribution (Anderson's inequality). Each gives a lower bound
    on the quantile of the true amplitude; the larger is taken. The first is tight for a strong channel, the second
    for a channel lost in the error.
    """
    if error_std == 0.0:
        return estimated_gain
    along = jnp.sqrt(estimated_gain) + error_std * NormalDist().inv_cdf(outage_probability)
    blind = error_std * math.sqrt(-2.0 * math.log1p(-outage_probability))
    return jnp.maximum(along, blind) ** 2
