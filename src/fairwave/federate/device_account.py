"""What has left a device about its records, in one account for all federations, schemes, seeds and names.

An account belongs to a folder, whatever federation asks and whatever records are in its data set: which records these
are must decide nothing that can be seen from outside. It is charged before anything is computed, and its budgets only
ever become more. The file is the device's own: nothing in it is sent to anybody.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from fairwave.errors import FederationError
from fairwave.privacy.accounting import Kind
from fairwave.privacy.privacy_filter import Budget
from fairwave.private_files import replace_file

FORMAT = 1
FILE, _LOCK = "account.json", "lock"
_WAIT_S = 60.0


@dataclasses.dataclass
class Entries:
    """What is written down."""

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
    """The account in one folder; several programs may use it at the same time."""

    def __init__(self, folder: Path, budgets: tuple[Budget, ...] = ()) -> None:
        """Opens the account, in which the budgets hold from now on."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked_beside(folder / _LOCK):
            entries = self._read()
            if not set(budgets) <= entries.budgets:
                entries.budgets |= set(budgets)
                self._write(entries)

    def allowance(self, kind: Kind, lost_each: float = 0.0) -> int | None:
        """How many more releases of a kind are allowed; None without a limit."""
        with locked_beside(self._folder / _LOCK):
            return self._read().allowance(kind, lost_each)

    def charge(self, kind: Kind, count: int, lost_each: float = 0.0) -> bool:
        """Put down releases that are about to be made; false if a budget does not allow them: nothing is changed."""
        with locked_beside(self._folder / _LOCK):
            entries = self._read()
            allowed = entries.allowance(kind, lost_each)
            if allowed is not None and count > allowed:
                return False
            if count:
                entries.first = entries.first or kind
                entries.releases[kind] = entries.releases.get(kind, 0) + count
                entries.lost_delta += count * lost_each
                self._write(entries)
            return True

    def charge_unproven(self) -> bool:
        """Put down a message for which nothing is proved; false if there is a budget, which it would break."""
        with locked_beside(self._folder / _LOCK):
            entries = self._read()
            if entries.budgets:
                return False
            entries.unproven += 1
            self._write(entries)
            return True

    def entries(self) -> Entries:
        """What is written down."""
        with locked_beside(self._folder / _LOCK):
            return self._read()

    def _read(self) -> Entries:
        path = self._folder / FILE
        return _read(path) if path.exists() else Entries()

    def _write(self, entries: Entries) -> None:
        _write(self._folder / FILE, entries)


@contextlib.contextmanager
def locked_beside(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the program, however that ends; another program is waited for."""
    import fcntl

    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as handle:
        end = time.monotonic() + _WAIT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > end:
                    raise FederationError(f"{path}: held by another program for {_WAIT_S:g} s; end it") from None
                time.sleep(0.02)
        yield


def _write(path: Path, entries: Entries) -> None:
    body = {
        "format": FORMAT,
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
        if held["format"] > FORMAT:
            raise FederationError(
                f"{path}: format {held['format']}, this version reads {FORMAT}; use the fairwave that wrote it"
            )
        sound = held.pop("digest") == _digest(held) and held["format"] == FORMAT
        entries = Entries(
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
            f"{path}: damaged, and with it what this device has released; restore a copy that was made after its "
            "last round"
        )
    return entries


def _digest(body: dict[str, object]) -> str:
    return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()
