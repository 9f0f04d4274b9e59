"""A device that does less than it planned, and charges itself accordingly."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour, as_strong

fewer_iterations = Behaviour(
    name="fewer_iterations",
    summary="The device does only this share (strength) of the planned iterations.",
    strength=0.1,
    share_of_iterations=as_strong,
)
