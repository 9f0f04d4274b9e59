"""One finished round as rows of a run's file; their digest stands on that of the round before."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Sequence

from fairwave.engine.end_reasons import EndReason
from fairwave.engine.round_record import Arrays, mean_of_participants
from fairwave.privacy.ledger import ReleaseEvent
from fairwave.runs.digests import part_digest
from fairwave.runs.integrity import round_digest
from fairwave.runs.order import Track
from fairwave.runs.packing import event_row, pack

PART = 1 << 26
"""Bytes of a checkpoint or of a kept model per row, far below SQLite's limit."""


@dataclasses.dataclass(frozen=True)
class FinishedRound:
    """What is stored of a round for good."""

    number: int
    arrays: Arrays
    """Its metrics."""
    releases: Sequence[ReleaseEvent]
    ended: EndReason | None = None
    """Why it was the last, if it was so before all rounds were done."""
    kept: bytes | None = None
    """What stays of its state once later rounds are stored; None if nothing does."""


def insert_round(connection: sqlite3.Connection, track: Track, finished: FinishedRound, before: bytes) -> bytes:
    """Write a round, and return its digest; `before` is the digest that it builds on."""
    arrays, reason = finished.arrays, None if finished.ended is None else str(finished.ended)
    measured = (
        mean_of_participants(arrays["loss"]),
        float(arrays["global_loss"]),
        float(arrays["test_accuracy"]),
    )
    content, events = pack(arrays), [event_row(event) for event in finished.releases]
    digest = round_digest(before, finished.number, content, (*measured, reason), events)
    row = (*track, finished.number, *measured, reason, content, digest)
    connection.execute("INSERT INTO round VALUES (?,?,?,?,?,?,?,?,?)", row)
    rows = [(*track, finished.number, *event) for event in events]
    connection.executemany("INSERT INTO release VALUES (?,?,?,?,?,?,?,?,?)", rows)
    if finished.kept is not None:
        insert_parts(connection, "kept", track, finished.number, finished.kept, digest)
    return digest


def insert_parts(
    connection: sqlite3.Connection, table: str, track: Track, number: int, content: bytes, standing: bytes
) -> None:
    """Write what stands on a round in rows that are small enough."""
    for part, start in enumerate(range(0, len(content), PART)):
        row = content[start : start + PART]
        digest = part_digest(standing, part, len(content), row)
        connection.execute(f"INSERT INTO {table} VALUES (?,?,?,?,?,?)", (*track, part, number, row, digest))
