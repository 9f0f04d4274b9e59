"""Running an order into a store, round by round; going on where it stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from fairwave.engine.cell import SimulatedCell
from fairwave.engine.cell_group import CellGroup
from fairwave.engine.device_map import BEST_HERE, Execution
from fairwave.engine.round_record import TEST_RMSE, as_arrays, ledger_events, mean_of_participants
from fairwave.engine.state import State
from fairwave.errors import StoreError
from fairwave.plugins import load_plugins
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.background import in_background
from fairwave.runs.database import locked
from fairwave.runs.energy_so_far import EnergySoFar
from fairwave.runs.experiment import CompletedRound, Experiment, run_together
from fairwave.runs.finished_round import FinishedRound
from fairwave.runs.folder import holds_run, is_federation, last_command, make_folder, planned, refuse_federation
from fairwave.runs.history import session_now
from fairwave.runs.hosts import TrackAssignment, announce
from fairwave.runs.kept_models import kept_part
from fairwave.runs.order import Order, Track
from fairwave.runs.packing import pack_state, rows_of, unpack_state
from fairwave.runs.plugin_check import refuse_changed_plugins
from fairwave.runs.prepared_groups import prepared
from fairwave.runs.results import to_dataset
from fairwave.runs.store import RunStore, no_run_in
from fairwave.runs.track_groups import MOST_TOGETHER, Group, side_by_side
from fairwave.runs.track_states import track_states
from fairwave.scenario.model_keeping import keeps
from fairwave.trackers.callback import Training
from fairwave.trackers.callback_calls import CallbackCalls, Follow, followed, nobody
from fairwave.trackers.round_values import round_values

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True)
class TrackProgress:
    """What a watcher learns after a round, and once before a track's first."""

    track: Track
    rounds: int
    """Rounds of this track that are stored."""
    loss: float = float("nan")
    """Mean device loss after local training."""
    test_accuracy: float = float("nan")
    energy_std_j: float = float("nan")
    """Std over devices of the mean energy so far."""
    test_rmse: float | None = None
    """Root mean squared error on test data; None where the model does not predict numbers."""


Watch = Callable[[TrackProgress], None]
STORED_EVERY_S = 0.05
"""Transactions begin at least so far apart, in seconds; rounds that finish meanwhile share the next one."""
MOST_WAITING, WAITING_BYTES = 32, 64 << 20
"""Finished rounds, and bytes of their states, that may be in memory until they are stored."""


def run(
    order: Order,
    folder: Path,
    command: str,
    watch: Watch = lambda step: None,
    *,
    execution: Execution = BEST_HERE,
    warn: Callable[[str], None] = lambda sentence: None,
    follow: Follow = nobody,
) -> bool:
    """Run an order, or go on with it where the folder already holds it. Whether anything was left to do.

    The folder may hold an order for fewer schemes, seeds or rounds of the same scenario: it is then extended. Before a
    new run trains, `warn` is called with what it may surprise with. `follow` gives the callbacks of a scheme and seed.
    """
    order.check()
    wanted = planned(order, folder)
    experiment = None
    if not holds_run(folder):
        experiment = Experiment(order, execution=execution)
        for sentence in experiment.forewarnings():
            warn(sentence)
        experiment.cell(next(order.tracks()))  # whatever is wrong with the order is found before a folder is made
        make_folder(folder, private=mode_of(order.scenario.privacy).proves)
    with locked(folder):
        store = RunStore(folder, write=True) if holds_run(folder) else RunStore.create(folder, order)
        try:
            refuse_federation(store)
            return _work_through(store, wanted, command, (watch, follow), experiment or execution)
        finally:
            store.close()


def resume(folder: Path, command: str, watch: Watch = lambda step: None, *, follow: Follow = nobody) -> bool:
    """Go on with a run, which executes the plugins that it names. Whether anything was left to do."""
    if not holds_run(folder):
        raise no_run_in(folder)
    with locked(folder):
        store = RunStore(folder, write=True)
        try:
            refuse_federation(store)
            load_plugins(store.plugin_files())
            return _work_through(store, store.order, command, (watch, follow), BEST_HERE)
        finally:
            store.close()


def results(store: RunStore) -> xr.Dataset:
    """All that is stored, as a dataset; attributes say how it came about."""
    order = store.order
    records = {track: store.records(track) for track in order.tracks()}
    begun = {track: rounds for track, rounds in records.items() if rounds}
    if not begun:
        go_on = last_command(store) if is_federation(store) else f"fairwave resume {store.folder}"
        raise StoreError(f"{store.folder}: no round is stored yet; run '{go_on}'")
    schemes = [name for name in order.schemes if any(track.scheme == name for track in begun)]
    seeds = [seed for seed in order.seeds if any(track.seed == seed for track in begun)]
    layouts = {seed: layout for seed in seeds if (layout := store.layout(seed)) is not None}
    dataset = to_dataset(records, layouts, schemes, seeds)
    described = {name: value for name, value in store.about.items() if name not in ("schemes", "seeds")}
    dataset.attrs = described | history_in_words(store)
    return dataset


