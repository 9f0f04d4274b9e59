"""What has left a device about its records, in one account for all federations, schemes, seeds and names.

An account belongs to records, not to a name: it knows each by a keyed digest, and two data sets that share a record
share an account. It is charged before anything is computed, and its budgets only ever become more. The files are the
device's own: nothing in them is sent to anybody.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fairwave.errors import FederationError
from fairwave.federate.client_state import replace_file
from fairwave.privacy.accounting import Kind
from fairwave.privacy.privacy_filter import Budget

FORMAT = 1
RECORD = 16
"""Bytes of a record's digest."""
_SALT, _LOCK, _ENDING = "salt", "lock", ".account"
_WAIT_S = 60.0


@dataclasses.dataclass
class Entries:
    """What is written down about some records."""

    records: set[bytes]
    releases: dict[Kind, int] = dataclasses.field(default_factory=dict)
    first: Kind | None = None
    """The kind of the first release, which the filter's first rule is about."""
    lost_delta: float = 0.0
    unproven: int = 0
    """Messages for which nothing is proved: after one of them, no budget can be kept."""
    budgets: set[Budget] = dataclasses.field(default_factory=set)

    def allowance(self, kind: Kind, lost_each: float) -> int | None:
        """How many more releases of a kind all budgets allow; None where there is no budget."""
        if not self.budgets:
            return None
        if self.unproven:
            return 0
        first = self.first or kind
        return min(budget.allowance(self.releases, self.lost_delta, first, kind, lost_each) for budget in self.budgets)


class DeviceAccount:
    """The account of one data set; several programs may use it at the same time."""

    def __init__(self, folder: Path, inputs: np.ndarray, labels: np.ndarray, budgets: tuple[Budget, ...] = ()) -> None:
        """Opens the account of these records, which are added to it; the budgets hold from now on."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked():
            self._records = _digests(self._salt(), inputs, labels)
            path, entries = self._merged()
            if not budgets and self._records <= entries.records and path.exists():
                return
            entries.records |= self._records
            entries.budgets |= set(budgets)
            _write(path, entries)

    def allowance(self, kind: Kind, lost_each: float = 0.0) -> int | None:
        """How many more releases of a kind are allowed; None without a limit."""
        with self._locked():
            return self._merged()[1].allowance(kind, lost_each)

    def charge(self, kind: Kind, count: int, lost_each: float = 0.0) -> bool:
        """Put down releases that are about to be made; false if a budget does not allow them: nothing is changed."""
        with self._locked():
            path, entries = self._merged()
            allowed = entries.allowance(kind, lost_each)
            if allowed is not None and count > allowed:
                return False
            entries.first = entries.first or kind
            entries.releases[kind] = entries.releases.get(kind, 0) + count
            entries.lost_delta += count * lost_each
            _write(path, entries)
            return True

    def charge_unproven(self) -> bool:
        """Put down a message for which nothing is proved; false if there is a budget, which it would break."""
        with self._locked():
            path, entries = self._merged()
            if entries.budgets:
                return False
            entries.unproven += 1
            _write(path, entries)
            return True

    def entries(self) -> Entries:
        """What is written down."""
        with self._locked():
            return self._merged()[1]

    def _merged(self) -> tuple[Path, Entries]:
        """The account that holds any of these records. Several become one, whose releases are those of all."""
        found = []
        for path in sorted(self._folder.glob(f"*{_ENDING}")):
            entries = _read(path)
            if entries.records & self._records:
                found.append((path, entries))
        if not found:
            return self._folder / f"{secrets.token_hex(8)}{_ENDING}", Entries(set())
        (path, whole), *others = found
        for other, entries in others:
            whole = _added(whole, entries)
            _write(path, whole)  # before the other goes: a crash in between counts its releases twice, never not
            other.unlink()
        return path, whole

    def _salt(self) -> bytes:
        path = self._folder / _SALT
        if not path.exists():
            if any(self._folder.glob(f"*{_ENDING}")):
                raise FederationError(
                    f"{path}: missing, so that no record can be recognised in the accounts beside it; bring it back"
                )
            replace_file(path, secrets.token_bytes(32))
        return path.read_bytes()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        import fcntl

        with os.fdopen(os.open(self._folder / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as handle:
            end = time.monotonic() + _WAIT_S
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise FederationError(
                            f"{self._folder}: held by another program for {_WAIT_S:g} s; end that program"
                        ) from None
                    time.sleep(0.02)
            yield


def _added(one: Entries, other: Entries) -> Entries:
    """The releases of two accounts, as if all had been about the same records."""
    releases = dict(one.releases)
    for kind, count in other.releases.items():
        releases[kind] = releases.get(kind, 0) + count
    return Entries(
        records=one.records | other.records,
        releases=releases,
        first=one.first or other.first,
        lost_delta=one.lost_delta + other.lost_delta,
        unproven=one.unproven + other.unproven,
        budgets=one.budgets | other.budgets,
    )


def _digests(salt: bytes, inputs: np.ndarray, labels: np.ndarray) -> set[bytes]:
    """A keyed digest of every record: without the key, an account does not tell whether it knows a record."""
    rows = np.ascontiguousarray(inputs, np.float32).reshape(labels.shape[0], -1)  # whatever type a file had
    return {
        hashlib.blake2b(row.tobytes() + label.tobytes(), key=salt, digest_size=RECORD).digest()
        for row, label in zip(rows, np.ascontiguousarray(labels, np.int64), strict=True)
    }


def _write(path: Path, entries: Entries) -> None:
    body = {
        "format": FORMAT,
        "records": b"".join(sorted(entries.records)).hex(),
        "releases": [[*kind, count] for kind, count in sorted(entries.releases.items())],
        "first": None if entries.first is None else list(entries.first),
        "lost_delta": entries.lost_delta,
        "unproven": entries.unproven,
        "budgets": sorted([each.epsilon, each.delta] for each in entries.budgets),
    }
    replace_file(path, json.dumps({**body, "digest": _digest(body)}, indent=1).encode())


def _read(path: Path) -> Entries:
    try:
        held = json.loads(path.read_bytes())
        sound = held.pop("digest") == _digest(held) and held["format"] == FORMAT
        records = bytes.fromhex(held["records"])
        entries = Entries(
            records={records[at : at + RECORD] for at in range(0, len(records), RECORD)},
            releases={(float(z), float(q)): int(count) for z, q, count in held["releases"]},
            first=None if held["first"] is None else (float(held["first"][0]), float(held["first"][1])),
            lost_delta=float(held["lost_delta"]),
            unproven=int(held["unproven"]),
            budgets={Budget(float(epsilon), float(delta)) for epsilon, delta in held["budgets"]},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise FederationError(
            f"{path}: damaged, and with it what this device has released; bring back a copy that was made after its "
            "last round"
        )
    return entries


def _digest(body: dict[str, object]) -> str:
    return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()
