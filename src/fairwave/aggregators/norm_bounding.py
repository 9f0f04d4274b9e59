"""Updates no longer than a bound, their mean, and noise on it (Sun, Kairouz, Suresh, McMahan, 2019).

The noise blurs what few devices could hide in the model. It is a defence and no privacy is claimed for it: the bound
may follow from the updates, and nothing is accounted for.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.aggregators.aggregator import Aggregator, OwnShare, weighted_mean
from fairwave.aggregators.order_statistics import median
from fairwave.policy.rows import lengths
from fairwave.privacy.clipping import clip_factor
from fairwave.privacy.noise import standard_normal
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, Params, UpdatePerDevice


def _bounded(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    """The bound is given, or follows the median length; the root mean square of the noise's length follows it."""
    length, given = lengths(rows), settings.bounding_length
    bound = settings.bounding_ratio * median(length[:, None], arrived)[0] if given is None else jnp.asarray(given)
    factor = clip_factor(length, bound)[:, None]
    step = weighted_mean(jnp.where(factor > 0.0, factor * rows, 0.0).astype(rows.dtype), arrived)
    std = settings.bounding_noise * bound / step.size**0.5
    noise = (std * standard_normal(own.key, step.shape)).astype(rows.dtype)
    return step + jnp.where(jnp.any(arrived), noise, 0.0)


norm_bounding = Aggregator(
    name="norm_bounding",
    summary="Updates are shortened to a bound and averaged, and noise is added (Sun et al., 2019).",
    step=_bounded,
)
