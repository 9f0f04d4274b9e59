"""Devices that do not do as they should."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from fairwave.extensions import BEHAVIOURS
from fairwave.scenario.group import Group
from fairwave.scenario.names import named
from fairwave.scenario.quantity import Limit, one, whole
from fairwave.units import NUMBER

DeviceNumber = Annotated[int, *whole(0, 100_000_000)]


class Adversary(Group):
    """One kind of misbehaviour, by some devices, in some rounds."""

    behaviour: Annotated[str, named(BEHAVIOURS), Field(min_length=1)]
    """What they do; see 'fairwave scenario behaviours'."""
    devices: tuple[DeviceNumber, ...] = Field(min_length=1)
    """Who does it, numbered from 0."""
    strength: Annotated[float, *one(Limit(NUMBER, 0.0, 1e6, low_allowed=True))] | None = None
    """How much; what it means depends on the behaviour, and so does its default."""
    first_round: Annotated[int, *whole(1, 1_000_000)] = 1
    """Round in which it begins; honest before."""
    last_round: Annotated[int, *whole(1, 1_000_000)] | None = None
    """Round in which it ends. Default: never."""

    @model_validator(mode="after")
    def _begins_before_it_ends(self) -> Adversary:
        if self.last_round is not None and self.last_round < self.first_round:
            raise ValueError(f"last_round {self.last_round} comes before first_round {self.first_round}; raise it")
        return self


class Cheating(Group):
    """Who does not do as it should."""

    adversaries: tuple[Adversary, ...] = ()
    """A table for each kind: behaviour, devices, and optionally strength, first_round, last_round."""
