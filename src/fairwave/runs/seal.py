"""A digest of a run's whole file, which stands beside it while no program writes to it.

The digests inside the file cover all that is read from it; SQLite's pages also hold bytes that nobody reads. The seal
covers those too. Whoever opens the file for writing takes the seal off first, so that there is none after a crash.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from fairwave.errors import OutputError
from fairwave.private_files import as_private_as_its_folder, replace_file
from fairwave.runs.database import damaged

FILE = "run.seal"


def seal(database: Path) -> None:
    """Write the seal of a file that nobody is writing to."""
    path = database.parent / FILE
    try:
        replace_file(path, _of(database).encode(), mode=0o666)
        as_private_as_its_folder(path)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); make room: the run itself is safe, and is sealed when it "
            "is next written to"
        ) from None


def check_seal(database: Path) -> None:
    """Refuse a file that differs from its seal. To be called while SQLite does not have the file open.

    Closing a file ends all locks that the process holds on it, SQLite's too. A seal that was cut short, as a full disk
    leaves it, counts as none: the digests inside the file are checked all the same.
    """
    path = database.parent / FILE
    try:
        found, expected = path.read_bytes(), _of(database).encode()
        cut_short = len(found) < len(expected)
        if found == expected or cut_short or not path.exists():  # or a writer has just come
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise damaged(path, str(error.strerror)) from None
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


def _of(database: Path) -> str:
    with database.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest() + "\n"
