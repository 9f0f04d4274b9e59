"""A federation's run store, beside it what has to outlive a crash, and a log that a person can follow."""

from __future__ import annotations

import hashlib
import io
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

from fairwave.double_precision import double_precision
from fairwave.engine.end_reasons import EndReason
from fairwave.engine.round_record import TEST_RMSE, Arrays, mean_of_participants
from fairwave.engine.state import ServerState
from fairwave.errors import StoreError
from fairwave.federate.agreement import Agreement, refuse_several
from fairwave.federate.log_reader import rotate_log
from fairwave.federate.protocol import Phase
from fairwave.federate.step_charges import Asked
from fairwave.learning.named_arrays import NamedArrays, named_arrays
from fairwave.privacy.ledger import ReleaseEvent
from fairwave.private_files import replace_file
from fairwave.runs.database import damaged, locked, writing
from fairwave.runs.finished_round import FinishedRound
from fairwave.runs.folder import (
    DEVICES,
    FEDERATION,
    LOG,
    LOGS,
    MODELS,
    SECRET,
    holds_run,
    make_folder,
    planned,
)
from fairwave.runs.history import session_now
from fairwave.runs.kept_models import kept_part
from fairwave.runs.order import Track
from fairwave.runs.packing import pack_state, rows_of, unpack_state
from fairwave.runs.plugin_check import refuse_changed_plugins
from fairwave.runs.store import RunStore
from fairwave.runs.unfinished import as_text, read_unfinished, unfinished_file
from fairwave.scenario.model_keeping import keeps
from fairwave.types import Key

NAME = "federation"
"""The entry in a run's description that holds the federation's name."""


OnLogLine = Callable[[dict[str, Any]], None]
"""Called with every line of the log."""


PREDECESSOR_LEAVES_S = 120.0
"""How long an access point whose SuperLink was killed may take to notice."""


class ServerRun:
    """A run folder held for writing by the access point."""

    def __init__(
        self, folder: Path, agreement: Agreement, command: str, on_line: OnLogLine = lambda line: None
    ) -> None:
        self.folder, self._agreement, self._command, self._on_line = folder, agreement, command, on_line

    def __enter__(self) -> ServerRun:
        if not holds_run(self.folder):
            make_folder(self.folder, known=(LOG, SECRET, DEVICES, LOGS, MODELS))
            self.folder.chmod(0o700)  # its checkpoint has the model without noise, and everybody's copy
        self._lock = locked(self.folder, PREDECESSOR_LEAVES_S)
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
        order = self._agreement.order
        order.check()
        about = {"kind": FEDERATION, "settings": self._agreement.settings.model_dump_json()}
        if not holds_run(self.folder):
            store = RunStore.create(self.folder, order, {**about, NAME: secrets.token_hex(8)})
            wanted = order
        else:
            wanted, store = planned(order, self.folder), RunStore(self.folder, write=True)
        try:
            if NAME not in store.about:
                raise StoreError(f"{self.folder}: holds a simulation, not a federation; choose another --out")
            refuse_several(wanted)
            refuse_changed_plugins(self.folder, store.plugins(), wanted)
            store.extend(wanted, session_now(self._command), about=about)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def name(self) -> str:
        """The federation's name, by which devices recognise it after a restart."""
        return self.store.about[NAME]

    def secret(self, track: Track) -> Key:
        """The root of the access point's own noise for one scheme and seed, known to nobody else.

        Drawn once and kept in a private file; schemes must not share noise, or their copies would give it away.
        """
        path = self.folder / SECRET
        if not path.exists():
            with writing(path):
                replace_file(path, secrets.token_bytes(32))
        held = path.read_bytes()
        if len(held) != 32:
            raise damaged(path, f"{len(held)} bytes, not 32")
        own = hashlib.blake2b(f"{track.scheme} {track.seed}".encode(), key=held, digest_size=8).digest()
        with double_precision():
            key: Key = jax.random.wrap_key_data(jnp.asarray(np.frombuffer(own, np.uint32)))
        return key

    def checkpoint(self, track: Track, like: ServerState) -> ServerState:
        """The access point's state after the last stored round."""
        held = self.store.checkpoint(track)
        return like if held is None else unpack_state(held, like=like)

    def note_asked(
        self,
        track: Track,
        number: int,
        phase: Phase,
        devices: Iterable[int],
        at_worst: Callable[[Asked], list[ReleaseEvent]],
    ) -> dict[str, dict[int, int]]:
        """Write down, before they are asked, who may have answered a round that is then cut short.

        `at_worst` gives what devices can have sent in reply to so many questions. Returns all questions of the round.
        """
        asked = self.asked(track, number)
        counts = asked.setdefault(str(phase), {})
        for device in devices:
            counts[device] = counts.get(device, 0) + 1
        path = unfinished_file(self.folder, track)
        with writing(path):
            replace_file(path, as_text(number, asked, at_worst(asked)))
        return asked

    def asked(self, track: Track, number: int) -> dict[str, dict[int, int]]:
        """How many questions each device was sent in this round, now or before a crash, by exchange."""
        begun = read_unfinished(unfinished_file(self.folder, track))
        return begun.asked if begun is not None and begun.round == number else {}

    def append(
        self,
        track: Track,
        number: int,
        arrays: Arrays,
        releases: list[ReleaseEvent],
        server: ServerState,
        *,
        ended: EndReason | None,
    ) -> None:
        """Store a round; its model is written first, so that a stored round always has one."""
        round_name = f"-round-{number + 1}" if self._agreement.settings.keep_models == "all" else ""
        model = self.folder / MODELS / f"{track.scheme}-{track.seed}{round_name}.npz"
        with writing(model):
            model.parent.mkdir(exist_ok=True)
            replace_file(model, _as_npz(named_arrays(server.global_params)))
        state = pack_state(server)
        kept = kept_part(state) if keeps(self._agreement.order.scenario.run.keep_models, number) else None
        self.store.append(track, [FinishedRound(number, arrays, releases, ended, kept)], state, rows_of(state))
        unfinished_file(self.folder, track).unlink(missing_ok=True)

    def log(self, event: str, **details: object) -> None:
        """A line of the log."""
        self._on_line(log_line(self.folder, event, **details))

    def log_round(self, track: Track, number: int, arrays: Arrays, faults: Mapping[str, list[int]]) -> None:
        """The log's line for a stored round."""
        loss = mean_of_participants(arrays["loss"])
        tested = {name: float(arrays[name]) for name in ("test_accuracy", TEST_RMSE) if name in arrays}
        faulty = {device for who in faults.values() for device in who}
        self.log(
            "round",
            scheme=track.scheme,
            seed=track.seed,
            round=number + 1,
            loss=loss if np.isfinite(loss) else None,
            **{name: value if np.isfinite(value) else None for name, value in tested.items()},
            delivered=int(np.sum(arrays["delivered"])),
            answered=[k for k in np.flatnonzero(arrays["participating"]).tolist() if k not in faulty],
            faults=dict(faults),
            seconds=round(float(arrays["round_s"]), 3),
        )


def log_line(folder: Path, event: str, **details: object) -> dict[str, Any]:
    """A line of a federation's log: one JSON object, written at once."""
    line = {"time": round(time.time(), 3), "event": event, **details}
    with writing(folder / LOG):
        rotate_log(folder)
        with (folder / LOG).open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(line, allow_nan=False) + "\n")
    return line


def _as_npz(arrays: NamedArrays) -> bytes:
    """For readers outside of fairwave."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
