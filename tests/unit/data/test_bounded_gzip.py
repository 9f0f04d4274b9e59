"""Small files that unpack to very much are refused before they fill the memory."""

from __future__ import annotations

import gzip

import pytest

from fairwave.data import bounded_gzip
from fairwave.data.idx_files import read_idx
from fairwave.errors import ScenarioError


def test_a_file_beyond_the_largest_size_is_refused(monkeypatch):
    monkeypatch.setattr(bounded_gzip, "MOST_BYTES", 1_000)
    assert bounded_gzip.unpacked(gzip.compress(bytes(1_000))) == bytes(1_000)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        bounded_gzip.unpacked(gzip.compress(bytes(1_001)))
    with pytest.raises(ScenarioError, match="not a valid idx file"):
        read_idx(gzip.compress(bytes(2_000)), "train-images-idx3-ubyte.gz")
