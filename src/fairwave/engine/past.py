"""What is remembered for the sake of devices that misbehave."""

from __future__ import annotations

import equinox as eqx

from fairwave.adversaries.behaviour import Habit
from fairwave.learning.model import Tree
from fairwave.types import PerDevice


class Past(eqx.Module):
    """What devices remember because some of them make use of it, with a leading device axis."""

    received: Tree
    """The copies of the round before."""
    sent: Tree
    """The last updates."""
    usual_length: PerDevice
    """Of the last update that was trained for honestly; 0 before that."""
    habit: Habit
