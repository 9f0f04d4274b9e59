"""Who may speak for which device: public keys by device number, and the proof of holding the private one."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fairwave.errors import FederationError

_HASH = ec.ECDSA(hashes.SHA384())
_FILE = re.compile(r"([0-9]+)(?:-([0-9]+))?\.pub", re.ASCII)
_Keys: TypeAlias = dict[int, dict[bytes, serialization.SSHPublicKeyTypes]]
"""Keys of every device, by the bytes of their files."""


class KnownKeys:
    """A folder of public keys: `0.pub` for device 0, and `0-2.pub`, `0-3.pub` for further keys of the same device.

    Each of a device's keys is as good as the others, so that a new one can be handed out before the old one is revoked.
    The folder may change while a federation runs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._listed = folder, _listing(folder)
        self._keys: _Keys = {}
        for path in key_files(folder):
            _take(self._keys, path)
        if not self._keys:
            raise FederationError(f"{folder}: holds no public key; give each device's as NUMBER.pub")

    def vouches(self, device: int, question: bytes, signature: bytes) -> bool:
        """Whether the signature of a question is that of one of a device's keys."""
        return any(_verifies(key, device, question, signature) for key in self._keys.get(device, {}).values())

    def refresh(self, complain: Callable[[str], None]) -> set[int] | None:
        """Read the folder again if it has changed: the devices that have lost a key since; None if nothing changed.

        A file that cannot be used now is complained about and vouches for nobody.
        """
        listed = _listing(self._folder)
        if listed == self._listed:
            return None
        before, self._keys, self._listed = self._keys, {}, listed
        for path in key_files(self._folder):
            try:
                _take(self._keys, path)
            except FederationError as error:
                complain(str(error))
        return {device for device, keys in before.items() if not keys.keys() <= self._keys.get(device, {}).keys()}


def key_files(folder: Path) -> list[Path]:
    """The files of a folder of public keys, by device and age."""
    return sorted(folder.glob("*.pub"), key=lambda path: numbers_of(path) if _FILE.fullmatch(path.name) else (-1, 0))


def numbers_of(path: Path) -> tuple[int, int]:
    """The device whose key a file holds, and which of its keys that is, from 1."""
    match = _FILE.fullmatch(path.name)
    if match is None:
        raise FederationError(f"{path}: is not called by a device's number; rename it to NUMBER.pub, or take it away")
    return int(match[1]), int(match[2] or 1)


def _listing(folder: Path) -> list[tuple[str, int, int, int]]:
    """What tells whether a folder of keys has changed."""
    listed = []
    for path in folder.glob("*.pub"):
        with contextlib.suppress(FileNotFoundError):  # taken away since it was listed
            state = path.stat()
            listed.append((path.name, state.st_ino, state.st_size, state.st_mtime_ns))
    return sorted(listed)


def _take(keys: _Keys, path: Path) -> None:
    device, _ = numbers_of(path)
    try:
        content = path.read_bytes()
        keys.setdefault(device, {})[content] = serialization.load_ssh_public_key(content)
    except (ValueError, UnsupportedAlgorithm, OSError):
        raise FederationError(
            f"{path}: no public key of a device; restore it from the device, or take it away"
        ) from None


def _verifies(key: serialization.SSHPublicKeyTypes, device: int, question: bytes, signature: bytes) -> bool:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return False
    try:
        key.verify(signature, spoken(device, question), _HASH)
    except InvalidSignature:
        return False
    return True


def sign(key_file: Path, device: int, question: bytes) -> bytes:
    """A device's proof that it holds its key."""
    return private_key(key_file).sign(spoken(device, question), _HASH)


def private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """A device's private key."""
    try:
        key = serialization.load_ssh_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise FederationError(f"{path}: no private key of a device; restore the one that came with its folder")
    return key


def spoken(device: int, question: bytes) -> bytes:
    """What is signed: it cannot be taken for anything else that the key signs."""
    return b"fairwave device %d: " % device + question
