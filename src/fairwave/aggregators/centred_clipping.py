"""Updates pulled towards a centre, and their mean (Karimireddy, He, Jaggi, "Learning from History", ICML 2021).

Its authors clip around the step of the round before. Devices may come and go here and their copies differ, so that the
centre is the median of every value of this round's updates, and the radius the median of the distances to it.
"""

from __future__ import annotations

import jax

from fairwave.aggregators.aggregator import Aggregator, OwnShare, weighted_mean
from fairwave.aggregators.order_statistics import median
from fairwave.policy.rows import lengths
from fairwave.privacy.clipping import clip_factor
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Count, FlagPerDevice, Params, UpdatePerDevice

ITERATIONS = 3
"""Times that the centre moves by the mean of the clipped differences."""


def _clipped(settings: Defences, rows: UpdatePerDevice, arrived: FlagPerDevice, own: OwnShare) -> Params:
    start = median(rows, arrived)
    radius = median(lengths(rows - start[None, :])[:, None], arrived)[0]

    def moved(_: Count, centre: Params) -> Params:
        apart = rows - centre[None, :]
        factor = clip_factor(lengths(apart), radius).astype(rows.dtype)
        return centre + weighted_mean(factor[:, None] * apart, arrived)

    found: Params = jax.lax.fori_loop(0, ITERATIONS, moved, start)
    return found


centred_clipping = Aggregator(
    name="centred_clipping",
    summary="Updates are pulled towards their median and then averaged (after Karimireddy et al., ICML 2021).",
    step=_clipped,
)
