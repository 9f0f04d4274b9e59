"""The paper's sensitivity, which "varies from one communication round to the next" around its nominal value."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from fairwave.keys import Stream, round_key
from fairwave.types import Count, Key, Scalar


def sensitivity_factor(spread: float, root: Key, round_index: Count) -> Scalar:
    """The sensitivity of a round over its nominal value: even on [1 - spread, 1 + spread], the same for everybody.

    Everybody has to draw it from the same root, which a federation's parties do not share.
    """
    if spread == 0.0:
        return jnp.ones(())
    key = round_key(root, round_index, Stream.SENSITIVITY)
    return 1.0 + spread * jax.random.uniform(key, minval=-1.0, maxval=1.0)
