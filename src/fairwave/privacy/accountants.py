"""Accountants: they add up releases and tell what these cost together, in the manner of dp-accounting.

A release is known by its noise multiplier and by the probability with which a record is in it. What counts as a change
of the data is an explicit value, and an accountant refuses one that it has no proof for.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Mapping
from typing import ClassVar

from fairwave.errors import ArgumentError
from fairwave.privacy.accounting import Kind, epsilon_of, renyi_epsilon


class Adjacency(enum.Enum):
    """Which two data sets must be hard to tell apart, as in dp-accounting's `NeighboringRelation`."""

    ADD_OR_REMOVE_ONE = "one unit is there, or is not"
    REPLACE_ONE = "one unit is there, or another in its place"


class Accountant(abc.ABC):
    """Releases so far, and their cost. A new accountant is a subclass with a name and `epsilon`."""

    extends: ClassVar[str] = "accountants"
    name: ClassVar[str]
    summary: ClassVar[str]
    supports: ClassVar[tuple[Adjacency, ...]] = (Adjacency.ADD_OR_REMOVE_ONE,)

    def __init__(self, adjacency: Adjacency = Adjacency.ADD_OR_REMOVE_ONE) -> None:
        if adjacency not in self.supports:
            raise ArgumentError(f"accountant '{self.name}': has no proof for adjacency {adjacency.name}; use another")
        self.adjacency = adjacency
        self.releases: dict[Kind, int] = {}

    def compose(self, releases: Mapping[Kind, int]) -> Accountant:
        """Add so many releases of each kind; the accountant itself."""
        for kind, count in releases.items():
            self.releases[kind] = self.releases.get(kind, 0) + count
        return self

    @abc.abstractmethod
    def epsilon(self, delta: float) -> float:
        """Epsilon of all releases together at that delta, never below the truth."""


class TightAccountant(Accountant):
    """Exact where every record is in every release; else by privacy loss distributions."""

    name: ClassVar[str] = "tight"
    summary: ClassVar[str] = "The epsilon is exact, or follows from privacy loss distributions."

    def epsilon(self, delta: float) -> float:
        """Epsilon of all releases together at that delta, never below the truth."""
        return epsilon_of(self.releases, delta)


class RenyiAccountant(Accountant):
    """A looser bound, by Renyi divergences."""

    name: ClassVar[str] = "renyi"
    summary: ClassVar[str] = "The epsilon is a looser bound, which follows from Renyi divergences."

    def epsilon(self, delta: float) -> float:
        """Epsilon of all releases together at that delta, never below the truth."""
        return renyi_epsilon(self.releases, delta)


tight, renyi = TightAccountant, RenyiAccountant
