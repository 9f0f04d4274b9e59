"""Devices that pool their copies of the model before they train, to average the noise away."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour

coalition = Behaviour(
    name="coalition", summary="devices of one entry average their copies", strength=None, pools_copies=True
)
