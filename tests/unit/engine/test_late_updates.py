"""Updates that come after the deadline: when they are used, with which weight, and what they leave untouched."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.engine.cell import SimulatedCell
from fairwave.engine.invitation import draw_participants
from fairwave.engine.round_record import OF_LATE_UPDATES, RoundRecord, as_arrays, ledger_events
from fairwave.engine.server_steps import Upload
from fairwave.engine.state import State
from fairwave.learning.model import flat_rows
from fairwave.learning.staleness import staleness_weight
from fairwave.runs.packing import pack_state, unpack_state
from tests.builders import clusters_cell, leaves

DEVICES, ROUNDS, CHANCE, DECAY = 6, 7, 0.5, 0.7
OFTEN_LATE = (
    f"cell.straggler_probability={CHANCE}",
    f"learning.late_decay={DECAY}",
    "privacy.similarity_memory=0",
    "privacy.similarity=leave_one_out",
)


def cell(*overrides: str, scheme: str = "fair_noise_only", late_rounds: int = 2, **more: object) -> SimulatedCell:
    given = (*OFTEN_LATE, f"learning.late_rounds={late_rounds}", *overrides)
    return clusters_cell(scheme, *given, devices=DEVICES, **more)  # type: ignore[arg-type]


def watched(run: SimulatedCell, rounds: int = ROUNDS) -> Iterator[tuple[State, State, RoundRecord, Upload]]:
    """State before and after each round, its record, and what participants sent in it."""
    uploads: list[Upload] = []
    honest = run.devices.upload

    def upload(*arguments: object) -> Upload:
        uploads.append(honest(*arguments))  # type: ignore[arg-type]
        return uploads[-1]

    run.devices.upload = upload  # type: ignore[method-assign, assignment]
    state = run.start()
    for number in range(rounds):
        after, record = run.round(state, number)
        yield state, after, record, uploads[-1]
        state = after


@dataclasses.dataclass
class Twin:
    """The same in NumPy, from the updates alone: a dictionary of what is on its way, and loops."""

    late_rounds: int
    waiting: dict[int, tuple[int, np.ndarray | None]] = dataclasses.field(default_factory=dict)
    ages: list[int] = dataclasses.field(default_factory=list)
    dropped: int = 0

    def round(self, number: int, straggling: np.ndarray, sent: dict[int, tuple[bool, np.ndarray]]) -> dict[int, tuple]:
        """Row, weight and age of every update that is used; `sent` has whether each arrives, and its row."""
        used: dict[int, tuple] = {}
        for device, (since, row) in list(self.waiting.items()):
            assert device not in sent  # whoever is waited for was not asked
            if not straggling[device]:
                del self.waiting[device]
                if row is not None:
                    used[device] = (row, 1.0 / (1 + number - since) ** DECAY, number - since)
                    self.ages.append(number - since)
            elif number - since == self.late_rounds:
                del self.waiting[device]
                self.dropped += 1
        for device, (carried, row) in sent.items():
            if straggling[device]:
                self.waiting[device] = (number, row if carried else None)
            elif carried:
                used[device] = (row, 1.0, 0)
        return used


@pytest.mark.parametrize(
    ("late_rounds", "more"),
    [
        (2, ()),
        pytest.param(3, ("cell.participants=3", "radio.channel_error_std=0.3"), marks=pytest.mark.slow),
        pytest.param(1, ("cell.participants=4", "privacy.similarity=update"), marks=pytest.mark.slow),
    ],
)
def test_rounds_are_those_of_a_twin_in_numpy(late_rounds: int, more: tuple[str, ...]) -> None:
    """Model, deviations, ages, weights and who is asked."""
    run, twin, dropped = cell(*more, late_rounds=late_rounds), Twin(late_rounds), 0
    root, similarity = run.access_point.root, run.scenario.privacy.similarity
    participants = run.scenario.cell.participants or DEVICES
    for number, (before, after, record, upload) in enumerate(watched(run)):
        drawn = draw_participants(DEVICES, participants, CHANCE, root, jnp.asarray(number))
        straggling = np.asarray(draw_participants(DEVICES, DEVICES, CHANCE, root, jnp.asarray(number)).stragglers)
        asked = np.asarray(drawn.participating) & ~np.isin(np.arange(DEVICES), list(twin.waiting))
        assert (np.asarray(record.participating) == asked).all()
        rows, places = np.asarray(flat_rows(upload.updates)[0], np.float64), np.asarray(drawn.participants).tolist()
        sends = asked & (np.asarray(record.plan.energy_j) > 0)
        carried = np.asarray(record.delivered) | straggling  # of stragglers, the engine's word for it, below
        if run.scenario.radio.channel_error_std:
            carried = _carried(run, before, after, record)
        sent = {k: (bool(carried[k]), rows[places.index(k)]) for k in np.flatnonzero(sends)}
        used = twin.round(number, straggling, sent)
        _is_mean(before, after, used)
        _is_deviation(before, after, used, similarity)
        assert record.late_use is not None
        ages = {k: age for k, (_, _, age) in used.items() if age}
        assert {k: int(record.late_use.age[k]) for k in np.flatnonzero(record.late_use.age)} == ages
        for device, (_, weight, age) in used.items():
            assert float(record.late_use.weight[device]) == pytest.approx(weight if age else 0.0, rel=1e-6)
        assert (np.asarray(record.late) == np.isin(np.arange(DEVICES), [k for k in sent if straggling[k]])).all()
        dropped += int(np.asarray(record.late_use.dropped).sum())
        assert dropped == twin.dropped
    assert twin.ages and max(twin.ages) <= late_rounds and (late_rounds > 2 or dropped)


def _carried(run: SimulatedCell, before: State, after: State, record: RoundRecord) -> np.ndarray:
    """Which channels carried what was sent: of stragglers, as the wire has it."""
    carried = np.asarray(record.delivered).copy()
    assert after.devices.on_the_way is not None
    wire = after.devices.on_the_way
    for place, device in enumerate(np.asarray(wire.devices)):
        if device < DEVICES and bool(record.late[device]):
            carried[device] = bool(wire.sent.carried[place])
    return carried


def _is_mean(before: State, after: State, used: dict[int, tuple]) -> None:
    """The model moved by the sum of the weighted updates over their number."""
    old, new = (
        np.concatenate([leaf.reshape(-1) for leaf in leaves(s.server.global_params)]).astype(np.float64)
        for s in (before, after)
    )
    step = sum(weight * row for row, weight, _ in used.values()) / max(len(used), 1)
    np.testing.assert_allclose(new, old + step, atol=2e-6)


def _is_deviation(before: State, after: State, used: dict[int, tuple], similarity: str) -> None:
    """Everybody whose update was used is compared with the others', each at its weight; the others keep theirs."""
    expected = np.asarray(before.server.deviation).copy()
    total = sum((weight * row for row, weight, _ in used.values()), np.zeros(()))
    cosines = {}
    for device, (row, weight, _) in used.items():
        reference = total if similarity == "update" else total - weight * row
        lengths = np.linalg.norm(row) * np.linalg.norm(reference)
        cosines[device] = max(float(row @ reference / lengths), 0.0) if lengths > 0 else 0.0
    best = max(cosines.values(), default=0.0)
    for device, cosine in cosines.items():
        expected[device] = (best - cosine) / best if best > 1e-6 else 1.0
    np.testing.assert_allclose(np.asarray(after.server.deviation), expected, atol=2e-5)


