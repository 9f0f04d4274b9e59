"""A run on disk: one SQLite file, whose transactions add rounds whole: metrics, ledger events, and the last checkpoint.

Each round's digest covers its content and the digest of the round before, from the run's own description on, and the
checkpoint's covers the round it stands on. Of a checkpoint, only what has changed is written. Whatever is read has been
compared with its digest first.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairwave.engine.end_reasons import EndReason
from fairwave.engine.round_record import Arrays
from fairwave.errors import StoreError
from fairwave.privacy.ledger import Ledgers, ReleaseEvent
from fairwave.privacy.modes.mode import mode_of
from fairwave.private_files import as_private_as_its_folder
from fairwave.registry import Origin
from fairwave.runs.database import FILE, TABLES, check, connect, damaged, failures
from fairwave.runs.finished_round import FinishedRound, insert_parts, insert_round
from fairwave.runs.history import Session
from fairwave.runs.integrity import (
    description_digest,
    history_and_plugins,
    track_digest,
    verify,
)
from fairwave.runs.kept_models import kept_rounds, read_kept
from fairwave.runs.migrations import FORMAT, migrated, readable
from fairwave.runs.order import Order, Track
from fairwave.runs.packing import event_of, pack, unpack
from fairwave.runs.pieces import Span, keep_pieces, read_whole, taken_apart
from fairwave.runs.plugin_check import plugins_of
from fairwave.runs.salt import DATA, keyed, make_salt
from fairwave.runs.salt import FILE as SALT
from fairwave.runs.seal import check_seal, remove_seal, seal
from fairwave.runs.starting_model import StartingModel
from fairwave.runs.unfinished import read_unfinished, unfinished_file
from fairwave.scenario.complaints import one_line
from fairwave.scenario.parameters import STORED, Scenario

UNBORN = "run.sqlite.new"
KEYED = "fingerprints"
"""The entry in a run's description that is there if its fingerprints are keyed with the salt beside it."""
INIT_FROM, INIT_DIGEST = "init_from", "init_from_digest"
"""The entries that are there if the run began with a model from a file: its place, and the digest of its parameters."""


@dataclasses.dataclass(frozen=True)
class Summary:
    """The last stored round of a track, in a few numbers; NaN where there is none."""

    rounds: int = 0
    ended: EndReason | None = None
    """Why it ended before the last round; None if it goes on or has done all rounds."""
    mean_loss: float = float("nan")
    global_loss: float = float("nan")
    test_accuracy: float = float("nan")

    def is_done(self, order: Order) -> bool:
        """Whether nothing is left to run of the track."""
        return self.rounds >= order.rounds or self.ended is not None


def no_run_in(folder: Path) -> StoreError:
    """What to say of a place that holds no run: whoever named a run's file, or a folder of many runs, is close."""
    if folder.name == FILE and folder.is_file():
        return StoreError(f"{folder}: is the file of a run; give its folder, {folder.parent}")
    below = sorted(path.parent for path in folder.glob(f"*/{FILE}")) if folder.is_dir() else []
    if len(below) == 1:
        return StoreError(f"{folder}: is no run, and holds one; give its folder, {below[0]}")
    if below:
        pages = [str(page) for page in sorted(folder.glob("*.html"))]
        shown = f", or open {pages[0]}, which compares them" if pages else ""
        return StoreError(f"{folder}: holds {len(below)} runs, not one; give one of them, such as {below[0]}{shown}")
    return StoreError(f"{folder}: no run there ({FILE} is missing); see 'fairwave runs list'")


