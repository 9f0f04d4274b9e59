"""Files that not everybody may read."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """A file that only its owner can read, from the first moment."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
        handle.write(content)


def as_private_as_its_folder(path: Path) -> None:
    """Take from a file every permission that its folder does not give."""
    held, allowed = path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777
    if held & ~allowed:
        path.chmod(held & allowed)