@pytest.mark.parametrize(("age", "decay", "weight"), [(0, 3.0, 1.0), (3, 0.5, 0.5), (1, 1.0, 0.5), (7, 0.0, 1.0)])
def test_the_weight_falls_with_age(age: int, decay: float, weight: float) -> None:
    assert float(staleness_weight(jnp.asarray(age), decay)) == pytest.approx(weight)


def test_left_out_it_changes_nothing_and_leaves_no_trace() -> None:
    """No further array in states, checkpoints and records, and a state of before is read."""
    run = clusters_cell("fair_noise_only", OFTEN_LATE[0], devices=DEVICES)
    state, record = run.round(run.start(), 0)
    assert state.devices.on_the_way is None and record.late_use is None
    assert not set(OF_LATE_UPDATES) & set(as_arrays(record))
    kept = pack_state(state)
    assert b"on_the_way" not in kept and pack_state(unpack_state(kept, like=run.start())) == kept


def test_a_run_with_updates_on_their_way_goes_on_exactly() -> None:
    run = cell()
    states = [after for _, after, _, _ in watched(run, 5)]
    stopped = next(k for k in range(3) if (np.asarray(states[k].devices.on_the_way.devices) < DEVICES).any())
    kept = pack_state(states[stopped])
    again = cell()
    state = unpack_state(kept, like=again.start())
    for number in range(stopped + 1, 5):
        state, _ = again.round(state, number)
    assert pack_state(state) == pack_state(states[-1])


