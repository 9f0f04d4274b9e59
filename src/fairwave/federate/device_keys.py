"""Who may speak for which device: public keys by device number, and the proof of holding the private one."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fairwave.errors import FederationError

_HASH = ec.ECDSA(hashes.SHA384())


class KnownKeys:
    """A folder of public keys, `0.pub` for device 0."""

    def __init__(self, folder: Path) -> None:
        self._keys = dict(_known_key(path) for path in sorted(folder.glob("*.pub")))
        if not self._keys:
            raise FederationError(f"{folder}: holds no public key; give each device's as NUMBER.pub")

    def vouches(self, device: int, question: bytes, signature: bytes) -> bool:
        """Whether the signature of a question is that of a device's key."""
        key = self._keys.get(device)
        if not isinstance(key, ec.EllipticCurvePublicKey):
            return False
        try:
            key.verify(signature, spoken(device, question), _HASH)
        except InvalidSignature:
            return False
        return True


def _known_key(path: Path) -> tuple[int, serialization.SSHPublicKeyTypes]:
    """A device's number and its key, from a file that is called by the number."""
    if not (path.stem.isascii() and path.stem.isdecimal()):
        raise FederationError(f"{path}: is not called by a device's number; rename it to NUMBER.pub, or take it away")
    try:
        return int(path.stem), serialization.load_ssh_public_key(path.read_bytes())
    except (ValueError, UnsupportedAlgorithm, OSError):
        raise FederationError(
            f"{path}: no public key of a device; bring it back from the device, or take it away"
        ) from None


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
        raise FederationError(f"{path}: no private key of a device; bring back the one that came with its folder")
    return key


def spoken(device: int, question: bytes) -> bytes:
    """What is signed: it cannot be taken for anything else that the key signs."""
    return b"fairwave device %d: " % device + question
