"""One run on several processes or machines: all of them compute, the first one stores.

Every process is given the same command. The first says which track comes next and from which state it starts; from then
on all decide alike, since all see the same results.
"""

from __future__ import annotations

import dataclasses
import json

import jax
import numpy as np

from fairwave.errors import ArgumentError
from fairwave.runs.order import Order, Track
from fairwave.runs.packing import unpack_state
from fairwave.runs.training import Workshop, iterate


@dataclasses.dataclass(frozen=True)
class Turn:
    """A track that is to be run by all."""

    track: Track
    first: int
    """Rounds that are stored already."""
    rounds: int
    checkpoint: bytes | None


def join(coordinator: str, processes: int | None, process: int | None) -> None:
    """Meet the other processes; before JAX does anything else."""
    if processes is None or process is None:
        raise ArgumentError("--coordinator: needs --processes, how many there are, and --process, which one this is")
    if not 0 <= process < processes:
        raise ArgumentError(f"--process {process}: of {processes} processes; number them from 0 to {processes - 1}")
    jax.distributed.initialize(coordinator, processes, process)


def announce(turn: Turn | None) -> None:
    """Tell all other processes, where there are any, what comes next; None is the end."""
    if jax.process_count() == 1:
        return
    if turn is None:
        _broadcast(b"")
        return
    words = {"track": turn.track, "first": turn.first, "rounds": turn.rounds, "begun": turn.checkpoint is not None}
    _broadcast(json.dumps(words).encode())
    _broadcast(turn.checkpoint or b"")


def follow(order: Order) -> None:
    """Compute what the first process announces, until it announces the end."""
    workshop = Workshop(order)
    while (turn := _heard()) is not None:
        cell = workshop.cell(turn.track)
        state = None if turn.checkpoint is None else unpack_state(turn.checkpoint, like=cell.start())
        for _ in iterate(cell, turn.rounds, state, turn.first):
            pass


def _heard() -> Turn | None:
    words = _broadcast(b"")
    if not words:
        return None
    told, checkpoint = json.loads(words), _broadcast(b"")
    return Turn(Track(*told["track"]), told["first"], told["rounds"], checkpoint if told["begun"] else None)


def _broadcast(content: bytes) -> bytes:
    """The first process's bytes, at all processes."""
    from jax.experimental.multihost_utils import broadcast_one_to_all

    size = int(broadcast_one_to_all(np.asarray(len(content), np.int32)))
    ours = np.frombuffer(content, np.uint8) if jax.process_index() == 0 else np.zeros(size, np.uint8)
    return np.asarray(broadcast_one_to_all(ours), np.uint8).tobytes() if size else b""
