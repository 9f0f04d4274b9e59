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
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.order import Order, Track
from fairwave.runs.packing import unpack_state


@dataclasses.dataclass(frozen=True)
class TrackAssignment:
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


def announce(assigned: TrackAssignment | None) -> None:
    """Tell all other processes, where there are any, what comes next; None is the end."""
    if jax.process_count() == 1:
        return
    if assigned is None:
        _broadcast(b"")
        return
    words = {
        "track": assigned.track,
        "first": assigned.first,
        "rounds": assigned.rounds,
        "begun": assigned.checkpoint is not None,
    }
    _broadcast(json.dumps(words).encode())
    _broadcast(assigned.checkpoint or b"")


def follow(order: Order) -> None:
    """Compute what the first process announces, until it announces the end."""
    experiment = Experiment(order)
    while (assigned := _heard()) is not None:
        cell = experiment.cell(assigned.track)
        state = None if assigned.checkpoint is None else unpack_state(assigned.checkpoint, like=cell.start())
        for _ in run_rounds(cell, assigned.rounds, state, assigned.first):
            pass


def _heard() -> TrackAssignment | None:
    words = _broadcast(b"")
    if not words:
        return None
    fields, checkpoint = json.loads(words), _broadcast(b"")
    return TrackAssignment(
        Track(*fields["track"]), fields["first"], fields["rounds"], checkpoint if fields["begun"] else None
    )


def _broadcast(content: bytes) -> bytes:
    """The first process's bytes, at all processes."""
    from jax.experimental.multihost_utils import broadcast_one_to_all

    size = int(broadcast_one_to_all(np.asarray(len(content), np.int32)))
    ours = np.frombuffer(content, np.uint8) if jax.process_index() == 0 else np.zeros(size, np.uint8)
    return np.asarray(broadcast_one_to_all(ours), np.uint8).tobytes() if size else b""
