"""Data sets that others have published, under one name each: found in the cache, fetched, or given by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from fairwave.data.archives import collect
from fairwave.data.data_cache import cached_file, digest_of, store, unfinished
from fairwave.data.package_clients import Package, fetch
from fairwave.data.sources import DataSet, checked, read_npz
from fairwave.errors import ScenarioError


@dataclasses.dataclass(frozen=True)
class PublishedData:
    """A published data set. Nothing is fetched unless `get` is called."""

    extends: ClassVar[str] = "data"

    name: str
    summary: str
    """What it is, in a line."""
    licence: str
    """Terms of those who made it, in a line."""
    package: Package
    """Where it can be fetched."""
    files: frozenset[str]
    """Names of the files that it is made from, in every format that `convert` reads."""
    convert: Callable[[Mapping[str, bytes]], dict[str, np.ndarray]]
    """The arrays of the data set from the contents of such files."""
    digest: str
    """SHA-256 of the arrays, whatever they were made from."""

    @property
    def by_hand(self) -> str:
        """How to do without a network."""
        return f"give the files by hand: fairwave data add {self.name} FILES"

    def here(self) -> bool:
        """Whether it is in the cache."""
        return cached_file(self.name).is_file()

    def load(self) -> DataSet:
        """The data set from the cache; an error with the remedy if it is not there, or not what it was."""
        path = cached_file(self.name)
        remedy = f"run 'fairwave data get {self.name}', or {self.by_hand}"
        if not self.here():
            raise ScenarioError(f"data.source: '{self.name}' is not here ({path}); {remedy}")
        try:
            arrays = read_npz(path)
        except ScenarioError:
            arrays = {}
        if digest_of(arrays) != self.digest:
            raise ScenarioError(f"{path}: damaged, not the published '{self.name}'; {remedy}")
        return checked(arrays, self.name)

    def get(self) -> Path:
        """Fetch it into the cache; the file there."""
        with unfinished() as folder:
            return self.add([fetch(self.package, folder, self.by_hand)])

    def add(self, paths: Iterable[Path]) -> Path:
        """Make it from files, folders or archives, and keep it in the cache; the file there."""
        given = list(paths)
        arrays = self.convert(collect(given, self.files))
        if digest_of(arrays) != self.digest:
            raise ScenarioError(
                f"{', '.join(map(str, given))}: not the published '{self.name}' (its digest differs); download it "
                "again, or name these files in data.source if they are meant to differ"
            )
        return store(self.name, arrays)
