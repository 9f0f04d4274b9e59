"""A device that trains on a part of its data."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, as_strong

part_of_data = Behaviour(
    name="part_of_data",
    summary="The device trains on only this share (strength) of its samples.",
    strength=0.02,
    share_of_data=as_strong,
)
