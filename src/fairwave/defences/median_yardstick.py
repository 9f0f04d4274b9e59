"""Nobody becomes the measure of all others: scores are compared with the median, not with the best."""

from __future__ import annotations

from fairwave.defences.defence import Defence, median_of

median_yardstick = Defence(
    name="median_yardstick",
    summary="measures scores by the median instead of the best, which one device alone could set",
    yardstick=median_of,
)