def history_in_words(store: RunStore) -> dict[str, str]:
    """How a run came about, by name; what differed between sessions is numbered by session."""
    sessions = [session.described() for session in store.history()]
    plugins = {f"plugin {origin.place}": origin.digest for origin in store.plugins()}
    if not sessions:
        return plugins
    words = dict(sessions[0])
    for number, session in enumerate(sessions[1:], start=2):
        changed = {name: value for name, value in session.items() if words.get(name) != value}
        words |= {f"session {number}: {name}": value for name, value in changed.items()}
    return words | plugins


def ended_early(store: RunStore) -> list[str]:
    """A sentence for every track that ended before its last round, and why."""
    return [state.in_words() for state in track_states(store) if state.ended_early]


def _work_through(
    store: RunStore, order: Order, command: str, followers: tuple[Watch, Follow], given: Experiment | Execution
) -> bool:
    """Run whatever is left of an order; an experiment that is prepared already is used."""
    watch, follow = followers
    status = {track: store.summary(track) for track in order.tracks()}
    left = [track for track, now in status.items() if not now.is_done(order)]
    for track, now in status.items():
        if track not in left:
            watch(TrackProgress(track, now.rounds, now.mean_loss, now.test_accuracy))
    if left or order != store.order:
        refuse_changed_plugins(store.folder, store.plugins(), order)
        store.extend(order, session_now(command))
    if left:
        experiment = Experiment(order, execution=given) if isinstance(given, Execution) else given
        size = min(len(order.seeds), MOST_TOGETHER) if experiment.computes_together() else 1
        groups = list(side_by_side([(track, status[track].rounds) for track in left], order.seeds, size))
        for group, cells in prepared(experiment, groups):
            _run_tracks(store, experiment, group, cells, (watch, follow))
    announce(None)
    return bool(left)


def _run_tracks(
    store: RunStore, experiment: Experiment, group: Group, cells: CellGroup, followers: tuple[Watch, Follow]
) -> None:
    """Run tracks that have the same rounds done, side by side; all rounds that are finished are stored together."""
    watch, follow = followers
    order, tracks = store.order, [group.members[place] for place in group.left]
    first = store.summary(tracks[0]).rounds
    states, keepers, told = list[State](), list[Callable[[Sequence[CompletedRound]], None]](), []
    with contextlib.ExitStack() as training_goes_on:
        for track, cell in zip(tracks, cells.cells, strict=True):
            store.begin(track, experiment.fingerprint(cell), experiment.layout(cell))
            checkpoint = store.checkpoint(track)
            announce(TrackAssignment(track, first, order.rounds, checkpoint))
            energy = EnergySoFar(order.scenario.cell.num_devices)
            for stored in store.records(track):
                energy.add(stored)
            watch(TrackProgress(track, first))
            training = Training(track.scheme, track.seed, order.rounds, first, cell.scenario, store.folder)
            calls = training_goes_on.enter_context(followed(follow(training)))
            states.append(cell.start() if checkpoint is None else unpack_state(checkpoint, like=cell.start()))
            keepers.append(functools.partial(_keep, store, track, cell, energy, watch, calls))
            told.append(calls)

        def keep(rounds: Sequence[Sequence[CompletedRound | None]]) -> None:
            for keeper, of_track in zip(keepers, zip(*rounds, strict=True), strict=True):
                done = [one for one in of_track if one is not None]
                if done:
                    keeper(done)

        with in_background(keep, most=_may_wait(states[0]), pause_s=STORED_EVERY_S) as hand_over:
            for done in run_together(cells, order.rounds, states, first):
                for calls, one in zip(told, done, strict=True):
                    calls.ended = calls.ended if one is None else one.ended
                hand_over(done)


def _may_wait(state: State) -> int:
    """How many finished rounds with such a state may be in memory until they are stored."""
    state_bytes: int = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    return max(1, min(MOST_WAITING, WAITING_BYTES // state_bytes))


def _keep(
    store: RunStore,
    track: Track,
    cell: SimulatedCell,
    energy: EnergySoFar,
    watch: Watch,
    calls: CallbackCalls,
    rounds: Sequence[CompletedRound],
) -> None:
    """Store rounds, and say so."""
    mode, finished = mode_of(cell.scenario.privacy), []
    for done in rounds:
        kept = None
        if keeps(cell.scenario.run.keep_models, done.round_index):
            kept = kept_part(pack_state(done.state))
        events = ledger_events(cell.access_point, done.record, done.round_index)
        finished.append(FinishedRound(done.round_index, as_arrays(done.record), events, done.ended, kept))
    last = pack_state(rounds[-1].state)
    store.append(track, finished, last, rows_of(last))
    for one in finished:
        energy.add(one.arrays)
        loss, accuracy = mean_of_participants(one.arrays["loss"]), float(one.arrays["test_accuracy"])
        rmse = float(one.arrays[TEST_RMSE]) if TEST_RMSE in one.arrays else None
        watch(TrackProgress(track, one.number + 1, loss, accuracy, energy.std_j(), rmse))
        calls.round(round_values(one.arrays, one.number + 1, mode))