class RunStore:
    """Reads and writes one run. Opening it checks the whole file."""

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        self.folder, self.path = folder, folder / FILE
        if not self.path.exists():
            raise no_run_in(folder)
        self._write = write
        check_seal(self.path)
        self._connection = connect(self.path, write)
        with failures(self.path):
            # A reader sees this moment until it closes, so that what it reads is what was checked.
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()  # rolls back after a crash
        self._described = self._checked()
        if write:
            with failures(self.path):
                self._connection.execute("COMMIT")
            remove_seal(self.path)

    def _checked(self) -> dict[str, str]:
        """The run's description, once the whole file has been found sound."""
        check(self._connection, self.path)
        with failures(self.path):
            described = dict(self._connection.execute("SELECT name, value FROM run ORDER BY name"))
        number = readable(self.path, described.get("format", ""))
        with failures(self.path):
            stored = described.pop("digest", "")
            expected = description_digest(described, *history_and_plugins(self._connection))
        if stored != expected:
            raise damaged(self.path, "its description does not match its digest")
        with failures(self.path):
            self._connection = migrated(self._connection, number, write=self._write)
            described = dict(self._connection.execute("SELECT name, value FROM run WHERE name <> 'digest'"))
        verify(self._connection, self.path, described["scenario"])
        return described

    @classmethod
    def create(cls, folder: Path, order: Order, about: Mapping[str, str] | None = None) -> RunStore:
        """A new run, described by its order and by `about`. It appears whole or not at all."""
        described = {"format": str(FORMAT), **(about or {}), **_order_as_text(order)}
        if mode_of(order.scenario.privacy).proves:
            make_salt(folder)
            described[KEYED] = f"keyed with {SALT}"
        unborn = folder / UNBORN
        for leftover in folder.glob(f"{UNBORN}*"):
            leftover.unlink()
        connection = connect(unborn, write=True)
        with failures(unborn):
            connection.execute("BEGIN IMMEDIATE")
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
            _describe(connection, described, None, plugins_of(order))
            connection.execute("COMMIT")
        connection.close()
        as_private_as_its_folder(unborn)
        unborn.replace(folder / FILE)
        return cls(folder, write=True)

    def close(self) -> None:
        """Let go of the file; one that was open for writing is sealed."""
        self._connection.close()
        if self._write:
            seal(self.path)

    @property
    def about(self) -> dict[str, str]:
        """The order and what else describes the run, as text."""
        return dict(self._described)

    @property
    def order(self) -> Order:
        """What this run is to do."""
        about = self._described
        return Order(
            self._scenario(),
            tuple(json.loads(about["schemes"])),
            tuple(json.loads(about["seeds"])),
            int(about["rounds"]),
            StartingModel(about[INIT_FROM], about[INIT_DIGEST]) if INIT_FROM in about else None,
        )

    def _scenario(self) -> Scenario:
        """The stored scenario. Reading a run executes no code: not even that of the plugins it names."""
        try:
            return Scenario.model_validate_json(self._described["scenario"], context={STORED: True})
        except ValidationError as error:
            listed = self.plugin_files()
            if not listed:
                raise damaged(self.path, f"its scenario: {one_line(error, Scenario)}") from None
            raise StoreError(
                f"{self.folder}: its scenario needs plugin {listed[0]}, and reading a run executes no code; if you "
                f"trust that file, add --plugin {listed[0]}"
            ) from None

    def plugin_files(self) -> list[str]:
        """The plugin files that the run's scenario names."""
        return [str(path) for path in json.loads(self._described["scenario"]).get("plugins", ())]

    def extend(self, order: Order, session: Session, *, about: Mapping[str, str] | None = None) -> None:
        """Change the order to one that asks for more of the same, and note the session; stored rounds stay."""
        wanted = _order_as_text(order)
        if wanted["scenario"] == self._scenario().model_dump_json():
            # The text stays as it is, since digests of tracks cover it: a later version may write it with more fields.
            wanted["scenario"] = self._described["scenario"]
        self._described = self._described | wanted | dict(about or {})
        with failures(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("DELETE FROM run")
            _describe(self._connection, self._described, session, plugins_of(order))
            self._connection.execute("COMMIT")

    def history(self) -> list[Session]:
        """Every time that the run was worked on, the oldest first."""
        with failures(self.path):
            return [Session(*row) for row in history_and_plugins(self._connection)[0]]

    def plugins(self) -> list[Origin]:
        """The plugins that the run uses."""
        with failures(self.path):
            return [Origin(*row) for row in history_and_plugins(self._connection)[1]]

    def begin(self, track: Track, fingerprint: bytes, layout: Arrays) -> None:
        """Register a track, and make sure that it reads what all others of the run have read."""
        if KEYED in self._described:
            fingerprint = keyed(fingerprint, self.folder)
        with failures(self.path):
            rows = self._connection.execute("SELECT scheme, seed, fingerprint FROM track").fetchall()
            for scheme, seed, stored in rows:
                same = stored == fingerprint if seed == track.seed else stored[:DATA] == fingerprint[:DATA]
                if not same:
                    raise StoreError(
                        f"{self.folder}: the data, the fleet or their split have changed since {scheme} with seed "
                        f"{seed} began; restore the old files, or start another run with --out"
                    )
            if track not in [Track(scheme, seed) for scheme, seed, _ in rows]:
                content = pack(layout)
                digest = track_digest(track, fingerprint, content, self._described["scenario"])
                self._connection.execute(
                    "INSERT INTO track VALUES (?, ?, ?, ?, ?)", (*track, fingerprint, content, digest)
                )

    def append(self, track: Track, rounds: Sequence[FinishedRound], state: bytes, spans: Sequence[Span] = ()) -> None:
        """Store rounds that follow each other whole: metrics, ledger events, and the checkpoint after the last of them.

        `spans` are the parts of the state that may be the same as in the round before, and are then not written again.
        """
        rest, pieces = taken_apart(state, spans)
        with failures(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for one in rounds:
                    digest = insert_round(self._connection, track, one, self._standing(track, one.number))
                keep_pieces(self._connection, track, pieces)
                self._connection.execute("DELETE FROM checkpoint WHERE scheme = ? AND seed = ?", track)
                insert_parts(self._connection, "checkpoint", track, rounds[-1].number, rest, digest)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def summary(self, track: Track) -> Summary:
        """How far a track is."""
        with failures(self.path):
            row = self._connection.execute(
                "SELECT number, end_reason, mean_loss, global_loss, test_accuracy FROM round "
                "WHERE scheme = ? AND seed = ? ORDER BY number DESC LIMIT 1",
                track,
            ).fetchone()
        if row is None:
            return Summary()
        numbers = [float("nan") if value is None else float(value) for value in row[2:]]
        return Summary(row[0] + 1, None if row[1] is None else EndReason(row[1]), *numbers)

    def checkpoint(self, track: Track) -> bytes | None:
        """The state after the last stored round."""
        with failures(self.path):
            return read_whole(self._connection, track)

    def models_of(self, track: Track, number: int) -> bytes:
        """The models after one of the `rounds_with_models`: as they were kept, or in the checkpoint of the last."""
        with failures(self.path):
            held = read_kept(self._connection, track, number)
            held = read_whole(self._connection, track) if held is None else held
        if held is None:
            raise damaged(self.path, f"the models of round {number + 1} of {track.scheme} are missing")
        return held

    def rounds_with_models(self, track: Track) -> list[int]:
        """The rounds, from 0, whose models are stored: those that were kept, and the last."""
        with failures(self.path):
            kept = kept_rounds(self._connection, track)
        rounds = self.summary(track).rounds
        return sorted({*kept, rounds - 1} if rounds else kept)

    def records(self, track: Track) -> list[Arrays]:
        """All stored rounds of a track."""
        with failures(self.path):
            rows = self._connection.execute(
                "SELECT arrays FROM round WHERE scheme = ? AND seed = ? ORDER BY number", track
            ).fetchall()
        return [unpack(row[0]) for row in rows]

    def releases(self, track: Track) -> list[tuple[int, ReleaseEvent]]:
        """The ledger of a track: round (from 0) and event, in the order of their release."""
        with failures(self.path):
            rows = self._connection.execute(
                "SELECT round, content, sender, audience, basis, proven_sensitivity, arrays FROM release "
                "WHERE scheme = ? AND seed = ? ORDER BY rowid",
                track,
            ).fetchall()
        return [(number, event_of(words, arrays)) for number, *words, arrays in rows]

    def ledgers(self) -> Ledgers:
        """The ledgers of all tracks that have begun."""
        return {track: ledger for track in self.order.tracks() if (ledger := self.releases(track))}

    def unfinished(self) -> Ledgers:
        """What devices may have released, at worst, in rounds that were begun and are not stored."""
        found: dict[tuple[str, int], list[tuple[int, ReleaseEvent]]] = {}
        for track in self.order.tracks():
            begun = read_unfinished(unfinished_file(self.folder, track))
            if begun is not None and begun.round >= self.summary(track).rounds:  # else a crash left the file behind
                found[track] = [(begun.round, event) for event in begun.at_worst]
        return found

    def digests(self) -> dict[str, Any]:
        """Digests that identify this run: SHA-256 of its scenario, and the last digest of each track's chain."""
        with failures(self.path):
            begun = self._connection.execute("SELECT scheme, seed FROM track ORDER BY scheme, seed").fetchall()
        tracks = [Track(*row) for row in begun]
        chains = {f"{t.scheme} {t.seed}": self._standing(t, self.summary(t).rounds).hex() for t in tracks}
        return {"scenario": hashlib.sha256(self._described["scenario"].encode()).hexdigest(), "chains": chains}

    def layout(self, seed: int) -> Arrays | None:
        """Where a seed's devices stand and what they hold; None before its first round."""
        with failures(self.path):
            row = self._connection.execute("SELECT layout FROM track WHERE seed = ? LIMIT 1", (seed,)).fetchone()
        return unpack(row[0]) if row else None

    def _standing(self, track: Track, number: int) -> bytes:
        """The digest that a round builds on: its track's, then that of the round before."""
        with failures(self.path):
            if number == 0:
                select, which = "SELECT digest FROM track WHERE scheme = ? AND seed = ?", tuple(track)
            else:
                select = "SELECT digest FROM round WHERE scheme = ? AND seed = ? AND number = ?"
                which = (*track, number - 1)
            row = self._connection.execute(select, which).fetchone()
        if row is None:
            raise damaged(self.path, f"round {number} of {track.scheme} with seed {track.seed} is missing")
        return bytes(row[0])


def _order_as_text(order: Order) -> dict[str, str]:
    first = order.init_from
    begun_with = {} if first is None else {INIT_FROM: first.path, INIT_DIGEST: first.digest}
    return begun_with | {
        "scenario": order.scenario.model_dump_json(),
        "schemes": json.dumps(order.schemes),
        "seeds": json.dumps(order.seeds),
        "rounds": str(order.rounds),
    }


def _describe(
    connection: sqlite3.Connection, described: dict[str, str], session: Session | None, plugins: Sequence[Origin]
) -> None:
    """Write the description, a row more of history if there is one, and the digest of all of it."""
    if session is not None:
        row = dataclasses.astuple(session)
        connection.execute("INSERT INTO history (begun, command, machine, versions) VALUES (?,?,?,?)", row)
    for origin in plugins:
        connection.execute("INSERT OR REPLACE INTO plugin VALUES (?, ?)", (origin.place, origin.digest))
    digest = description_digest(described, *history_and_plugins(connection))
    connection.executemany("INSERT INTO run VALUES (?, ?)", {**described, "digest": digest}.items())
