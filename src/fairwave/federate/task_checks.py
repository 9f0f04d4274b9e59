"""Which tasks a device answers: those that its scenario has, in the order of a round, with the round's own copy."""

from __future__ import annotations

import hashlib

from fairwave.federate.client_state import ClientState
from fairwave.federate.protocol import Phase, Task
from fairwave.learning.named_arrays import NamedArrays
from fairwave.runs.experiment import digest


def is_unforeseen(task: Task, exchanges: bool) -> bool:
    """Whether the scenario has no such exchange: a gradient without the noise that it would need stays here."""
    if task.phase is Phase.GRADIENT:
        return not exchanges or task.copy is None
    return (task.copy is None) != exchanges  # the copy comes with the first exchange of a round, and only with that


def is_out_of_turn(task: Task, state: ClientState, exchanges: bool) -> bool:
    """Whether a task belongs to a round that is over, not begun, or begun with another copy of the model."""
    if task.round < state.round:
        return True
    if task.copy is None:
        return task.round != state.round or (exchanges and state.gradient is None)
    return task.round == state.round and digest_of(task.copy) != digest_of(state.copy)


def digest_of(*parts: NamedArrays | None) -> bytes:
    """A digest of what a device is asked: the same digest, the same question."""
    taken = hashlib.blake2b(digest_size=16)
    for arrays in parts:
        named = sorted((arrays or {}).items())
        taken.update(repr((arrays is None, [name for name, _ in named])).encode())
        taken.update(digest(*(array for _, array in named)))
    return taken.digest()
