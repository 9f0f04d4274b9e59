"""Devices that pool their copies of the model before they train, to average the noise away."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour

coalition = Behaviour(
    name="coalition",
    summary="The devices of one entry replace their copies by the average of them.",
    strength=None,
    pools_copies=True,
)
