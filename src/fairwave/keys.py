"""Randomness is addressed by (seed, round, stream, device), never consumed.

Two schemes with one seed meet the same channels, a new user of randomness shifts nobody else's draws, and
replaying round 37 needs the number 37 and nothing more.
"""

from __future__ import annotations

import enum

import jax

from fairwave.types import Count, Key


class Stream(enum.IntEnum):
    """What a draw is for. Append only; renumbering changes every stored result."""

    PLACEMENT = 0
    FADING = 1
    CHANNEL_ERROR = 2


def run_key(seed: int) -> Key:
    """The root of all randomness of one run."""
    return jax.random.key(seed)


def device_key(root: Key, round_index: int | Count, stream: Stream, device_index: int | Count) -> Key:
    """The key of one device's draw in one round."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(root, round_index), stream), device_index)
