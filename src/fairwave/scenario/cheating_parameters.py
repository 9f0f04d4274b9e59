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
    """The devices misbehave in this way. The command 'fairwave scenario behaviours' lists all ways."""
    devices: tuple[DeviceNumber, ...] = Field(min_length=1)
    """These devices misbehave. Devices are numbered from 0."""
    strength: Annotated[float, *one(Limit(NUMBER, 0.0, 1e6, low_allowed=True))] | None = None
    """This number sets how strongly the devices misbehave. Its meaning and its default depend on the behaviour."""
    first_round: Annotated[int, *whole(1, 1_000_000)] = 1
    """The devices misbehave from this round on and are honest before it."""
    last_round: Annotated[int, *whole(1, 1_000_000)] | None = None
    """The devices misbehave until this round. Default: they never stop."""

    @model_validator(mode="after")
    def _begins_before_it_ends(self) -> Adversary:
        if self.last_round is not None and self.last_round < self.first_round:
            raise ValueError(f"last_round {self.last_round} comes before first_round {self.first_round}; raise it")
        return self


class Cheating(Group):
    """This table says which devices misbehave."""

    adversaries: tuple[Adversary, ...] = ()
    """Each entry is a table with behaviour, devices and, if wanted, strength, first_round and last_round."""
