"""Randomness is addressed by (seed, round, stream, device), never consumed.

Two schemes with one seed meet the same channels, a new user of randomness shifts nobody else's draws, and
replaying round 37 needs the number 37 and nothing more.
"""

from __future__ import annotations

import enum

import jax
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.types import Count, Key


class Stream(enum.IntEnum):
    """What a draw is for. Append only; renumbering changes every stored result."""

    PLACEMENT = 0
    FADING = 1
    CHANNEL_ERROR = 2
    PARTITION = 3
    INITIAL_MODEL = 4
    BATCH = 5
    LOCAL_NOISE = 6
    RELEASE_NOISE = 7
    PARTICIPATION = 8
    STRAGGLING = 9
    GRADIENT_NOISE = 10
    CENTRAL_NOISE = 11
    ADVERSARY = 12
    REWARD = 13
    SCATTERING = 14
    MOBILITY = 15
    SWEEP = 16
    SENSITIVITY = 17
    MODEL_NOISE = 18
    UPDATE_ROUNDING = 19
    GRADIENT_ROUNDING = 20
    REFERENCE = 21
    LABEL_NOISE = 22
    AGGREGATOR = 23
    REFERENCE_BATCH = 24
    SHAPLEY = 25
    GRADIENT_AGGREGATOR = 26


def run_key(seed: int) -> Key:
    """The root of all randomness of one run."""
    return jax.random.key(seed)


def device_key(root: Key, round_index: int | Count, stream: Stream, device_index: int | Count) -> Key:
    """The key of one device's draw in one round."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(root, round_index), stream), device_index)


def round_key(root: Key, round_index: int | Count, stream: Stream) -> Key:
    """The key of a draw that concerns the whole cell in one round."""
    return device_key(root, round_index, stream, 0)


def host_generator(seed: int, stream: Stream, number: int = 0, member: int = 0) -> np.random.Generator:
    """A NumPy generator for work done on the host, seeded by its address.

    Work that is done many times, or for many members, is told apart by number and member.
    """
    with double_precision():  # without it, a seed counts modulo 2^32
        address = device_key(run_key(seed), number, stream, member)
        return np.random.default_rng(np.asarray(jax.random.key_data(address)))
