"""Running an order into a store, round by round; going on where it stopped."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwave.engine.records import Arrays, as_arrays
from fairwave.engine.releases import releases
from fairwave.errors import StoreError
from fairwave.runs.database import FILE, locked
from fairwave.runs.order import Order, Track
from fairwave.runs.packing import pack_state, unpack_state
from fairwave.runs.results import to_dataset
from fairwave.runs.store import RunStore
from fairwave.runs.training import Workshop, iterate, target_reached

if TYPE_CHECKING:
    import xarray as xr

PACKAGES = ("fairwave", "jax", "jaxlib", "numpy")


@dataclasses.dataclass(frozen=True)
class Step:
    """What a watcher is told after a round, and once before a track's first."""

    track: Track
    rounds: int
    """Rounds of this track that are stored."""
    loss: float = float("nan")
    """Mean device loss after local training."""
    test_accuracy: float = float("nan")
    energy_std_j: float = float("nan")
    """Std over devices of the mean energy so far."""


Watch = Callable[[Step], None]


def run(order: Order, folder: Path, command: str, watch: Watch = lambda step: None) -> bool:
    """Run an order, or go on with it where the folder already holds it. Whether anything was left to do.

    The folder may hold an order for fewer schemes, seeds or rounds of the same scenario: it is then extended.
    """
    new = not (folder / FILE).exists()
    if not new:
        _join(folder, order)
    elif folder.exists() and any(folder.iterdir()):
        raise StoreError(f"{folder}: holds files but no run; choose another --out, or an empty folder")
    about = {"command": command, "machine": f"{platform.machine()} {platform.system()}, {_backend()}"}
    about |= {f"version of {name}": importlib.metadata.version(name) for name in PACKAGES}
    about["version of python"] = platform.python_version()
    if new:
        RunStore.create(folder, order, about).close()
    with locked(folder):
        store = RunStore(folder, write=True)
        try:
            wanted = _union(store.order, order)
            if wanted != store.order:
                store.extend(wanted)
            return _work_through(store, watch)
        finally:
            store.close()


def resume(folder: Path, watch: Watch = lambda step: None) -> bool:
    """Go on with a run. Whether anything was left to do."""
    if not (folder / FILE).exists():
        raise StoreError(f"{folder}: no run there ({FILE} is missing); see 'fairwave runs list'")
    with locked(folder):
        store = RunStore(folder, write=True)
        try:
            return _work_through(store, watch)
        finally:
            store.close()


def results(store: RunStore) -> xr.Dataset:
    """All that is stored, as a dataset; attributes say how it came about."""
    order = store.order
    records = {track: store.records(track) for track in order.tracks()}
    begun = {track: rounds for track, rounds in records.items() if rounds}
    if not begun:
        raise StoreError(f"{store.folder}: no round is stored yet; run 'fairwave resume {store.folder}'")
    schemes = [name for name in order.schemes if any(track.scheme == name for track in begun)]
    seeds = [seed for seed in order.seeds if any(track.seed == seed for track in begun)]
    layouts = {seed: layout for seed in seeds if (layout := store.layout(seed)) is not None}
    dataset = to_dataset(records, layouts, schemes, seeds)
    dataset.attrs = {name: value for name, value in store.about.items() if name not in ("schemes", "seeds")}
    return dataset


def _backend() -> str:
    import jax

    return str(jax.devices()[0].device_kind) if jax.default_backend() != "cpu" else "CPU"


def _join(folder: Path, order: Order) -> None:
    """Refuse a folder that holds another scenario, and say what differs."""
    store = RunStore(folder)
    there, here = store.order.scenario.model_dump(mode="json"), order.scenario.model_dump(mode="json")
    store.close()
    for group, values in here.items():
        for name, value in values.items():
            stored = there[group].get(name)
            if (group, name) not in (("run", "seed"), ("run", "num_rounds")) and stored != value:
                raise StoreError(
                    f"{folder}: holds a run with {group}.{name} = {stored}, not {value}; choose another --out"
                )


def _union(stored: Order, asked: Order) -> Order:
    return Order(
        stored.scenario,
        tuple(dict.fromkeys((*stored.schemes, *asked.schemes))),
        tuple(dict.fromkeys((*stored.seeds, *asked.seeds))),
        max(stored.rounds, asked.rounds),
    )


def _work_through(store: RunStore, watch: Watch) -> bool:
    order = store.order
    status = {track: store.summary(track) for track in order.tracks()}
    left = [track for track, now in status.items() if now.rounds < order.rounds and not now.finished]
    for track, now in status.items():
        if track not in left:
            watch(Step(track, now.rounds, now.mean_loss, now.test_accuracy))
    if not left:
        return False
    workshop = Workshop(order)
    for track in left:
        _run_track(store, workshop, track, watch)
    return True


def _run_track(store: RunStore, workshop: Workshop, track: Track, watch: Watch) -> None:
    order, cell = store.order, workshop.cell(track)
    store.begin(track, workshop.fingerprint(cell), workshop.layout(cell))
    first, checkpoint = store.summary(track).rounds, store.checkpoint(track)
    state = None if checkpoint is None else unpack_state(checkpoint, like=cell.start())
    energies = [record["energy_j"] for record in store.records(track)]
    watch(Step(track, first))
    for number, (after, record) in enumerate(iterate(cell, order.rounds, state, first), start=first):
        arrays = as_arrays(record)
        events = releases(record, gradient_exchange=order.scenario.learning.gradient_exchange, local_std=cell.local_std)
        done = target_reached(cell.scenario.run, record)
        store.append(track, number, arrays, events, pack_state(after), last=done)
        energies.append(arrays["energy_j"])
        watch(_step(track, number + 1, arrays, energies))


def _step(track: Track, rounds: int, arrays: Arrays, energies: list[np.ndarray]) -> Step:
    spread = float(np.std(np.mean(energies, axis=0)))
    return Step(track, rounds, float(np.nanmean(arrays["loss"])), float(arrays["test_accuracy"]), spread)
