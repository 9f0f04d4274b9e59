"""What is carried from round to round: the access point's state, and the devices' own."""

from __future__ import annotations

import dataclasses

import equinox as eqx
from jaxtyping import Array, Int

from fairwave.engine.behaviour_history import BehaviourHistory
from fairwave.engine.device_history import DeviceHistory
from fairwave.engine.model_copies import Copies
from fairwave.engine.on_the_way import OnTheWay
from fairwave.learning.model import Tree
from fairwave.policy.contribution import Score
from fairwave.policy.effort_fit import EffortMemory
from fairwave.policy.repetition import Repetition
from fairwave.policy.training_evidence import Evidence
from fairwave.types import PerDevice


class ServerState(eqx.Module):
    """All that the access point remembers between rounds: nothing that only devices know, such as energy."""

    global_params: Tree
    """Its own model."""
    copies: Copies
    """The copy of the model that each device holds."""
    deviation: PerDevice
    """The deviation factor of each device, as it was last sent to it."""
    score: Score
    """The running similarity from which deviations follow."""
    budget_spent: Int[Array, " device"]
    """Part of each device's privacy budget that is spent: local steps or rounds, as the privacy mode counts."""
    device_history: DeviceHistory | None
    """What defences remember of devices; None where there are none."""
    scheme_memory: Tree
    """What the scheme carries over."""
    evidence: Evidence | None = None
    """Evidence of every device's work; None where devices are not scored by it."""
    repetition: Repetition | None = None
    """What every device has sent so far, and how much of it again; None where devices are not scored by evidence."""


class DeviceStates(eqx.Module):
    """What every device remembers for itself, with a leading device axis; the access point never sees it."""

    effort: EffortMemory
    """Each device's estimate of how its deviation answers to its effort."""
    personal_models: Tree | None
    """Each device's model of its own; None where the scheme has none."""
    used_energy_j: PerDevice | None
    """Energy taken from each battery so far; None where there are no batteries."""
    behaviour: BehaviourHistory | None
    """What devices that misbehave make use of; None where nobody ever does."""
    on_the_way: OnTheWay | None = None
    """Late updates that have not arrived yet; None where they are never used."""
    drift: Tree | None = None
    """Each device's vector by which it corrects its gradients; None where the scheme has none."""


class State(eqx.Module):
    """Everything that a round needs from the last one; with the round's number it replays exactly."""

    server: ServerState
    devices: DeviceStates

    def with_places(self, places: int) -> State:
        """The same with place for so many models that devices may hold copies of."""
        copies = self.server.copies
        if copies.places == places:
            return self
        return State(dataclasses.replace(self.server, copies=copies.resized(places)), self.devices)
