"""Running an order into a store, round by round; going on where it stopped."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwave.engine.device_map import BEST_HERE, Execution
from fairwave.engine.releases import releases
from fairwave.engine.round_record import Arrays, as_arrays, mean_of_participants
from fairwave.engine.state import RoundRecord, State
from fairwave.errors import SolveError, StoreError
from fairwave.policy.device_plan import LARGEST_VIOLATION
from fairwave.runs.background import in_background
from fairwave.runs.database import FILE, locked
from fairwave.runs.folder import holds_run, is_federation, make_folder, planned, refuse_federation, surroundings
from fairwave.runs.hosts import Turn, announce
from fairwave.runs.order import Order, Track
from fairwave.runs.packing import pack_state, unpack_state
from fairwave.runs.results import to_dataset
from fairwave.runs.store import RunStore
from fairwave.runs.training import Workshop, iterate, target_reached

if TYPE_CHECKING:
    import xarray as xr


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


def run(
    order: Order, folder: Path, command: str, watch: Watch = lambda step: None, *, execution: Execution = BEST_HERE
) -> bool:
    """Run an order, or go on with it where the folder already holds it. Whether anything was left to do.

    The folder may hold an order for fewer schemes, seeds or rounds of the same scenario: it is then extended.
    """
    wanted = planned(order, folder)
    workshop = None
    if not holds_run(folder):
        workshop = Workshop(order, execution=execution)
        workshop.cell(next(order.tracks()))  # whatever is wrong with the order is found before a folder is made
        make_folder(folder)
    about = {"command": command.encode("utf-8", "replace").decode()} | surroundings()
    with locked(folder):
        store = RunStore(folder, write=True) if holds_run(folder) else RunStore.create(folder, order, about)
        try:
            refuse_federation(store)
            if wanted != store.order:
                store.extend(wanted, about)
            return _work_through(store, watch, workshop, execution)
        finally:
            store.close()


def resume(folder: Path, watch: Watch = lambda step: None) -> bool:
    """Go on with a run. Whether anything was left to do."""
    if not holds_run(folder):
        raise StoreError(f"{folder}: no run there ({FILE} is missing); see 'fairwave runs list'")
    with locked(folder):
        store = RunStore(folder, write=True)
        try:
            refuse_federation(store)
            return _work_through(store, watch)
        finally:
            store.close()


def results(store: RunStore) -> xr.Dataset:
    """All that is stored, as a dataset; attributes say how it came about."""
    order = store.order
    records = {track: store.records(track) for track in order.tracks()}
    begun = {track: rounds for track, rounds in records.items() if rounds}
    if not begun:
        go_on = store.about["command"] if is_federation(store) else f"fairwave resume {store.folder}"
        raise StoreError(f"{store.folder}: no round is stored yet; run '{go_on}'")
    schemes = [name for name in order.schemes if any(track.scheme == name for track in begun)]
    seeds = [seed for seed in order.seeds if any(track.seed == seed for track in begun)]
    layouts = {seed: layout for seed in seeds if (layout := store.layout(seed)) is not None}
    dataset = to_dataset(records, layouts, schemes, seeds)
    dataset.attrs = {name: value for name, value in store.about.items() if name not in ("schemes", "seeds")}
    return dataset


def ended_early(store: RunStore) -> list[str]:
    """A sentence for every track that ended before its last round, and why."""
    order = store.order
    run, budget = order.scenario.run, order.scenario.privacy.max_epsilon
    target = "its target was reached" if run.target_loss or run.target_accuracy else ""
    spent = f"no device has privacy budget left (privacy.max_epsilon {budget:g})" if budget else ""
    drained = "no battery is charged enough (compute.battery_capacity_j)"
    empty = drained if order.scenario.compute.battery_capacity_j is not None else ""
    gone = "every device has left (cell.departure_round)" if order.scenario.cell.departure_round is not None else ""
    why = " or ".join(filter(None, (target, spent, empty, gone)))
    status = {track: store.summary(track) for track in order.tracks()}
    return [
        f"{track.scheme} with seed {track.seed} ended after {now.rounds} of {order.rounds} rounds: {why}"
        for track, now in status.items()
        if now.finished and now.rounds < order.rounds
    ]


def _work_through(
    store: RunStore, watch: Watch, workshop: Workshop | None = None, execution: Execution = BEST_HERE
) -> bool:
    order = store.order
    status = {track: store.summary(track) for track in order.tracks()}
    left = [track for track, now in status.items() if now.rounds < order.rounds and not now.finished]
    for track, now in status.items():
        if track not in left:
            watch(Step(track, now.rounds, now.mean_loss, now.test_accuracy))
    if not left:
        announce(None)
        return False
    store.extend(order, surroundings())
    workshop = workshop or Workshop(order, execution=execution)
    for track in left:
        _run_track(store, workshop, track, watch)
    announce(None)
    return True


def _run_track(store: RunStore, workshop: Workshop, track: Track, watch: Watch) -> None:
    order, cell = store.order, workshop.cell(track)
    store.begin(track, workshop.fingerprint(cell), workshop.layout(cell))
    first, checkpoint = store.summary(track).rounds, store.checkpoint(track)
    state = None if checkpoint is None else unpack_state(checkpoint, like=cell.start())
    announce(Turn(track, first, order.rounds, checkpoint))
    energy = _Energy(order.scenario.cell.num_devices)
    for stored in store.records(track):
        energy.add(stored)
    watch(Step(track, first))

    def keep(number: int, after: State, record: RoundRecord) -> None:
        arrays = as_arrays(record)
        events = releases(
            cell.guard, record, gradient_exchange=cell.exchanges, local_std=cell.local_std,
            told_losses=cell.scheme.told_losses,
        )  # fmt: skip
        done = target_reached(cell.scenario.run, record) or not cell.can_go_on(after, number + 1)
        store.append(track, number, arrays, events, pack_state(after), last=done)
        energy.add(arrays)
        loss, accuracy = mean_of_participants(arrays["loss"]), float(arrays["test_accuracy"])
        watch(Step(track, number + 1, loss, accuracy, energy.std_j()))

    with in_background() as hand_over:
        for number, (after, record) in enumerate(iterate(cell, order.rounds, state, first), start=first):
            _certify(track, number, record)
            hand_over(functools.partial(keep, number, after, record))


def _certify(track: Track, number: int, record: RoundRecord) -> None:
    """Raise where a device's optimum is not one; written so that NaN fails too."""
    bad = np.flatnonzero(~(np.asarray(record.plan.violation) <= LARGEST_VIOLATION))
    if bad.size:
        raise SolveError(
            f"{track.scheme}, round {number + 1}, device {bad[0]}: its optimum breaks a constraint; check its "
            "parameters for extreme values and report the scenario"
        )


class _Energy:
    """What each device has spent per upload, so far."""

    def __init__(self, num_devices: int) -> None:
        self._total_j, self._uploads = np.zeros(num_devices), np.zeros(num_devices)

    def add(self, arrays: Arrays) -> None:
        uploaded = arrays["participating"] & ~arrays["outage"]
        self._total_j += np.where(uploaded, arrays["energy_j"], 0.0)
        self._uploads += uploaded

    def std_j(self) -> float:
        """Over the devices that have uploaded at all."""
        told = self._uploads > 0
        return float(np.std(self._total_j[told] / self._uploads[told])) if told.any() else float("nan")
