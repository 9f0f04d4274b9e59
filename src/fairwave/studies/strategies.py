"""Strategies of a device that knows the rules: mixtures of behaviours that are played at once."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from fairwave.extensions import BEHAVIOURS
from fairwave.runs.order import objection_to_behaviour
from fairwave.scenario.cheating_parameters import Adversary
from fairwave.scenario.parameters import Scenario


@dataclasses.dataclass(frozen=True)
class Axis:
    """One thing that a strategic device chooses."""

    behaviour: str
    """The behaviour that plays it; its strength is the choice."""
    low: float
    high: float
    honest: float
    """The choice of a device that does as it should: the behaviour is then left out."""
    is_factor: bool = False
    """Choices are drawn evenly on a logarithmic scale."""

    def at(self, place: float) -> float:
        """The choice at a place in [0, 1] of the range."""
        if self.is_factor:
            return math.exp(math.log(self.low) + place * math.log(self.high / self.low))
        return self.low + place * (self.high - self.low)


AXES = (
    Axis("fewer_iterations", 0.0, 1.0, honest=1.0),
    Axis("part_of_data", 0.02, 1.0, honest=1.0),
    Axis("scaled", 0.3, 10.0, honest=1.0, is_factor=True),
    Axis("adds_last_update", 0.0, 1.0, honest=0.0),
    Axis("adds_first_update", 0.0, 0.5, honest=0.0),
    Axis("adds_echo", 0.0, 1.0, honest=0.0),
    Axis("adds_path", 0.0, 1.0, honest=0.0),
    Axis("adds_noise", 0.0, 1.5, honest=0.0),
)
"""In the order in which they are played."""
LATEST_START = 10
"""Last round in which a strategy may begin; the device is honest before."""
LEFT_OUT = 0.5
"""Chance that a drawn strategy is honest in one respect."""
STEP = 0.15
"""Std of the steps by which a strategy is refined, as a share of each range."""


@dataclasses.dataclass(frozen=True)
class Strategy:
    """What a strategic device does from its first round on."""

    choices: tuple[tuple[str, float], ...]
    """Behaviours and their strengths; all others are honest."""
    first_round: int

    @property
    def words(self) -> str:
        """The strategy in a table."""
        played = ", ".join(f"{name} {value:.2g}" for name, value in self.choices) or "honest"
        return f"{played} from round {self.first_round}"

    def entries(self, device: int) -> tuple[Adversary, ...]:
        """What the scenario has to say for a device to play it."""
        return tuple(
            Adversary(behaviour=name, devices=(device,), strength=value, first_round=self.first_round)
            for name, value in self.choices
        )


def axes_of(scenario: Scenario) -> list[Axis]:
    """What devices can choose in a scenario: proofs of privacy rule some of it out."""
    return [axis for axis in AXES if objection_to_behaviour(scenario, BEHAVIOURS[axis.behaviour]) is None]


def drawn(axes: list[Axis], random: np.random.Generator, rounds: int) -> Strategy:
    """A strategy from anywhere in the space."""
    places = {axis.behaviour: random.uniform() for axis in axes if random.uniform() > LEFT_OUT}
    return _strategy(axes, places, int(random.integers(1, min(LATEST_START, rounds // 2) + 1)))


def near(axes: list[Axis], centre: Strategy, random: np.random.Generator, rounds: int) -> Strategy:
    """A strategy not far from another."""
    held, places = dict(centre.choices), dict[str, float]()
    for axis in axes:
        change = random.normal(scale=STEP)
        if axis.behaviour in held:
            places[axis.behaviour] = float(np.clip(_place(axis, held[axis.behaviour]) + change, 0.0, 1.0))
        elif random.uniform() < STEP:
            places[axis.behaviour] = random.uniform()
    start = centre.first_round + round(random.normal())
    return _strategy(axes, places, min(max(start, 1), LATEST_START, rounds // 2))


def _place(axis: Axis, value: float) -> float:
    if axis.is_factor:
        return math.log(value / axis.low) / math.log(axis.high / axis.low)
    return (value - axis.low) / (axis.high - axis.low)


def _strategy(axes: list[Axis], places: dict[str, float], first_round: int) -> Strategy:
    chosen = {axis.behaviour: axis.at(places[axis.behaviour]) for axis in axes if axis.behaviour in places}
    honest = {axis.behaviour: axis.honest for axis in axes}
    played = ((name, round(value, 3)) for name, value in chosen.items())
    return Strategy(tuple((name, value) for name, value in played if value != honest[name]), first_round)
