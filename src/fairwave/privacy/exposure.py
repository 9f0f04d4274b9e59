"""What each audience has seen of a device's records, read off the ledger, and what that proves.

An audience is the access point, which hears every device; a device, which hears the access point; or a coalition of
devices that pool what they hear. Where a message carries no proven sensitivity, nothing bounds what it tells: the
cost is infinite, whatever noise is on it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np

from fairwave.privacy.accounting import collapsed, gaussian_epsilon
from fairwave.privacy.ledger import ReleaseEvent


@dataclasses.dataclass(frozen=True)
class Exposure:
    """What one audience can learn about one record, at the given delta."""

    audience: str
    messages: int
    epsilon: float
    reason: str
    """Why it is infinite; empty if it is not."""


def exposures(events: Sequence[ReleaseEvent], delta: float) -> list[Exposure]:
    """The access point, the device that hears most, and all devices together."""
    heard = [event for event in events if event.audience == "access point"]
    told = [event for event in events if event.audience == "device"]
    ears = _devices(told)
    found = [
        _worst(_exposure(f"access point, about device {device}", heard, delta, [device]) for device in _devices(heard)),
        _worst(_exposure(f"device {device}", told, delta, [device]) for device in ears),
        _exposure(f"all {len(ears)} devices together", told, delta, ears) if ears else None,
    ]
    return [one for one in found if one is not None]


def _devices(events: Iterable[ReleaseEvent]) -> list[int]:
    return sorted({int(device) for event in events for device in event.devices})


def _worst(each: Iterable[Exposure]) -> Exposure | None:
    """A record belongs to one device, so that what different devices send does not add up: the worst counts."""
    return max(each, key=lambda one: (one.epsilon, one.messages), default=None)


def _exposure(audience: str, events: Iterable[ReleaseEvent], delta: float, devices: list[int]) -> Exposure:
    """Of the messages that some devices sent or received. Copies with nested noise cost less than this says."""
    messages, unproven, multipliers = 0, dict[str, None](), list[float]()
    for event in events:
        taken = np.isin(event.devices, devices)
        messages += int(taken.sum())
        if event.proven_sensitivity is None:
            unproven |= {_told(event): None} if taken.any() else {}
        else:
            multipliers += (event.noise_std[taken] / event.proven_sensitivity).tolist()
    if unproven:
        return Exposure(audience, messages, math.inf, f"no sensitivity is proved for {', '.join(unproven)}")
    return Exposure(audience, messages, gaussian_epsilon(collapsed(multipliers), delta), "")


def _told(event: ReleaseEvent) -> str:
    plain = event.content + "s" if event.content != "gradient" or event.sender == "device" else "mean gradients"
    return plain if event.noise_std.any() else f"{plain} (no noise)"
