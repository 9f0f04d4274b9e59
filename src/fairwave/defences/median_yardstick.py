"""Nobody becomes the measure of all others: scores are compared with the median, not with the best."""

from __future__ import annotations

import dataclasses

from fairwave.defences.defence import Defence, Verdict, median_of
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences


def _by_the_median(settings: Defences, updates: Updates, verdict: Verdict) -> tuple[Updates, Verdict]:
    return updates, dataclasses.replace(verdict, yardstick=median_of)


median_yardstick = Defence(
    name="median_yardstick",
    summary="The access point measures scores relative to the median and not to the best one, which a single "
    "device could set.",
    order=150,
    judge=_by_the_median,
)
