"""Digests of a run's content, and the check that everything in the file still matches them.

They form a chain: each round's digest covers the one before, and the checkpoint's covers the round it stands on and the
digests of its pieces. Those of kept models cover the round that they stand on likewise.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairwave.runs.database import damaged, failures
from fairwave.runs.digests import digest_of, part_digest
from fairwave.runs.kept_models import kept_are_sound
from fairwave.runs.order import Track
from fairwave.runs.pieces import pieces_are_sound

Row = Sequence[object]


def description_digest(described: Mapping[str, str], history: Sequence[Row], plugins: Sequence[Row]) -> str:
    """A digest of the run's own description, its history and its plugins."""
    return digest_of(*sorted(described.items()), *map(tuple, history), *map(tuple, plugins)).hex()


def history_and_plugins(connection: sqlite3.Connection) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The rows of a run's history and plugins that its description's digest covers."""
    history = connection.execute("SELECT begun, command, machine, versions FROM history ORDER BY session").fetchall()
    return history, connection.execute("SELECT place, digest FROM plugin ORDER BY place").fetchall()


def track_digest(track: Track, fingerprint: bytes, layout: bytes, scenario: str) -> bytes:
    """A digest of what a track was begun with; its first round builds on it."""
    return digest_of(*track, fingerprint, layout, scenario)


def round_digest(before: bytes, number: int, arrays: bytes, summary: Row, events: Sequence[Row]) -> bytes:
    """A digest of one round, its ledger events, and all rounds before it."""
    flat = (*summary, *(value for event in events for value in event))
    return digest_of(before, number, arrays, *map(_as_stored, flat))


def _as_stored(value: object) -> object:
    """SQLite keeps NaN as NULL."""
    return None if isinstance(value, float) and math.isnan(value) else value


def verify(connection: sqlite3.Connection, path: Path, scenario: str) -> None:
    """Compare everything that can be read with its digest; raise at the first that differs."""
    with failures(path):
        tracks = [Track(*row) for row in connection.execute("SELECT scheme, seed FROM track ORDER BY scheme, seed")]
        for table in ("round", "release", "checkpoint", "piece", "kept"):
            for row in connection.execute(f"SELECT DISTINCT scheme, seed FROM {table}"):
                if Track(*row) not in tracks:
                    raise damaged(path, f"rows of an unknown track {row} in table {table}")
        for track in tracks:
            name = f"{track.scheme} with seed {track.seed}"
            what = _mismatch(connection, track, scenario)
            if what:
                raise damaged(path, f"{what} of {name} does not match its digest")


def _mismatch(connection: sqlite3.Connection, track: Track, scenario: str) -> str | None:
    """What of a track is not what was written; None if all is."""
    fingerprint, layout, digest = connection.execute(
        "SELECT fingerprint, layout, digest FROM track WHERE scheme = ? AND seed = ?", track
    ).fetchone()
    if digest != track_digest(track, fingerprint, layout, scenario):
        return "the description"
    rounds = connection.execute(
        "SELECT number, mean_loss, global_loss, test_accuracy, end_reason, arrays, digest FROM round "
        "WHERE scheme = ? AND seed = ? ORDER BY number",
        track,
    ).fetchall()
    standing, standings = digest, []
    for expected, (number, *summary, arrays, stored) in enumerate(rounds):
        events = connection.execute(
            "SELECT content, sender, audience, basis, proven_sensitivity, arrays FROM release "
            "WHERE scheme = ? AND seed = ? AND round = ? ORDER BY rowid",
            (*track, number),
        ).fetchall()
        if number != expected or stored != round_digest(standing, number, arrays, summary, events):
            return f"round {expected + 1}"
        standing = stored
        standings.append(standing)
    later = "SELECT COUNT(*) FROM release WHERE scheme = ? AND seed = ? AND round >= ?"
    if connection.execute(later, (*track, len(rounds))).fetchone()[0]:
        return "the ledger"
    if not kept_are_sound(connection, track, standings):
        return "a kept model"
    parts = connection.execute(
        "SELECT part, round, content, digest FROM checkpoint WHERE scheme = ? AND seed = ? ORDER BY part", track
    ).fetchall()
    size = sum(len(content) for _, _, content, _ in parts)
    whole = all(
        (part, number) == (expected, len(rounds) - 1) and stored == part_digest(standing, part, size, content)
        for expected, (part, number, content, stored) in enumerate(parts)
    )
    whole = whole and bool(rounds) == bool(parts)
    stored_state = b"".join(content for _, _, content, _ in parts)
    return None if whole and pieces_are_sound(connection, track, stored_state) else "the checkpoint"
