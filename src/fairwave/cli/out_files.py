"""Files that commands write: their folders are made before any work is done for them."""

from __future__ import annotations

from pathlib import Path

from fairwave.errors import OutputError


def make_folder_of(path: Path) -> None:
    """Make the folder that a file is to be written into, if it is not there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path.parent}: cannot be made ({error.strerror}); choose another folder") from None
