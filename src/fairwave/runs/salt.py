"""The secret with which a run's fingerprints of its data are keyed, where a proof protects the data.

A plain digest would let anybody who has a candidate for the training set test it. The salt stands beside the run in a
private file; reading a run does not need it.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from fairwave.errors import OutputError, StoreError
from fairwave.private_files import write_private

FILE = "run.salt"
BYTES = 32
DATA = 16
"""Bytes of a fingerprint that speak of the data set alone, which all seeds share."""


def make_salt(folder: Path) -> None:
    """A new salt in a folder that holds no run yet; one that an interrupted start has left is replaced."""
    path = folder / FILE
    try:
        path.unlink(missing_ok=True)
        write_private(path, secrets.token_bytes(BYTES))
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); choose a writable folder with --out"
        ) from None


def keyed(fingerprint: bytes, folder: Path) -> bytes:
    """A fingerprint that only somebody with the folder's salt can compare with data; its parts stay apart."""
    path = folder / FILE
    try:
        salt = path.read_bytes()
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be read ({error.strerror}), and without it nobody can tell whether the data are still the "
            "same; restore it from a copy, or start another run with --out"
        ) from None
    if len(salt) != BYTES:
        raise StoreError(f"{path}: damaged ({len(salt)} bytes, not {BYTES}); restore it from a copy")
    parts = (fingerprint[:DATA], fingerprint[DATA:])
    return b"".join(hashlib.blake2b(part, key=salt, digest_size=16).digest() for part in parts)
