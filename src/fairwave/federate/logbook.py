"""A federation's run store, beside it what has to outlive a crash, and a log that a person can follow."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.engine.records import Arrays, mean_of_participants
from fairwave.engine.state import Books
from fairwave.errors import StoreError
from fairwave.federate.brief import Brief
from fairwave.federate.diary import replace_file
from fairwave.federate.protocol import named_arrays
from fairwave.privacy.ledger import ReleaseEvent
from fairwave.runs.database import locked
from fairwave.runs.folder import FEDERATION, holds_run, make_folder, planned, surroundings
from fairwave.runs.order import Track
from fairwave.runs.packing import pack, pack_state, unpack_state
from fairwave.runs.store import RunStore
from fairwave.types import Key

LOG = "federation.jsonl"
SECRET = "release.key"
ASKED = "asked.json"
DEVICES = "devices"
"""Folder of the devices' diaries, where devices and access point share a machine."""
MODELS = "models"
"""Folder of the trained models, as .npz."""
LOGS = "logs"
"""Folder of what Flower's programs say."""
NAME = "federation"
"""Of the entry in a run's description that holds the federation's name."""


Hear = Callable[[dict[str, Any]], None]
"""Told of every line of the log."""


class Logbook:
    """A run folder held for writing by the access point."""

    def __init__(self, folder: Path, brief: Brief, command: str, hear: Hear = lambda line: None) -> None:
        self.folder, self._brief, self._command, self._hear = folder, brief, command, hear

    def __enter__(self) -> Logbook:
        if not holds_run(self.folder):
            make_folder(self.folder, known=(LOG, SECRET, ASKED, DEVICES, LOGS, MODELS))
        self._lock = locked(self.folder)
        self._lock.__enter__()
        try:
            self.store = self._opened()
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.store.close()
        finally:
            self._lock.__exit__(kind, error, trace)

    def _opened(self) -> RunStore:
        about = {"command": self._command, "kind": FEDERATION} | surroundings()
        if not holds_run(self.folder):
            return RunStore.create(self.folder, self._brief.order, {**about, NAME: secrets.token_hex(8)})
        wanted = planned(self._brief.order, self.folder)
        store = RunStore(self.folder, write=True)
        try:
            if NAME not in store.about:
                raise StoreError(f"{self.folder}: holds a simulation, not a federation; choose another --out")
            if store.order != wanted:
                store.extend(wanted, about)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def name(self) -> str:
        """Of the federation, by which devices know it again after a restart."""
        return self.store.about[NAME]

    def secret(self) -> Key:
        """The root of the access point's own noise: drawn once, kept in a private file, known to nobody else."""
        path = self.folder / SECRET
        if not path.exists():
            replace_file(path, secrets.token_bytes(8))
        with jax.enable_x64(True):
            key: Key = jax.random.wrap_key_data(jnp.asarray(np.frombuffer(path.read_bytes(), np.uint32)))
        return key

    def books(self, track: Track, like: Books) -> Books:
        """The access point's books after the last stored round."""
        held = self.store.checkpoint(track)
        return like if held is None else unpack_state(held, like=like)

    def scored_rounds(self, track: Track, num_devices: int) -> np.ndarray:
        """The last round in which each device's update was scored; -1 for none."""
        last = np.full(num_devices, -1)
        for number, arrays in enumerate(self.store.records(track)):
            last[arrays["delivered"]] = number
        return last

    def note_asked(self, track: Track, number: int, devices: Iterable[int]) -> None:
        """Write down, before they are asked, who may have answered a round that is then cut short."""
        asked = sorted({*self.asked(track, number), *devices})
        content = {"scheme": track.scheme, "seed": track.seed, "round": number, "devices": asked}
        replace_file(self.folder / ASKED, json.dumps(content).encode())

    def asked(self, track: Track, number: int) -> list[int]:
        """Devices that were asked in this round, now or before a crash."""
        path = self.folder / ASKED
        if not path.exists():
            return []
        held = json.loads(path.read_bytes())
        return held["devices"] if (held["scheme"], held["seed"], held["round"]) == (*track, number) else []

    def append(
        self, track: Track, number: int, arrays: Arrays, releases: list[ReleaseEvent], books: Books, *, last: bool
    ) -> None:
        """Store a round; its model is written first, so that a stored round always has one."""
        round_name = f"-round-{number + 1}" if self._brief.settings.keep_models == "all" else ""
        (self.folder / MODELS).mkdir(exist_ok=True)
        model = self.folder / MODELS / f"{track.scheme}-{track.seed}{round_name}.npz"
        replace_file(model, pack(named_arrays(books.global_params)))
        self.store.append(track, number, arrays, releases, pack_state(books), last=last)
        (self.folder / ASKED).unlink(missing_ok=True)

    def tell(self, event: str, **details: object) -> None:
        """A line of the log."""
        self._hear(note(self.folder, event, **details))

    def tell_round(self, track: Track, number: int, arrays: Arrays, faults: Mapping[str, list[int]]) -> None:
        """The log's line for a stored round."""
        loss, accuracy = mean_of_participants(arrays["loss"]), float(arrays["test_accuracy"])
        self.tell(
            "round", scheme=track.scheme, seed=track.seed, round=number + 1,
            loss=None if np.isnan(loss) else loss, test_accuracy=None if np.isnan(accuracy) else accuracy,
            delivered=int(np.sum(arrays["delivered"])), faults=dict(faults), seconds=round(float(arrays["round_s"]), 3),
        )  # fmt: skip


def note(folder: Path, event: str, **details: object) -> dict[str, Any]:
    """A line of a federation's log: one JSON object, written at once."""
    line = {"time": round(time.time(), 3), "event": event, **details}
    with (folder / LOG).open("a", encoding="utf-8") as handle:
        handle.write(json.dumps(line) + "\n")
    return line
