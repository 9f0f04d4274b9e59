"""What a scheme is: how devices plan, how the access point combines updates, and what it gives to whom."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx

from fairwave.learning.model import Tree
from fairwave.policy.deviation import Levels
from fairwave.policy.rules import Rule
from fairwave.scenario.peers import Peers
from fairwave.types import FlagPerDevice, Key, Params, PerDevice, UpdatePerDevice


@dataclasses.dataclass(frozen=True)
class Terms:
    """What a scheme's access point is set to, and what it knows of the devices' training."""

    peers: Peers
    learning_rate: float


class Inbox(eqx.Module):
    """What the access point has of all devices when a round's updates are in; zero for those that sent none."""

    updates: UpdatePerDevice
    used: FlagPerDevice
    """Whose update arrived and was not refused."""
    told_loss: PerDevice
    """Of the copy that each received, on its own data; only schemes that say so are told."""
    accuracy: PerDevice
    """Of the model moved by each update alone, on samples of the access point's own; NaN where it has none."""
    held: PerDevice
    """Samples that each device has."""


class Progress(eqx.Module):
    """What a round has brought."""

    step: Params
    """Of the access point's model."""
    model: Params
    """The access point's, after the step."""
    copies: UpdatePerDevice
    """Those that devices had in the round."""


Memory: TypeAlias = Tree
"""What a scheme carries from round to round."""
Combine: TypeAlias = Callable[[Terms, Inbox, Memory], tuple[Params, Memory]]
"""From updates to the step of the access point's model."""
Give: TypeAlias = Callable[[Terms, Inbox, Progress, Memory, Key], UpdatePerDevice]
"""From what the round has brought to the copies that devices get."""


@dataclasses.dataclass(frozen=True)
class Scheme:
    """A few small parts; what is left out is the paper's."""

    name: str
    plan: Rule
    """One device: its problem and its own history to iterations and power."""
    levels: Levels
    """All devices: deviation to the noise in each copy that is released."""
    combine: Combine | None = None
    """All devices; left out, the mean of the updates."""
    give: Give | None = None
    """All devices; left out, everybody gets the access point's model, with noise."""
    start: Callable[[int], Memory] = lambda num_devices: ()
    """What is remembered before the first round, for so many devices."""
    same_for_all: bool = False
    """The noise level does not depend on the device, so that one noisy copy may be broadcast to everybody."""
    noisy_updates: bool = True
    """Devices add noise to their updates where the scenario asks for it."""
    exchanges: bool = True
    """Devices exchange gradients where the scenario asks for it; the rules of most peers know only plain training."""
    told_losses: bool = False
    """Devices tell the loss of their copy, which is about their data."""
    needs_samples: bool = False
    """The access point needs samples of its own."""
    needs_all: bool = False
    """It judges devices by every round, so that all have to be asked in all of them."""
    personal: bool = False
    """Every device keeps a model of its own beside the shared one, and uses that."""
