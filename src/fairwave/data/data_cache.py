"""Where published data sets are kept once they are here: one .npz file each, known by the digest of its arrays."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from fairwave.errors import OutputError

FOLDER = "FAIRWAVE_DATA"
"""The environment variable that names the folder."""


def cache_folder() -> Path:
    """The folder of data sets: what FAIRWAVE_DATA says, or a folder in the user's cache."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "fairwave" / "data"


def cached_file(name: str) -> Path:
    """The file of one data set, whether it is there or not."""
    return cache_folder() / f"{name}.npz"


def digest_of(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of arrays with their names, types and shapes: the same however a file packs them."""
    taken = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        taken.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        taken.update(array.tobytes())
    return taken.hexdigest()


@contextlib.contextmanager
def unfinished() -> Iterator[Path]:
    """A folder for what is being fetched or written, next to what is whole. It is gone afterwards, come what may."""
    place = cache_folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".unfinished-", dir=place)
    except OSError as error:
        raise OutputError(
            f"{place}: data sets cannot be kept here ({error.strerror}); name another folder in {FOLDER}"
        ) from None
    with folder as path:
        yield Path(path)


def store(name: str, arrays: Mapping[str, np.ndarray]) -> Path:
    """Keep a data set. The file is whole at any moment: the old one, the new one, or none."""
    target = cached_file(name)
    with unfinished() as folder:
        part = folder / target.name
        try:
            with part.open("wb") as stream:
                np.savez(stream, **arrays)  # type: ignore[arg-type]  # NumPy's stub takes them for its own options
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(target)
        except OSError as error:
            raise OutputError(
                f"{target}: cannot be written ({error.strerror}); make room, or name another folder in {FOLDER}"
            ) from None
    return target