def test_without_stragglers_it_is_the_same_but_for_rounding() -> None:
    prompt = clusters_cell("fair_noise_only", devices=DEVICES)
    waits = clusters_cell("fair_noise_only", "learning.late_rounds=2", devices=DEVICES)
    one, other = prompt.start(), waits.start()
    for number in range(3):
        (one, _), (other, record) = prompt.round(one, number), waits.round(other, number)
        assert not np.asarray(record.late_use.age).any()
    for a, b in zip(leaves(one.server), leaves(other.server), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_a_device_learns_from_the_work_of_the_round_in_which_it_was_late() -> None:
    """Its effort memory holds that round's energy with the deviation that its update got later."""
    run = cell("utility.effort_fit=window", scheme="proposed")
    spent: dict[int, float] = {}
    learned = 0
    for before, after, record, _ in watched(run):
        for device in np.flatnonzero(record.late):
            spent[device] = float(record.plan.compute_energy_j[device])
        for device in np.flatnonzero(np.asarray(record.late_use.age)):
            old, new = (leaves(state.devices.effort) for state in (before, after))
            added = [b[device] for a, b in zip(old, new, strict=True) if (a[device] != b[device]).any()]
            assert any(np.isclose(value, spent[device], rtol=1e-9).any() for value in added)
            learned += 1
    assert learned


def test_the_ledger_has_the_update_when_it_leaves_and_the_model_when_it_is_used() -> None:
    run, sent, used = cell(), 0, 0
    for number, (_, _, record, _) in enumerate(watched(run)):
        events = {(e.content, e.sender): e for e in ledger_events(run.access_point, record, number)}
        asked, late = np.flatnonzero(record.participating), np.flatnonzero(record.late_use.age)
        assert events["update", "device"].devices.tolist() == asked.tolist()
        assert set(events["deviation", "access point"].devices) == set(np.flatnonzero(record.delivered)) | set(late)
        sent, used = sent + asked.size, used + late.size
    assert used and sent > used


@pytest.mark.slow
def test_private_steps_are_charged_once_and_when_they_are_sent() -> None:
    private = ("privacy.clip_norm=0.5", "privacy.noise_multiplier=2", "learning.gradient_exchange=false")
    run = cell("privacy.mode=provable", *private)
    steps = np.zeros(DEVICES, int)
    for number, (_, after, record, _) in enumerate(watched(run)):
        steps += np.asarray(record.plan.local_iterations)
        events = ledger_events(run.access_point, record, number)
        (update,) = [event for event in events if (event.content, event.sender) == ("update", "device")]
        assert update.steps.sum() == np.asarray(record.plan.local_iterations).sum()
        assert {event.basis for event in events if event.sender == "access point"} == {"messages"}
        np.testing.assert_array_equal(after.server.budget_spent, steps)
    assert steps.any()


def test_a_late_update_that_is_refused_is_not_used_and_its_device_deviates_fully() -> None:
    """The same round twice: with what is on its way as it is, and spoiled."""
    run = cell()
    state = next(after for _, after, record, _ in watched(run) if np.asarray(record.late).any())
    number = int(np.asarray(state.devices.on_the_way.asked_in).max()) + 1
    while True:
        after, record = run.round(state, number)
        late = np.flatnonzero(record.late_use.age)
        if late.size:
            break
        state, number = after, number + 1
    wire = state.devices.on_the_way
    sent = dataclasses.replace(wire.sent, updates=jax.tree.map(lambda leaf: leaf * jnp.nan, wire.sent.updates))
    spoiled = dataclasses.replace(state.devices, on_the_way=dataclasses.replace(wire, sent=sent))
    without, refused = run.round(State(state.server, spoiled), number)
    assert np.flatnonzero(refused.findings["not_finite"]).tolist() == late.tolist()
    assert (np.asarray(without.server.deviation)[late] == 1.0).all()
    used = int(np.asarray(record.delivered).sum())
    old, new = (leaves(s.server.global_params) for s in (state, without))
    assert all(np.isfinite(leaf).all() for leaf in new)
    assert (used == 0) == all((a == b).all() for a, b in zip(old, new, strict=True))
    assert any((a != b).any() for a, b in zip(new, leaves(after.server.global_params), strict=True))
