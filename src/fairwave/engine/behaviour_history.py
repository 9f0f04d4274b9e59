"""What devices remember because some of them misbehave."""

from __future__ import annotations

import equinox as eqx

from fairwave.adversaries.behaviour import Habit
from fairwave.learning.model import Tree
from fairwave.types import PerDevice


class BehaviourHistory(eqx.Module):
    """The last round of every device as misbehaviour needs it, with a leading device axis."""

    received: Tree
    """The copies of the round before."""
    sent: Tree
    """The updates that were sent last."""
    first_received: Tree
    """The copies of the first round."""
    first_sent: Tree
    """The updates that were sent first; zero before that."""
    usual_length: PerDevice
    """Length of the last update that was trained for honestly; 0 before that."""
    habit: Habit
    """What adaptive devices have learned."""
