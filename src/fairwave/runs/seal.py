"""A digest of a run's whole file, written when a program is done with it.

The digests inside the file cover all that is read from it; SQLite's pages also hold bytes that nobody reads. The seal
covers those too. It names the file's change counter, which SQLite raises with every transaction: after a crash the seal
is that of an earlier file, and is passed over.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from fairwave.errors import OutputError
from fairwave.runs.database import damaged

FILE = "run.seal"
_COUNTER = slice(24, 28)
"""Where SQLite keeps the change counter in the file's header."""


def seal(database: Path) -> None:
    """Write the seal of a file that nobody is writing to."""
    path = database.parent / FILE
    try:
        path.write_text(json.dumps(_of(database)) + "\n", encoding="ascii")
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); free some space: the run itself is safe"
        ) from None


def check_seal(database: Path) -> None:
    """Refuse a file that differs from its seal though no transaction has happened since."""
    path = database.parent / FILE
    if not path.exists():
        return
    try:
        stored, found = json.loads(path.read_text(encoding="ascii")), _of(database)
        stale, same = stored["change counter"] != found["change counter"], stored == found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from None
    if not stale and not same:
        raise damaged(database, "its bytes do not match its seal")


def remove_seal(database: Path) -> None:
    """Before writing to the file."""
    path = database.parent / FILE
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be removed ({error.strerror}); choose a writable folder with --out"
        ) from None


def _of(database: Path) -> dict[str, str]:
    with database.open("rb") as stream:
        counter = stream.read(_COUNTER.stop)[_COUNTER].hex()
        stream.seek(0)
        return {"change counter": counter, "blake2b": hashlib.file_digest(stream, "blake2b").hexdigest()}
