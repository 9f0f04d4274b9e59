"""Arrays, ledger events and states as bytes, and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.engine.model_copies import Copies
from fairwave.engine.round_record import Arrays
from fairwave.engine.state import ServerState, State
from fairwave.learning.named_arrays import NamedArrays, named_arrays, names_of
from fairwave.policy.effort import finite_log
from fairwave.privacy.ledger import ReleaseEvent

Kept = TypeVar("Kept", State, ServerState)

_WORDS = ("content", "sender", "audience", "basis", "proven_sensitivity")
"""The parts of a ledger event that are no arrays, in the order of the table."""
PLACES = "places"
LOG_SCALE = ".log_scale"
_ROWS = {"copies": 1, "personal_models": 1, "drift": 1, "behaviour": 1, "copies_before": 1, "sketches": 2}
"""Parts of a state that hold something for each device, and how many of their axes say for whom (and since when)."""
_LEAST_ROW = 256
"""Bytes of a row below which it is not worth a place of its own."""


def pack(arrays: Arrays) -> bytes:
    """Named arrays as a line that describes them, then their bytes; equal arrays give equal bytes."""
    given = {name: np.asarray(array) for name, array in arrays.items()}
    described = [(name, array.dtype.str, array.shape) for name, array in given.items()]
    return b"".join([json.dumps(described).encode(), b"\n", *(array.tobytes() for array in given.values())])


def unpack(content: bytes) -> Arrays:
    """What `pack` packed."""
    start = content.index(b"\n") + 1
    arrays = {}
    for name, kind, shape in json.loads(content[:start]):
        arrays[name] = np.ndarray(tuple(shape), np.dtype(kind), content, start).copy()
        start += arrays[name].nbytes
    return arrays


def event_row(event: ReleaseEvent) -> tuple[object, ...]:
    """A ledger event as its words and its packed arrays."""
    words = [getattr(event, name) for name in _WORDS]
    arrays = {field.name: getattr(event, field.name) for field in dataclasses.fields(event) if field.name not in _WORDS}
    return (*words, pack(arrays))


def event_of(words: Sequence[Any], arrays: bytes) -> ReleaseEvent:
    """What `event_row` took apart."""
    described: dict[str, Any] = dict(zip(_WORDS, words, strict=True))
    return ReleaseEvent(**described | unpack(arrays))


def pack_state(state: Kept) -> bytes:
    """The leaves of a checkpoint by their names, and for how many models its copies have room."""
    state = jax.device_get(state)
    copies = _server(state).copies.compact()
    state = _with_copies(state, copies)
    return pack({PLACES: np.asarray(copies.places)} | named_arrays(state))


def rows_of(packed: bytes) -> list[tuple[int, int]]:
    """Where a packed state holds the rows of single devices, which stay the same while nobody asks these."""
    place, rows = packed.index(b"\n") + 1, []
    for name, kind, shape in json.loads(packed[:place]):
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
        axes = max((_ROWS.get(part, 0) for part in name.split(".")), default=0)
        count = int(np.prod(shape[:axes], dtype=np.int64)) if 0 < axes < len(shape) else 0
        if count and size >= count * _LEAST_ROW:
            rows += [(place + row * (size // count), place + (row + 1) * (size // count)) for row in range(count)]
        place += size
    return rows


@double_precision()
def unpack_state(content: bytes, like: Kept) -> Kept:
    """A checkpoint with the structure of `like`."""
    arrays = unpack(content)
    like = _with_copies(like, _server(like).copies.resized(int(arrays[PLACES])))
    leaves, structure = jax.tree.flatten(like)
    names = names_of(like)
    arrays = _named(arrays, names)
    restored = [arrays[name] for name in names]
    for old, new in zip(leaves, restored, strict=True):
        if old.shape != new.shape or old.dtype != new.dtype:
            raise ValueError(f"a {new.dtype} array of shape {new.shape} where {old.dtype} {old.shape} was expected")
    state: Kept = jax.tree.unflatten(structure, [jax.numpy.asarray(leaf) for leaf in restored])
    return state


def model_in(content: bytes, names: Sequence[str]) -> NamedArrays:
    """The access point's model in a checkpoint of a simulation or a federation, whichever version wrote it."""
    arrays = unpack(content)
    if "0" in arrays:  # numbered leaves, the first of which are the model's
        return {name: arrays[str(index)] for index, name in enumerate(names)}
    of_model = {held.partition("global_params.")[2]: array for held, array in arrays.items()}
    return {name: of_model[name] for name in names}


def _named(arrays: Arrays, names: Sequence[str]) -> Arrays:
    """The arrays of a checkpoint by name, whichever version wrote it.

    At first they were numbered, in the same order, and the effort model's scale was stored instead of its logarithm.
    """
    if "0" not in arrays:
        return arrays
    named = {name: arrays[str(index)] for index, name in enumerate(names)}
    return {
        name: np.asarray(finite_log(jax.numpy.asarray(kept))) if name.endswith(LOG_SCALE) else kept
        for name, kept in named.items()
    }


def _with_copies(state: Kept, copies: Copies) -> Kept:
    server = dataclasses.replace(_server(state), copies=copies)
    changed: Any = State(server, state.devices) if isinstance(state, State) else server
    kept: Kept = changed
    return kept


def _server(state: State | ServerState) -> ServerState:
    """The access point's part of a checkpoint; a federation's checkpoint is that alone."""
    return state.server if isinstance(state, State) else state
