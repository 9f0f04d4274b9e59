"""Planning with a channel estimate that may be wrong."""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.types import Scalar
from fairwave.wireless.rice_quantile import rice_quantile


def safe_gain(estimated_gain: Scalar, error_std: float, outage_probability: float) -> Scalar:
    """The gain that the true channel undercuts with exactly the given probability.

    Around its estimate, with an error of independent Gaussian parts, the true amplitude is Rice distributed.
    """
    if error_std == 0.0:
        return estimated_gain
    return (error_std * rice_quantile(jnp.sqrt(estimated_gain) / error_std, outage_probability)) ** 2
