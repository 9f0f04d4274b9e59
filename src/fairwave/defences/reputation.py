"""Devices whose updates are refused again and again are not asked any more."""

from __future__ import annotations

from fairwave.defences.defence import Defence, Verdict
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences


def _no_change(settings: Defences, updates: Updates, verdict: Verdict) -> tuple[Updates, Verdict]:
    """The access point keeps count of refusals itself, and removes devices before the next round."""
    return updates, verdict


reputation = Defence(
    name="reputation",
    summary="The access point removes devices that other defences catch again and again. They are not asked and "
    "get no more copies.",
    order=160,
    judge=_no_change,
    removes_devices=True,
)
