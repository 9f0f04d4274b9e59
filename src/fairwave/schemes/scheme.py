"""A scheme: how devices plan, how the access point combines their updates, and what it gives to whom."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import equinox as eqx

from fairwave.errors import ArgumentError
from fairwave.extensions import RULES
from fairwave.learning.aggregate import mean_of
from fairwave.learning.model import Tree
from fairwave.policy.deviation import NoiseLevels
from fairwave.policy.rule import Rule
from fairwave.policy.updates import Updates
from fairwave.scenario.peers import Peers
from fairwave.types import FlagPerDevice, Key, Params, PerDevice, Scalar, UpdatePerDevice


@dataclasses.dataclass(frozen=True)
class SchemeSettings:
    """The parameters of a scheme's access point, and what it knows of the devices' training."""

    peers: Peers
    learning_rate: float
    aggregate: Callable[[UpdatePerDevice, FlagPerDevice], Params] = mean_of
    """From all updates and a mask of those that count to one: their mean, or a robust aggregate of them."""
    rate_decay: float = 1.0
    """Factor of the learning rate from round to round."""
    update_weight: float = 1.0
    """How often gradients are in an update, where updates are scaled to the effective number of steps."""


class ServerStep(eqx.Module):
    """How a round has moved the access point's model, and what devices held in the round."""

    step: Params
    """The change of the access point's model."""
    model: Params
    """The access point's model after the step."""
    copies: UpdatePerDevice
    """The copies that devices had in the round."""


@dataclasses.dataclass(frozen=True)
class PersonalModels:
    """Models that devices keep for themselves, and use."""

    beside: bool
    """A device trains its copy as well, with half of its iterations, and sends the change of that.

    Otherwise its own model is all that it trains, and it sends the change of that.
    """
    weight: Callable[[Peers], float]
    """The pull lambda of a device's own model towards its copy, out of the peers' parameters."""


Memory: TypeAlias = Tree
"""What a scheme carries from round to round."""


@dataclasses.dataclass(frozen=True)
class Drift:
    """A vector that every device carries from round to round, to correct its training for what is its own in its data.

    It has the form of a model and begins at zero. It changes where the device's update arrives in time.
    """

    term: Callable[[Tree, Tree], Tree]
    """From the device's vector and the access point's to what is subtracted from every gradient."""
    after: Callable[[Peers, Tree, Tree, Tree, Scalar], Tree]
    """From both vectors, the update as it was sent, and its reach to the device's next vector.

    The reach is how far a gradient of one in every step would have moved the model: the learning rate, times how often
    gradients are in the update.
    """
    told: Callable[[Memory], Params] | None = None
    """The access point's vector, out of what it remembers, with which devices begin a round; None for zero."""


Combine: TypeAlias = Callable[[SchemeSettings, Updates, Memory], tuple[Params, Memory]]
"""From all devices' updates to the step of the access point's model."""
Start: TypeAlias = Callable[[SchemeSettings, int, Params], Memory]
"""From the number of devices and the access point's first model to what is remembered before the first round."""
Reward: TypeAlias = Callable[[SchemeSettings, Updates, ServerStep, Memory, Key], UpdatePerDevice]
"""From all devices' updates and the step that they gave to the copies that devices get."""
ContributionScores: TypeAlias = Callable[[SchemeSettings, Updates, Memory], PerDevice]
"""From all devices' updates and what is remembered after the round to what each device's contribution is taken for."""


@dataclasses.dataclass(frozen=True)
class Scheme:
    """A few small parts; whatever is left out is as in the paper."""

    extends: ClassVar[str] = "schemes"

    name: str
    plan: Rule
    """For one device: its problem and its own history to iterations and power. A rule, or the name of one."""
    noise_levels: NoiseLevels
    """For all devices: deviations to the noise std in each copy that is released."""
    summary: str = ""
    """What it does, in a line, for tables and help texts."""
    combine: Combine | None = None
    """For all devices: the step of the model; left out, the mean of the updates."""
    moves_by_aggregate: bool = False
    """Its way to combine begins with `settings.aggregate`, so that a robust aggregator can replace the mean there."""
    reward: Reward | None = None
    """For all devices: the copies that they get; left out, everybody gets the access point's model, with noise."""
    scores: ContributionScores | None = None
    """For all devices: what rewards go by, in any unit; left out, the scheme has no scores of its own."""
    start: Start = lambda settings, num_devices, model: ()
    """What is remembered before the first round; left out, nothing ever is."""
    same_noise_for_all: bool = False
    """The noise level does not depend on the device, so that one noisy copy may be broadcast to everybody."""
    noisy_updates: bool = True
    """Devices add noise to their updates where the scenario asks for it."""
    exchanges_gradients: bool = True
    """Devices exchange gradients where the scenario asks for it; the rules of most peers know only plain training."""
    reports_losses: bool = False
    """Devices report the loss of their copy, which says something about their data."""
    needs_server_data: bool = False
    """The access point needs samples of its own."""
    needs_classes: bool = False
    """It judges devices by accuracy, which only models of classes have."""
    needs_every_device: bool = False
    """It judges devices by every round, so that all of them have to be asked in all rounds."""
    personal_models: PersonalModels | None = None
    """Every device keeps a model of its own and uses that; None where devices use their copies."""
    copy_pull: Callable[[Peers], float] | None = None
    """The pull lambda of training from a copy back towards it, out of the peers' parameters; None without one.

    Not beside personal models, which have a pull of their own.
    """
    scales_to_steps: bool = False
    """Devices scale their updates from their own number of local steps to the effective one, before anything else."""
    drift: Drift | None = None
    """How devices correct their gradients by what they carry from round to round; None where they carry nothing.

    Neither beside personal models nor beside an exchange of gradients, which corrects them too.
    """

    @property
    def trains_beside(self) -> bool:
        """Devices train models of their own beside what they send."""
        return self.personal_models is not None and self.personal_models.beside

    def pull_of_updates(self, peers: Peers) -> float | None:
        """The pull towards a device's copy in the training whose change it sends; None without one."""
        if self.personal_models is not None and not self.personal_models.beside:
            return self.personal_models.weight(peers)
        return None if self.copy_pull is None else self.copy_pull(peers)

    def __post_init__(self) -> None:
        if self.personal_models is not None and self.copy_pull is not None:
            raise ArgumentError(
                f"scheme '{self.name}': personal_models has a pull of its own, and copy_pull is another; leave out one"
            )
        if self.drift is not None and (self.personal_models is not None or self.exchanges_gradients):
            raise ArgumentError(
                f"scheme '{self.name}': drift corrects the training of plain copies; leave out personal_models, and "
                "set exchanges_gradients to False"
            )
        if isinstance(self.plan, str):
            object.__setattr__(self, "plan", RULES.get(self.plan, f"scheme '{self.name}'"))
        elif not isinstance(self.plan, Rule):
            object.__setattr__(self, "plan", Rule(f"{self.name}'s own", self.summary, self.plan))
