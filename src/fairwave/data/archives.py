"""Files out of what people have: plain files, folders, and archives as package registries deliver them.

Nothing is ever unpacked to disk: members are read into memory by their last name, so no archive can write anywhere.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from fairwave.data.bounded_gzip import MOST_BYTES
from fairwave.errors import ScenarioError

TARS = (".tgz", ".tar.gz", ".tar.xz", ".tar")
DEBIAN = ".deb"
_AR_MAGIC = b"!<arch>\n"
_AR_HEADER = 60


def collect(paths: Iterable[Path], wanted: frozenset[str]) -> dict[str, bytes]:
    """The wanted files by name, from files, folders (searched to any depth) and archives."""
    found: dict[str, bytes] = {}
    for path in paths:
        try:
            for name, content in _files(path, wanted):
                if found.setdefault(name, content) != content:
                    raise ScenarioError(f"{path}: '{name}' is there twice, and they differ; give one of them")
        except (OSError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error, ValueError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ScenarioError(f"{path}: cannot be read ({reason}); download it again") from None
    return found


def _files(path: Path, wanted: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.name in wanted and each.is_file():
                yield each.name, each.read_bytes()
    elif path.name.endswith(DEBIAN):
        with path.open("rb") as stream:
            yield from _debian_members(stream, path, wanted)
    elif path.name.endswith(TARS):
        with path.open("rb") as stream:
            yield from _tar_members(stream, path, wanted)
    elif path.name in wanted:
        yield path.name, path.read_bytes()
    else:
        path.stat()  # a missing file is said to be missing, not to be of the wrong name
        raise ScenarioError(f"{path}: not a file of this data set; give {', '.join(sorted(wanted))}, or an archive")


def _tar_members(stream: IO[bytes], path: Path, wanted: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=stream, mode="r:*") as archive:
        for member in archive:
            place = PurePosixPath(member.name)
            if place.is_absolute() or ".." in place.parts:
                raise ScenarioError(
                    f"{path}: member '{member.name}' points out of the archive; do not use it, download it again"
                )
            if place.name not in wanted or member.isdir():
                continue
            content = archive.extractfile(member) if member.isreg() and member.size <= MOST_BYTES else None
            if content is None:
                raise ScenarioError(
                    f"{path}: member '{member.name}' is no plain file of usual size; do not use it, download it again"
                )
            yield place.name, content.read()


def _debian_members(stream: IO[bytes], path: Path, wanted: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    """The files of a Debian package: an ar archive, in which a tar archive called data.tar.* holds them."""
    if stream.read(len(_AR_MAGIC)) != _AR_MAGIC:
        raise ValueError("not a Debian package")
    while header := stream.read(_AR_HEADER):
        if len(header) < _AR_HEADER or header[58:] != b"`\n":
            raise ValueError("damaged Debian package")
        name, size = header[:16].decode("ascii").strip().rstrip("/"), int(header[48:58])
        if size > MOST_BYTES:
            raise ValueError(f"a part of {size} bytes")
        content = stream.read(size + size % 2)[:size]
        if len(content) < size:
            raise ValueError("damaged Debian package")
        if name.startswith("data.tar"):
            yield from _tar_members(_plain(content, name), path, wanted)
            return
    raise ValueError("a Debian package without files")


def _plain(content: bytes, name: str) -> IO[bytes]:
    """Zstandard undone, which tarfile cannot do before Python 3.14; all other packings are left to it."""
    if not name.endswith(".zst"):
        return io.BytesIO(content)
    import pyarrow

    plain = pyarrow.CompressedInputStream(pyarrow.BufferReader(content), "zstd").read(MOST_BYTES + 1)
    if len(plain) > MOST_BYTES:
        raise ValueError(f"a package that unpacks to more than {MOST_BYTES} bytes")
    return io.BytesIO(plain)
