"""Gzip files that unpack to no more than a data set can hold: a small hostile file must not fill the memory."""

from __future__ import annotations

import gzip
import io

MOST_BYTES = 1 << 30
"""The most that one file may hold; none of the published sets comes near it."""


def unpacked(packed: bytes) -> bytes:
    """What a gzip file holds; ValueError beyond the largest size."""
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES} bytes")
    return content
