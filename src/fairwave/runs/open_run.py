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
from fairwave.runs.model_export import ExportedModel
from fairwave.runs.order import Track
from fairwave.runs.packing import model_in
from fairwave.runs.session import ended_early, results
from fairwave.runs.store import RunStore
from fairwave.runs.stored_model import copy_in
from fairwave.runs.track_table import heads_for, track_rows
from fairwave.scenario.html_card import html_card
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.show import to_toml

if TYPE_CHECKING:
    import xarray as xr


def open_run(path: str | Path, *, plugins: Iterable[str | Path] = ()) -> Run:
    """Open the folder of a run for reading; use it in a `with` statement, or close it.

    Reading executes no code that the run names. A scenario that cannot be checked without its plugins, because one has
    its fading law or its model, is refused unless these are given.

    Args:
        path: The folder of the run.
        plugins: Python files that may be executed to read it.

    Returns:
        The run: its scenario, results, ledgers, history and models.

    Example:
        >>> with open_run("runs/paper") as run:
        ...     run.results["energy_j"].mean("round").dims
        ('scheme', 'seed', 'device')
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

    def __repr__(self) -> str:
        done = [self._store.summary(track) for track in self._order.tracks()]
        rounds = sum(one.rounds for one in done)
        state = "done" if all(one.is_done(self._order) for one in done) else f"{rounds} rounds stored in all"
        return (
            f"<Run in {self.folder}: {', '.join(self.schemes)}; seeds {', '.join(map(str, self.seeds))}; "
            f"{self._order.rounds} rounds; {state}>"
        )

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        begun = any(self._store.summary(track).rounds for track in self._order.tracks())
        heads, rows = (heads_for(self.results), track_rows(self.results)) if begun else ((), [])
        return html_card(repr(self)[1:-1], heads, rows, to_toml(self.scenario))

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

    def model(
        self, scheme: str, seed: int | None = None, *, round: int | None = None, device: int | None = None
    ) -> NamedArrays:
        """A stored model as named arrays such as `0.weight`: the access point's own, or a device's copy of it.

        Args:
            scheme: The scheme that it was trained under.
            seed: Its seed. Default: the run's first seed.
            round: The round after which it was kept by `run.keep_models`, from 1. Default: the last stored round.
            device: The device whose copy is wanted. Default: the access point's own model.

        Returns:
            Arrays by name.

        Example:
            >>> with open_run("runs/paper") as run:
            ...     run.model("proposed")["0.weight"].shape
            (12, 4)
        """
        track = self._track(scheme, seed)
        return self._arrays(track, self._with_model(track, round), device)

    def exported(
        self,
        scheme: str | None = None,
        seed: int | None = None,
        *,
        round: int | None = None,
        device: int | None = None,
    ) -> ExportedModel:
        """A stored model with what has to be known about it; its `write` makes a file for other tools.

        It takes what `model` takes; the default scheme is the run's first.
        """
        track = self._track(self.schemes[0] if scheme is None else scheme, seed)
        number = self._with_model(track, round)
        arrays = self._arrays(track, number, device)
        return ExportedModel(self._order, track, number, device, arrays, self._store.releases(track))

    def _with_model(self, track: Track, wanted: int | None) -> int:
        """The round, from 1, whose model is wanted; the last stored one if that is left open."""
        known = [number + 1 for number in self._store.rounds_with_models(track)]
        if not known:
            raise ArgumentError(f"{self.folder}: no round of {track.scheme} with seed {track.seed} is stored yet")
        if wanted is not None and wanted not in known:
            raise ArgumentError(
                f"{self.folder}: has no model of round {wanted} of {track.scheme} with seed {track.seed}; it has those "
                f"of {_listed(known)} (see run.keep_models)"
            )
        return known[-1] if wanted is None else wanted

    def _arrays(self, track: Track, number: int, device: int | None) -> NamedArrays:
        devices = self.scenario.cell.num_devices
        if device is not None and not 0 <= device < devices:
            raise ArgumentError(f"{self.folder}: has no device {device}; choose from 0 to {devices - 1}")
        names = names_of(jax.eval_shape(model_of(self.scenario.learning).init, jax.random.key(0)))
        content = self._store.models_of(track, number - 1)
        return model_in(content, names) if device is None else copy_in(content, names, device, track.seed)

    def _track(self, scheme: str, seed: int | None) -> Track:
        track = Track(scheme, self.seeds[0] if seed is None else seed)
        if track not in list(self._order.tracks()):
            known = ", ".join(f"{each.scheme} with seed {each.seed}" for each in self._order.tracks())
            raise ArgumentError(f"{self.folder}: has no {track.scheme} with seed {track.seed}; it has {known}")
        return track


def _listed(rounds: list[int]) -> str:
    """Round numbers, the middle ones left out where there are many."""
    some = rounds if len(rounds) <= 6 else [*rounds[:3], "...", *rounds[-2:]]
    return f"round{'s' if len(rounds) > 1 else ''} {', '.join(map(str, some))}"
