"""What to run: a scenario, the schemes and seeds to compare, and for how many rounds."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from fairwave.adversaries.behaviour import Behaviour
from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import BEHAVIOURS, COMPARED, DEFENCES, SCHEMES
from fairwave.plugins import load_plugins
from fairwave.privacy.exact_noise import check_installed
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.starting_model import StartingModel
from fairwave.scenario.parameters import Scenario
from fairwave.schemes.scheme import Scheme

Schemes: TypeAlias = str | Scheme | Sequence[str | Scheme]
"""One scheme or several, by name or as objects."""


class Track(NamedTuple):
    """One scheme with one seed: what is run from the first round to the last."""

    scheme: str
    seed: int


@dataclasses.dataclass(frozen=True)
class Order:
    """An experiment. `check` says whether it can be run; reading a stored one needs no check."""

    scenario: Scenario
    schemes: tuple[str, ...] = COMPARED
    seeds: tuple[int, ...] = (0,)
    rounds: int = 1
    init_from: StartingModel | None = None
    """The model to begin with; None for the one that the scenario draws."""

    @classmethod
    def checked(
        cls,
        scenario: Scenario,
        schemes: Schemes = COMPARED,
        seeds: Sequence[int] | int = (0,),
        rounds: int | None = None,
        init_from: str | Path | None = None,
    ) -> Order:
        """An order that can be run; schemes by name or as objects, rounds as the scenario has them if left out."""
        load_plugins(scenario.plugins)
        names = SCHEMES.names_of([schemes] if isinstance(schemes, str | Scheme) else schemes)
        first = None if init_from is None else StartingModel.at(init_from)
        order = cls(scenario, names, _as_tuple(seeds), scenario.run.num_rounds if rounds is None else rounds, first)
        order.check()
        return order

    def check(self) -> None:
        """Raise what is wrong with it, if anything is."""
        load_plugins(self.scenario.plugins)
        for name in self.schemes:
            SCHEMES.get(name, "schemes")
        if not self.schemes or not self.seeds or _twice(self.schemes) or _twice(self.seeds):
            raise ArgumentError("schemes and seeds: give at least one of each, and none twice")
        for seed in self.seeds:
            if not 0 <= seed <= 2**53:
                raise ArgumentError(f"seeds: {seed} is out of range; give whole numbers from 0 to 2^53")
        if self.rounds < 1:
            raise ArgumentError(f"rounds: {self.rounds} is too few; run at least one")
        for name in self.schemes:
            broken = objection(self.scenario, SCHEMES[name])
            if broken:
                raise ScenarioError(f"schemes: {broken}")
        if self.init_from is not None and self.scenario.learning.first_model == "zero":
            raise ArgumentError(
                f"first model {self.init_from.path}: the scenario begins with zeros (learning.first_model = 'zero'); "
                "leave one out"
            )
        _check_members(self.scenario)
        if self.scenario.privacy.noise_source == "exact":
            check_installed()

    def tracks(self) -> Iterator[Track]:
        """Seed by seed, so that all schemes can be compared as soon as one seed is done."""
        for seed in self.seeds:
            for scheme in self.schemes:
                yield Track(scheme, seed)

    def seeded(self, seed: int) -> Scenario:
        """The scenario with that seed."""
        return self.scenario.model_copy(update={"run": self.scenario.run.model_copy(update={"seed": seed})})


def _as_tuple(seeds: Sequence[int] | int) -> tuple[int, ...]:
    """Seeds as they are given: one, or several."""
    given = tuple(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else (seeds,)
    for seed in given:
        if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
            raise ArgumentError(f"seeds: {seed!r} is no whole number; give one such as 0, or several such as [0, 1, 2]")
    return tuple(map(int, given))


def _twice(values: Sequence[object]) -> bool:
    return len(set(values)) < len(values)


def _check_members(scenario: Scenario) -> None:
    """Refuse behaviours and defences that do not exist, or that the privacy mode refuses."""
    mode = mode_of(scenario.privacy)
    for entry in scenario.cheating.adversaries:
        behaviour = BEHAVIOURS.get(entry.behaviour, "cheating.adversaries", ScenarioError)
        refused = objection_to_behaviour(scenario, behaviour)
        if refused:
            raise ScenarioError(f"cheating.adversaries: {refused}")
    for name in scenario.defences.use:
        DEFENCES.get(name, "defences.use", ScenarioError)
        refused = mode.refuses_defence(name)
        if refused:
            raise ScenarioError(f"defences.use: {refused}")


def objection_to_behaviour(scenario: Scenario, behaviour: Behaviour) -> str | None:
    """Why no device of the scenario can misbehave so; None if one can."""
    if behaviour.flips_labels and scenario.data.target == "number":
        return f"'{behaviour.name}' swaps classes, and data.target is 'number'; choose another behaviour"
    if behaviour.trigger is not None and (scenario.data.target == "number" or scenario.learning.features != "none"):
        return (
            f"'{behaviour.name}' marks inputs for a class, and data.target '{scenario.data.target}' with "
            f"learning.features '{scenario.learning.features}' shows the model no inputs of classes; choose another "
            "behaviour, or set them to 'class' and 'none'"
        )
    mode = mode_of(scenario.privacy)
    return mode.refuses_behaviour(behaviour.name, changes_sampling=behaviour.share_of_data is not None)


def objection(scenario: Scenario, scheme: Scheme) -> str | None:
    """Why a scheme does not fit the scenario, or would break what its privacy mode proves; None if it does."""
    cell = scenario.cell
    if scheme.needs_every_device and (
        cell.participants not in (None, cell.num_devices) or cell.arrival_round or cell.departure_round
    ):
        return (
            f"'{scheme.name}' judges devices by every round, and cell.participants, arrival_round or departure_round "
            "leaves some out; leave the scheme out, or ask all"
        )
    if (scheme.reward is not None or scheme.needs_every_device) and scenario.learning.late_rounds:
        return (
            f"'{scheme.name}' rewards or judges devices by what they sent in a round, and learning.late_rounds "
            f"{scenario.learning.late_rounds} uses what they sent before; leave the scheme out, or set it to 0"
        )
    if scheme.drift is not None and scenario.learning.late_rounds:
        return (
            f"'{scheme.name}' corrects devices by what arrived of them in the last round, and learning.late_rounds "
            f"{scenario.learning.late_rounds} uses what they sent before; leave the scheme out, or set it to 0"
        )
    if scheme.needs_classes and scenario.data.target == "number":
        return f"'{scheme.name}' judges devices by accuracy, and data.target 'number' has none; leave the scheme out"
    if scheme.combine and not scheme.moves_by_aggregate and scenario.defences.aggregator != "mean":
        return (
            f"'{scheme.name}' combines updates in a way of its own, and defences.aggregator "
            f"'{scenario.defences.aggregator}' replaces their mean; leave the scheme out, or set it to 'mean'"
        )
    if scheme.scales_to_steps and scenario.learning.optimizer == "adam":
        return (
            f"'{scheme.name}' scales updates by how often gradients are in them, and those of learning.optimizer "
            "'adam' are no sum of gradients; take 'sgd' or 'momentum', or leave the scheme out"
        )
    return _pull_objection(scenario, scheme) or mode_of(scenario.privacy).refuses_scheme(scheme)


def _pull_objection(scenario: Scenario, scheme: Scheme) -> str | None:
    """Why training that is pulled towards the copy, in every step that is sent, would go wrong; None if it does not."""
    learning, weight = scenario.learning, scheme.pull_of_updates(scenario.peers)
    if weight is None:
        return None
    if learning.learning_rate * weight > 1.0:
        return (
            f"'{scheme.name}' pulls models towards their copies by {weight:g}, and with learning.learning_rate "
            f"{learning.learning_rate:g} every step would go beyond the copy; take a pull of at most "
            f"{1.0 / learning.learning_rate:g} ([peers])"
        )
    if learning.optimizer == "adam" and mode_of(scenario.privacy).counts_steps:
        return (
            f"'{scheme.name}' pulls models towards their copies, and the noise that learning.optimizer 'adam' then "
            f"leaves in an update, which devices report under privacy.mode '{scenario.privacy.mode}', is not known; "
            "take 'sgd' or 'momentum'"
        )
    if scheme.personal_models is None:  # training starts at the copy: its noise is not in the change
        return None
    for name in scenario.defences.use:
        if weight > 0.0 and DEFENCES.get(name, "defences.use", ScenarioError).finds_copy_noise:
            return (
                f"'{scheme.name}' pulls models towards their copies, noise included, which '{name}' in defences.use "
                f"takes for an echo; leave '{name}' out of it, or leave the scheme out"
            )
    return None


def fitting_schemes(scenario: Scenario) -> list[str]:
    """The names of all schemes that a scenario allows."""
    return [name for name, scheme in SCHEMES.items() if objection(scenario, scheme) is None]
