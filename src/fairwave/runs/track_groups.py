"""Tracks that are computed side by side: those of one scheme that have equally many rounds done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairwave.runs.order import Track

MOST_TOGETHER = 16
"""Tracks that are computed side by side: more hardly fill a GPU better, and each takes memory."""


class Group(NamedTuple):
    """Tracks of one scheme that are computed side by side."""

    members: Sequence[Track]
    """All that the order has for these seeds, since the last bits of each depend on who is beside it."""
    left: Sequence[int]
    """The places of those that are still to be run."""


def side_by_side(left: Sequence[tuple[Track, int]], seeds: Sequence[int], size: int) -> Iterator[Group]:
    """The tracks that are left, with the rounds that each has done, in groups of at most `size` members."""
    groups: dict[tuple[str | int, ...], Group] = {}
    for number, (track, rounds) in enumerate(left):
        which, place = divmod(seeds.index(track.seed), size)
        members = [Track(track.scheme, seed) for seed in seeds[which * size : (which + 1) * size]]
        # One by one, tracks stay in their order: seed by seed.
        key = (number,) if size == 1 else (track.scheme, rounds, which)
        groups[key] = Group(members, [*groups.get(key, Group((), ())).left, place])
    yield from groups.values()
