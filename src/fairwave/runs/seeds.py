"""Seeds as people write them."""

from __future__ import annotations

import re

from fairwave.errors import ArgumentError

_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_MOST_SEEDS = 10_000


def seeds_in(text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas, and ranges that include both ends."""
    seeds: list[int] = []
    for part in (piece.strip() for piece in text.split(",")):
        span = _RANGE.fullmatch(part)
        if span and int(span[2]) < int(span[1]):
            raise ArgumentError(f"--seeds '{text}': {part} ends before it begins; write {span[2]}..{span[1]}")
        if span and int(span[2]) - int(span[1]) < _MOST_SEEDS:
            seeds.extend(range(int(span[1]), int(span[2]) + 1))
        elif part.isdecimal():
            seeds.append(int(part))
        else:
            raise ArgumentError(f"--seeds '{text}': cannot be read; give whole numbers such as 0..4 or 0,3,7")
    return tuple(seeds)
