"""Models of earlier rounds, which a run keeps beside its last checkpoint where `run.keep_models` asks for them.

Of a kept round, the file has the access point's model and what every device's copy is made of, packed as in a
checkpoint. A digest ties each part to the round that it stands on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from fairwave.runs.digests import part_digest
from fairwave.runs.order import Track
from fairwave.runs.packing import PLACES, pack, unpack

_PARTS = ("global_params", "copies")
"""Parts of a state that are kept."""


def kept_part(state: bytes) -> bytes:
    """What is kept of a packed state: the access point's model and the copies."""
    arrays = unpack(state)
    return pack({name: value for name, value in arrays.items() if name == PLACES or set(name.split(".")) & set(_PARTS)})


def read_kept(connection: sqlite3.Connection, track: Track, number: int) -> bytes | None:
    """The model of a round as it was kept; None if it was not."""
    rows = connection.execute(
        "SELECT content FROM kept WHERE scheme = ? AND seed = ? AND round = ? ORDER BY part", (*track, number)
    ).fetchall()
    return b"".join(row[0] for row in rows) if rows else None


def kept_rounds(connection: sqlite3.Connection, track: Track) -> list[int]:
    """The rounds of a track, from 0, whose models are kept."""
    rows = connection.execute(
        "SELECT DISTINCT round FROM kept WHERE scheme = ? AND seed = ? ORDER BY round", track
    ).fetchall()
    return [row[0] for row in rows]


def kept_are_sound(connection: sqlite3.Connection, track: Track, standings: Sequence[bytes]) -> bool:
    """Whether every kept model is what was written; `standings` are the digests of the track's rounds."""
    for number in kept_rounds(connection, track):
        rows = connection.execute(
            "SELECT part, content, digest FROM kept WHERE scheme = ? AND seed = ? AND round = ? ORDER BY part",
            (*track, number),
        ).fetchall()
        size = sum(len(content) for _, content, _ in rows)
        for expected, (part, content, digest) in enumerate(rows):
            if number >= len(standings) or part != expected:
                return False
            if digest != part_digest(standings[number], part, size, content):
                return False
    return True
