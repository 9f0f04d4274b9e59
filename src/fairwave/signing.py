"""Signed documents: canonical JSON with its digest and an Ed25519 signature.

Canonical JSON has sorted keys, no spaces, UTF-8 without escapes beyond JSON's own, numbers as Python's `repr` has them,
and no NaN or infinity. The digest is the SHA-256 of the document without the members `digest` and `signature`. What is
signed is the document whose `signature` has its algorithm and public key, and no value yet.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwave.errors import ArgumentError
from fairwave.private_files import write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY, PUBLIC = "statement.key", "statement.pub"
"""Names of the files with the private and the public key."""


def canonical(document: Mapping[str, Any]) -> bytes:
    """The bytes of a document, of which there is one form only."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def signed(document: Mapping[str, Any], key: Ed25519PrivateKey | None) -> bytes:
    """A document with its digest and signature, as one line; the signature is null without a key."""
    whole = {**document, "digest": hashlib.sha256(canonical(document)).hexdigest()}
    if key is None:
        return canonical({**whole, "signature": None}) + b"\n"
    signature = {"algorithm": "Ed25519", "public_key": key.public_key().public_bytes_raw().hex()}
    value = key.sign(canonical({**whole, "signature": signature})).hex()
    return canonical({**whole, "signature": {**signature, "value": value}}) + b"\n"


def make_signing_key(private: Path, public: Path) -> None:
    """A new key pair as PEM files: PKCS8, and the public key's SubjectPublicKeyInfo."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, encoding = Ed25519PrivateKey.generate(), serialization.Encoding.PEM
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_private(private, key.private_bytes(encoding, form, plain))
    public.write_bytes(key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo))


def signing_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise ArgumentError(
            f"{path}: cannot be read ({error.strerror}); give --key a file with a private key"
        ) from None
    except (ValueError, TypeError):  # not PEM, or encrypted
        raise ArgumentError(
            f"{path}: holds no plain private key; give --key a PKCS8 file in PEM, as openssl writes it"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ArgumentError(f"{path}: holds a key of another kind; statements are signed with Ed25519")
    return key
