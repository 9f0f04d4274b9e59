"""Files that not everybody may read, and files that are whole at any moment."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """A file that only its owner can read, from the first moment."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
        handle.write(content)


def replace_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file so that it is whole at any moment, the old one or the new; once this returns, it stays.

    If it fails, for want of space say, the old one is still there and nothing else is.
    """
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        unfinished.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def as_private_as_its_folder(path: Path) -> None:
    """Take from a file every permission that its folder does not give."""
    held, allowed = path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777
    if held & ~allowed:
        path.chmod(held & allowed)
