"""An attacker that trains on wrong classes: the last for the first, and so on."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour

label_flip = Behaviour(
    name="label_flip", summary="The device trains on wrong classes.", strength=None, flips_labels=True
)
