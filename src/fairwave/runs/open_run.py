"""`fairwave.open_run`: a stored run from Python, for reading."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import jax

from fairwave.errors import ArgumentError
from fairwave.learning.models import model_of
from fairwave.learning.named_arrays import NamedArrays, names_of
from fairwave.plugins import load_plugins
from fairwave.privacy.ledger import Ledger
from fairwave.runs.history import Session
from fairwave.runs.order import Track
from fairwave.runs.packing import model_in
from fairwave.runs.session import ended_early, results
from fairwave.runs.store import RunStore
from fairwave.scenario.parameters import Scenario

if TYPE_CHECKING:
    import xarray as xr


def open_run(path: str | Path, *, plugins: Iterable[str | Path] = ()) -> Run:
    """Open the folder of a run for reading; use it in a `with` statement, or close it.

    Reading executes no code that the run names. A scenario that cannot be checked without its plugins, because one has
    its fading law or its model, is refused unless these are given.

    ```python
    with fairwave.open_run("runs/paper") as run:
        run.results["energy_j"].mean("round")
    ```
    """
    load_plugins(plugins)
    return Run(Path(path))


class Run:
    """A stored run: what it was to do, what came of it, what it released, and the models it trained."""

    def __init__(self, folder: Path) -> None:
        self._store = RunStore(folder)
        self._order = self._store.order

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._store.close()

    @property
    def folder(self) -> Path:
        """The folder that the run is stored in."""
        return self._store.folder

    @property
    def scenario(self) -> Scenario:
        """The scenario that was run."""
        return self._order.scenario

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes that were compared."""
        return self._order.schemes

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that were run."""
        return self._order.seeds

    @property
    def history(self) -> list[Session]:
        """Every time that the run was worked on: when, by which command, where, with which versions."""
        return self._store.history()

    @property
    def ended_early(self) -> list[str]:
        """A sentence for every scheme and seed that ended before its last round, and why."""
        return ended_early(self._store)

    @functools.cached_property
    def results(self) -> xr.Dataset:
        """Every value of every scheme, seed, round and device."""
        return results(self._store)

    def ledger(self, scheme: str, seed: int | None = None) -> Ledger:
        """Everything that was released under a scheme and seed: round (from 0) and event, in their order."""
        return self._store.releases(self._track(scheme, seed))

    def model(self, scheme: str, seed: int | None = None) -> NamedArrays:
        """The access point's model after the last stored round, as named arrays such as `0.weight`."""
        track = self._track(scheme, seed)
        checkpoint = self._store.checkpoint(track)
        if checkpoint is None:
            raise ArgumentError(f"{self.folder}: no round of {track.scheme} with seed {track.seed} is stored yet")
        names = names_of(jax.eval_shape(model_of(self.scenario.learning).init, jax.random.key(0)))
        return model_in(checkpoint, names)

    def _track(self, scheme: str, seed: int | None) -> Track:
        track = Track(scheme, self.seeds[0] if seed is None else seed)
        if track not in list(self._order.tracks()):
            known = ", ".join(f"{each.scheme} with seed {each.seed}" for each in self._order.tracks())
            raise ArgumentError(f"{self.folder}: has no {track.scheme} with seed {track.seed}; it has {known}")
        return track
