"""A checkpoint in pieces: what has not changed since the round before is not written again.

A state is cut at given places, such as one device's copy of the model. Each such piece is a row of the table `piece`
under the digest of its content, so that equal pieces are stored once and one that moves stays. What is left of the
state is stored with every round, and says which pieces belong where; its own digest stands on the round, and covers
those of the pieces. A checkpoint of format 6 has no pieces and is read as it is.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence

from fairwave.runs.order import Track

_FIRST, _DIGEST = b"in pieces ", 16

Span = tuple[int, int]
"""Where a piece begins and ends in a state."""


def piece_digest(content: bytes | memoryview) -> bytes:
    """The name under which a piece is stored."""
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def taken_apart(state: bytes, spans: Sequence[Span]) -> tuple[bytes, dict[bytes, memoryview]]:
    """What is stored with the round, and the pieces by their digests; spans are in order and do not overlap."""
    view, pieces, rest, sizes, end = memoryview(state), dict[bytes, memoryview](), list[bytes | memoryview](), [], 0
    for start, stop in [*spans, (len(state), len(state))]:
        rest.append(view[end:start])
        sizes.append([start - end, stop - start])
        if stop > start:
            digest = piece_digest(view[start:stop])
            pieces[digest] = view[start:stop]
            rest.append(digest)
        end = stop
    return b"".join([_FIRST, json.dumps(sizes).encode(), b"\n", *rest]), pieces


def put_together(stored: bytes, piece: Callable[[bytes], bytes]) -> bytes:
    """What `taken_apart` took apart; `piece` gives the content of a digest."""
    if not stored.startswith(_FIRST):
        return stored
    return b"".join(piece(part) if is_digest else part for part, is_digest in _parts(stored))


def pieces_named(stored: bytes) -> set[bytes]:
    """The digests of all pieces that a stored checkpoint needs."""
    return {part for part, is_digest in _parts(stored) if is_digest} if stored.startswith(_FIRST) else set()


def _parts(stored: bytes) -> list[tuple[bytes, bool]]:
    """The parts of a stored checkpoint in order: content, or the digest of a piece."""
    place = stored.index(b"\n") + 1
    parts = []
    for plain, size in json.loads(stored[len(_FIRST) : place]):
        parts.append((stored[place : place + plain], False))
        place += plain
        if size:
            parts.append((stored[place : place + _DIGEST], True))
            place += _DIGEST
    return parts


def keep_pieces(connection: sqlite3.Connection, track: Track, pieces: Mapping[bytes, memoryview]) -> None:
    """Drop the pieces that a track's checkpoint no longer has, and store those that are new, in their place."""
    held = {row[0] for row in connection.execute("SELECT digest FROM piece WHERE scheme = ? AND seed = ?", track)}
    for digest in held - pieces.keys():
        connection.execute("DELETE FROM piece WHERE scheme = ? AND seed = ? AND digest = ?", (*track, digest))
    for digest, content in pieces.items():
        if digest not in held:
            connection.execute("INSERT INTO piece VALUES (?, ?, ?, ?)", (*track, digest, content))


def read_whole(connection: sqlite3.Connection, track: Track) -> bytes | None:
    """A track's checkpoint with its pieces in their places; None if it has none."""
    rows = connection.execute(
        "SELECT content FROM checkpoint WHERE scheme = ? AND seed = ? ORDER BY part", track
    ).fetchall()
    if not rows:
        return None

    def piece(digest: bytes) -> bytes:
        select = "SELECT content FROM piece WHERE scheme = ? AND seed = ? AND digest = ?"
        return bytes(connection.execute(select, (*track, digest)).fetchone()[0])

    return put_together(b"".join(row[0] for row in rows), piece)


def pieces_are_sound(connection: sqlite3.Connection, track: Track, stored: bytes) -> bool:
    """Whether the pieces of a track are those that its checkpoint names, each with the content of its digest."""
    found = set()
    for digest, content in connection.execute("SELECT digest, content FROM piece WHERE scheme = ? AND seed = ?", track):
        if piece_digest(content) != digest:
            return False
        found.add(digest)
    return found == pieces_named(stored)
