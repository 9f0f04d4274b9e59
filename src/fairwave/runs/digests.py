"""The digests that tie a run's parts together."""

from __future__ import annotations

import hashlib


def digest_of(*parts: object) -> bytes:
    """A digest of values, each kept apart from the next; bytes are taken as they are."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        content = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.digest()


def part_digest(standing: bytes, part: int, size: int, content: bytes) -> bytes:
    """A digest of one part of a state of so many bytes that stands on a round, whose own digest is `standing`."""
    return digest_of(standing, part, size, content)
