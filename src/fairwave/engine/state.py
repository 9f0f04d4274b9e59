"""What is carried from round to round, and what a round leaves on record."""

from __future__ import annotations

from typing import TypeVar

import equinox as eqx
from jaxtyping import Array, Int

from fairwave.engine.device_history import Dossier
from fairwave.engine.past import Past
from fairwave.learning.model import Tree
from fairwave.policy.contribution import Score
from fairwave.policy.device_plan import DevicePlan
from fairwave.policy.effort_fit import EffortMemory
from fairwave.types import FlagPerDevice, PerDevice, Scalar


class Books(eqx.Module):
    """What the access point needs from the last round: nothing that only devices know, such as energy."""

    global_params: Tree
    received: Tree
    """Each device's copy: models with a leading device axis, or the `Copies` that they are made of."""
    deviation: PerDevice
    score: Score
    spent: Int[Array, " device"]
    """Of each device's privacy budget: local steps so far, or rounds where noise is the access point's."""
    dossier: Dossier | None
    """What is kept about devices for the defences; None where there are none."""
    scheme_memory: Tree
    """What the scheme carries over."""


Kept = TypeVar("Kept", bound=Books)
"""The access point's books, or a whole state."""


class State(Books):
    """Everything that a round needs from the last one; with the round's number it replays exactly."""

    memory: EffortMemory
    """Each device's effort estimate, with a leading device axis."""
    past: Past | None
    """What misbehaving devices make use of; None where nobody ever does."""
    personal: Tree | None
    """Each device's model of its own, with a leading device axis; None where devices have none."""
    used_energy_j: PerDevice | None
    """Out of each device's battery so far; None where there are no batteries."""


class RoundRecord(eqx.Module):
    """What happened in one round."""

    plan: DevicePlan
    """All zeros for a device that was not asked to take part."""
    participating: FlagPerDevice
    """Who was asked to take part, and had budget and charge left to do so."""
    late: FlagPerDevice
    """Whose update came after the deadline: energy spent, update not used."""
    cheating: FlagPerDevice
    """Who misbehaved, as the scenario has it."""
    delivered: FlagPerDevice
    """Whose update arrived in time; false in outage, where the channel estimate was wrong, and where it came late."""
    findings: Int[Array, " device"]
    """What each device was caught at, a bit per defence; an update that was caught is not used."""
    served: FlagPerDevice
    """Who was sent a copy of the new model."""
    distance_now_m: PerDevice | None
    """How far away each device was; None where nobody moves."""
    received_loss: PerDevice
    """Loss, on its own data, of the model that the device had: its copy, or its own under a personal scheme.

    NaN for a device that did not take part.
    """
    received_accuracy: PerDevice
    """Accuracy of that model on some test samples; NaN likewise."""
    loss: PerDevice
    """Loss after local training, on its own data; NaN likewise."""
    update_norm: PerDevice
    deviation: PerDevice
    noise_std: PerDevice
    release_std: Scalar
    """Of the noise in the access point's own model, where that is what proves; else 0."""
    release_sensitivity: Scalar
    """What one device's update can change of it; else 0."""
    global_loss: Scalar
    """Loss of the new true model over all devices' data."""
    test_accuracy: Scalar
    membership_auc: Scalar
    """How well the new true model's losses tell training samples from test samples: 0.5 is guessing, 1 is certain."""
