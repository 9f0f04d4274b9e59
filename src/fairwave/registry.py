"""What fairwave can be extended by, under the names that scenarios and commands use.

A registry knows its members from three places: those that come with the package, those that installed packages offer as
entry points, and those that a plugin file or a program has added. Wherever a name is accepted, an object is too: it is
added under its own name. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from fairwave.errors import ArgumentError, FairwaveError, ScenarioError, did_you_mean

Member = TypeVar("Member")


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a member that did not come with the package was found."""

    place: str
    """A plugin's file, or the distribution and the module of an entry point."""
    digest: str
    """A digest of the code, so that a run notices when it has changed."""


class Registry(Generic[Member]):
    """The members of one kind by name, in the order in which they are listed."""

    def __init__(self, kind: str, group: str, builtin: Mapping[str, str]) -> None:
        """`builtin` maps names to where they are defined, as in 'package.module:attribute'."""
        self.kind, self.group = kind, group
        self._builtin = dict(builtin)
        self._added: dict[str, tuple[Member, Origin | None]] = {}

    def __getitem__(self, name: str) -> Member:
        """The member of that name; an error with a hint if there is none."""
        return self.get(name)

    def get(self, name: str, where: str = "", error: type[FairwaveError] = ArgumentError) -> Member:
        """The member of that name; `where` opens the message of the error if there is none."""
        if name in self._added:
            return self._added[name][0]
        if name in self._builtin:
            member: Member = _load(self._builtin[name])
            return member
        if name in self._offered:
            return self._from_entry_point(name)
        opening = f"{where}: " if where else ""
        raise error(f"{opening}unknown {self.kind} '{name}'; {did_you_mean(name, self.names())}")

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._added or name in self._offered

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """All names: those of the package first, then those of installed packages, then those that were added."""
        return list(dict.fromkeys((*self._builtin, *self._offered, *self._added)))

    def builtin_names(self) -> list[str]:
        """The names of those that come with the package."""
        return list(self._builtin)

    def items(self) -> Iterator[tuple[str, Member]]:
        """Every name with its member."""
        return ((name, self[name]) for name in self.names())

    def values(self) -> Iterator[Member]:
        """Every member."""
        return (self[name] for name in self.names())

    def add(self, member: Member, name: str, origin: Origin | None = None) -> str:
        """Add a member, which may replace one that was added before from the same place; its name."""
        if name in self._builtin:
            if _load(self._builtin[name]) is member:
                return name
            raise ArgumentError(f"{self.kind} '{name}': comes with fairwave; give yours another name")
        held = self._added.get(name)
        if held is not None and held[0] is not member and not _same_place(held[1], origin):
            raise ArgumentError(f"{self.kind} '{name}': another one of that name is there; give it another name")
        self._added[name] = (member, origin or (held[1] if held else None))
        return name

    def name_of(self, given: str | Member) -> str:
        """A name as it is; an object is added under its own."""
        if isinstance(given, str):
            return given
        return self.add(given, str(getattr(given, "name", "")) or type(given).__name__)

    def names_of(self, given: Iterable[str | Member]) -> tuple[str, ...]:
        """The names of members that are given by name or as objects."""
        return tuple(self.name_of(each) for each in given)

    def origin_of(self, name: str) -> Origin | None:
        """Where a member comes from; None for what comes with the package or was added by a program."""
        if name in self._added:
            return self._added[name][1]
        if name in self._builtin or name not in self._offered:
            return None
        return _entry_point_origin(self._offered[name])

    @functools.cached_property
    def _offered(self) -> dict[str, importlib.metadata.EntryPoint]:
        found = importlib.metadata.entry_points(group=f"fairwave.{self.group}")
        return {point.name: point for point in found if point.name not in self._builtin}

    def _from_entry_point(self, name: str) -> Member:
        point = self._offered[name]
        try:
            member: Member = point.load()
        except Exception as error:
            raise ScenarioError(
                f"{self.kind} '{name}': entry point '{point.value}' of {_distribution(point)} cannot be loaded "
                f"({type(error).__name__}: {error}); correct or uninstall that package"
            ) from error
        own = getattr(member, "name", name)
        if own != name:
            raise ScenarioError(
                f"{self.kind} '{name}': entry point '{point.value}' gives one that is called '{own}'; use one name"
            )
        return member


def _same_place(one: Origin | None, other: Origin | None) -> bool:
    """Whether two origins are versions of one file."""
    return one is not None and other is not None and one.place == other.place


def _load(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _distribution(point: importlib.metadata.EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"


def _entry_point_origin(point: importlib.metadata.EntryPoint) -> Origin:
    import hashlib
    import importlib.util

    spec = importlib.util.find_spec(point.module)
    content = b""
    if spec is not None and spec.origin is not None:
        with open(spec.origin, "rb") as file:
            content = file.read()
    return Origin(f"{_distribution(point)}, {point.value}", hashlib.blake2b(content, digest_size=16).hexdigest())
