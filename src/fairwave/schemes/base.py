"""What a scheme is: how devices plan, how the access point aggregates, and what it releases to whom."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from fairwave.learning.aggregate import aggregate
from fairwave.learning.model import Tree
from fairwave.policy.access_point import Levels
from fairwave.policy.rules import Rule
from fairwave.types import FlagPerDevice


@dataclasses.dataclass(frozen=True)
class Scheme:
    """Three small parts and two facts about noise."""

    name: str
    plan: Rule
    """One device: its problem and its own history to iterations and power."""
    levels: Levels
    """All devices: deviation to the noise in each copy that is released."""
    aggregate: Callable[[Tree, Tree, FlagPerDevice], Tree] = aggregate
    """All devices: global model and updates to the new global model."""
    same_for_all: bool = False
    """The noise level does not depend on the device, so that one noisy copy may be broadcast to everybody."""
    noisy_updates: bool = True
    """Devices add noise to their updates where the scenario asks for it."""
