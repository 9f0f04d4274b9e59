"""The ledger of a proof never falls below what has left a device, whatever goes wrong."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
import pytest
from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp
from hypothesis import Phase as Generate
from hypothesis import find, given, settings
from hypothesis import strategies as st

from fairwave.data.sources import load
from fairwave.engine.round_record import Arrays
from fairwave.errors import ScenarioError
from fairwave.federate.agreement import Agreement
from fairwave.federate.client import DeviceClient
from fairwave.federate.client_app import app_of
from fairwave.federate.client_state import DIGEST
from fairwave.federate.flower_records import ANSWER
from fairwave.federate.protocol import Answer, Phase, Status, Task
from fairwave.federate.server_round import per_try
from fairwave.federate.settings import Settings
from fairwave.federate.setup import access_point, device_client
from fairwave.federate.step_charges import STATES, Asked, Charge, PerTry, StepCharges, at_worst
from fairwave.learning.named_arrays import named_arrays
from fairwave.runs.experiment import Experiment
from fairwave.runs.faults import Fault
from fairwave.runs.order import Order, Track
from fairwave.runs.packing import unpack
from tests.federate.device_histories import LEAST, MOST, PER_TRY, Try, World, histories, live_through
from tests.federate.parties import Outcome, federated, flat, tiny

HARDENED = Settings(quorum=0.3, wait_s=1.0, patience=1)
PRIVATE = ("privacy.noise_source=hardened", "privacy.max_epsilon=unset")
TRACK = Track("proposed", 0)


class LastReportRule(StepCharges):
    """The rule of before: a state's last report is believed, whatever was heard of it earlier."""

    def __init__(self, num_devices: int, records: Sequence[Arrays] = ()) -> None:
        super().__init__(num_devices, records)
        held = records[-1] if records else {}
        self._state, self._base = held.get("old_state", np.zeros(1, np.int64)), held.get("old_base", np.zeros(2, int))
        self._total = held.get("old_total", np.zeros(2, int))

    def charge(self, answers: Mapping[int, Answer], asked: Asked, per_try: PerTry, **_: object) -> Charge:
        before, tries = self._total.copy(), asked[Phase.GRADIENT][0]
        most, least = np.array([MOST, 1]), np.array([LEAST, 1])
        if 0 not in answers:
            self._total = self._total + tries * most
        else:
            answer = answers[0]
            if answer.state_name != self._state[0]:
                self._state, self._base = np.array([answer.state_name]), self._total + (tries - 1) * most
            did = answer.status in (Status.SENT, Status.LOST)
            new = self._base + np.array([answer.spent, answer.gradients]) - self._total
            self._total = self._total + np.maximum(new, least if did else 0).clip(0)
        return Charge(*((self._total - before)[:, None]))

    def arrays(self) -> Arrays:
        return {**super().arrays(), "old_state": self._state, "old_base": self._base, "old_total": self._total}

    def implausible(self, device: int, answer: Answer, asked: Asked, per_try: PerTry) -> bool:
        return False


def _never_below(charged: np.ndarray, released: np.ndarray) -> bool:
    return bool((charged >= released).all())


@settings(max_examples=500, deadline=None)
@given(histories())
def test_the_charge_is_never_below_the_truth(rounds: list[list[Try]]) -> None:
    """Lost questions and answers, crashes, rests, lost states, backups brought back, and clones, in any mixture."""
    live_through(rounds, World(), StepCharges, _never_below)


@settings(max_examples=200, deadline=None)
@given(histories(faults=False))
def test_a_federation_without_faults_is_charged_exactly(rounds: list[list[Try]]) -> None:
    """Rounds that are repeated, questions that differ the second time and rests are no faults."""
    live_through(rounds, World(), StepCharges, lambda charged, released: bool((charged == released).all()))


def test_the_property_rejects_the_rule_of_before_and_a_device_that_counts_too_early() -> None:
    """Within 2,000 histories of at most 8 rounds each, always the same ones, the property finds both."""
    search = settings(max_examples=2_000, database=None, derandomize=True, deadline=None, phases=[Generate.generate])
    below = find(histories(), lambda rounds: _breaks(rounds, World(), LastReportRule), settings=search)
    assert not _breaks(below, World(), StepCharges)
    early = find(histories(), lambda rounds: _breaks(rounds, World(counts_first=True), StepCharges), settings=search)
    assert not _breaks(early, World(), StepCharges)


def _breaks(rounds: list[list[Try]], world: World, rule: Callable[..., StepCharges]) -> bool:
    try:
        live_through(rounds, world, rule, _never_below)
    except AssertionError:
        return True
    return False


def _sent(spent: int, answers: int, name: int = 7, gradients: int = 0) -> Answer:
    return Answer(
        0, Status.SENT, spent=spent, update_asks=answers, state_name=name, gradients=gradients, gradient_asks=gradients
    )


UPDATES = {Phase.UPDATE: {0: 1}}


def test_a_backup_that_is_brought_back_is_charged_at_its_worst_and_named() -> None:
    """Answers 1 to 4 are heard; then a backup from after answer 2 goes on: 2 and 3 again, and only then is it exact."""
    charges, charged = StepCharges(1), []
    for spent, answers in ((90, 1), (180, 2), (270, 3), (360, 4), (270, 3), (360, 4), (450, 5)):
        charged.append(int(charges.charge({0: _sent(spent, answers)}, UPDATES, PER_TRY).steps[0]))
        assert bool(charges.restored) == (len(charged) in (5, 6)), charged
        assert charges.arrays()["state_restored"].tolist() == [len(charged) in (5, 6)]
        if len(charged) == 5:
            assert charges.restored == {0: (3, 4)}
    assert charged == [90, 90, 90, 90, MOST, MOST, 90]


def test_two_machines_with_one_identity_are_each_charged_and_named() -> None:
    """Copies of one state take turns: every second answer does not go on where the last one was."""
    charges = StepCharges(1)
    total = int(charges.charge({0: _sent(90, 1)}, UPDATES, PER_TRY).steps[0])
    for number in range(2, 6):
        for machine in ("one", "other"):
            total += int(charges.charge({0: _sent(number * 90, number)}, UPDATES, PER_TRY).steps[0])
            assert bool(charges.restored) == (machine == "other")
    assert total == 90 + 4 * (90 + MOST)


def test_two_states_that_take_turns_are_named() -> None:
    """Machines that began apart have states of different names: exact, but not one device."""
    charges, charged = StepCharges(1), []
    for spent, answers, name in ((90, 1, 7), (85, 1, 8), (180, 2, 7)):
        charged.append(int(charges.charge({0: _sent(spent, answers, name)}, UPDATES, PER_TRY).steps[0]))
    assert charged == [90, 85, 90]
    assert charges.restored == {0: (2, 1)}


def test_a_report_beyond_what_was_asked_is_refused() -> None:
    """One device could make epsilon infinite by a large number; at worst it is charged for all its questions."""
    charges = StepCharges(1)
    charges.charge({0: _sent(90, 1)}, UPDATES, PER_TRY)
    for told in (_sent(2**40, 2), _sent(2 * MOST + 1, 2), _sent(90, 3), _sent(90, 2, name=8), _sent(0, 1, 8, 1)):
        assert charges.implausible(0, told, UPDATES, PER_TRY)
    for told in (_sent(2 * MOST, 2), _sent(90, 2), _sent(0, 1), _sent(MOST, 1, name=8)):
        assert not charges.implausible(0, told, UPDATES, PER_TRY)


def test_more_states_than_are_remembered_save_nothing() -> None:
    charges, total = StepCharges(1), 0
    for name in range(1, 2 * STATES):
        charges = StepCharges(1, [charges.arrays()])
        total += int(charges.charge({0: _sent(90, 1, name)}, UPDATES, PER_TRY).steps[0])
    assert total == STATES * 90 + (STATES - 1) * MOST


def test_the_charges_of_a_run_of_before_stay() -> None:
    """A run that the version before has stored: what was charged is a beginning, and its states begin anew."""
    old = {"client_state": np.array([7]), "charged_steps": np.array([300]), "charged_gradients": np.array([3])}
    old |= {"client_state_base_steps": np.array([0]), "client_state_base_gradients": np.array([0])}
    charges = StepCharges(1, [old])
    assert charges.charge({0: _sent(90, 1)}, UPDATES, PER_TRY).steps.tolist() == [90]
    assert charges.arrays()["charged_steps"].tolist() == [390]
    charges = StepCharges(1, [charges.arrays()])
    assert charges.charge({}, UPDATES, PER_TRY).steps.tolist() == [MOST]


def test_what_was_missed_is_charged_with_the_next_answer_whatever_that_is() -> None:
    for status in Status:
        charges = StepCharges(1)
        charges.charge({0: _sent(90, 1)}, UPDATES, PER_TRY)
        charges.charge({}, UPDATES, PER_TRY)
        late = dataclasses.replace(_sent(260, 3), status=status)
        charge = charges.charge({0: late}, UPDATES, PER_TRY)
        assert charges.arrays()["charged_steps"].tolist() == [260]
        assert charge.steps.tolist() == [260 - 90 - MOST]


LateEvent = st.tuples(st.sampled_from(["answer", "late", "late, lost state", "silent"]), st.integers(LEAST, MOST))


@settings(max_examples=300, deadline=None)
@given(st.lists(LateEvent, min_size=1, max_size=10))
def test_late_answers_are_charged_once_and_never_below_the_truth(rounds: list[tuple[str, int]]) -> None:
    """A late answer is found in the round after, in which its device is not asked. At most the worst of every try."""
    charges, charged, released = StepCharges(1), 0, 0
    state_name, told, answered = 1, 0, 0
    for asked, (what, steps) in enumerate(rounds, start=1):
        if what == "late, lost state":
            state_name, told, answered = state_name + 1, 0, 0
        released, told, answered = released + steps, told + steps, answered + 1
        answer = _sent(told, answered, state_name)
        charged += int(charges.charge({0: answer} if what == "answer" else {}, UPDATES, PER_TRY).steps[0])
        if what.startswith("late"):
            assert not charges.implausible(0, answer, {}, PER_TRY)
            charged += int(charges.charge({}, {}, PER_TRY, late={0: answer}).steps[0])
        assert not charges.restored
        assert released <= charged <= asked * MOST
        charges = StepCharges(1, [charges.arrays()])  # as after a restart


def test_a_state_that_is_first_heard_of_late_is_not_charged_twice() -> None:
    charges = StepCharges(1)
    first = charges.charge({}, UPDATES, PER_TRY).steps[0]
    charges.charge({}, {}, PER_TRY, late={0: _sent(90, 1)})
    second = charges.charge({0: _sent(177, 2)}, UPDATES, PER_TRY)
    assert (first, second.steps[0]) == (MOST, 177 - MOST)


def test_whoever_reports_nothing_is_charged_the_most_and_whoever_tells_too_little_the_least() -> None:
    charge = StepCharges(1).charge({0: Answer(0, Status.SENT)}, UPDATES, PER_TRY)
    assert charge.steps.tolist() == [MOST]
    charge = StepCharges(1).charge({0: _sent(0, 1)}, UPDATES, PER_TRY)
    assert charge.steps.tolist() == [LEAST]


def test_questions_whose_end_is_unknown_are_taken_at_their_worst() -> None:
    of_three = PerTry(np.full(3, LEAST), np.array([MOST, 2 * MOST, MOST]), gradients=1)
    worst = at_worst({Phase.UPDATE: {1: 2}, Phase.GRADIENT: {1: 2, 2: 1}}, of_three)
    assert (worst.steps.tolist(), worst.gradients.tolist()) == ([0, 4 * MOST, 0], [0, 2, 1])


def _robbed(order: Order, home: Path, device: int) -> ClientApp:
    """The program of a device that has lost all that it had written down, its account too."""
    shutil.rmtree(home / f"device-{device}", ignore_errors=True)
    return app_of(lambda: Agreement(order, HARDENED), home)


@pytest.mark.slow
def test_a_lost_client_state_hides_nothing(tmp_path: Path) -> None:
    """Device 0 loses its client state before every round: each new one begins at 0, and the ledger does not."""
    order = tiny(*PRIVATE, preset="fair-mlp", rounds=3)
    sent: list[int] = []

    def forgets(honest: ClientApp, message: Message, context: Context) -> Message:
        mine = int(context.node_config["partition-id"]) == 0 and message.metadata.message_type == "train.update"
        if mine:
            honest = _robbed(order, tmp_path / "run" / "devices", 0)
        reply = honest(message, context)
        if mine:
            sent.append(int(reply.content[ANSWER]["spent"]))
        return reply

    held = federated(order, tmp_path / "run", HARDENED, forgets)
    assert len(sent) == 3
    assert _charged(held, 0) == sum(sent)


@pytest.mark.slow
def test_devices_stop_before_their_budget_by_the_ledger_too(tmp_path: Path) -> None:
    """With its client state gone the device would start over; the access point leaves it what its ledger leaves."""
    order = tiny("privacy.noise_source=hardened", "privacy.max_epsilon=12", preset="fair-mlp", rounds=8)

    def forgets(honest: ClientApp, message: Message, context: Context) -> Message:
        if message.metadata.message_type == "train.update":
            honest = _robbed(order, tmp_path / "run" / "devices", int(context.node_config["partition-id"]))
        return honest(message, context)

    held = federated(order, tmp_path / "run", HARDENED, forgets)
    budget = int(access_point(Experiment(order), TRACK, None).enforced.budget[0])
    assert budget - LEAST < _charged(held, 0) <= budget


@pytest.mark.slow
def test_a_device_that_comes_back_in_outage_pays_its_debt(tmp_path: Path) -> None:
    order = tiny(*PRIVATE, preset="fair-mlp", rounds=2)

    reported: list[int] = []

    def owes(honest: ClientApp, message: Message, context: Context) -> Message:
        reply = honest(message, context)
        if int(context.node_config["partition-id"]) == 0 and message.metadata.group_id == "1":
            answer = dict(reply.content[ANSWER])
            reply.content[ANSWER] = ConfigRecord({**answer, "status": "outage"})
            del reply.content["arrays"]
            reported.append(int(answer["spent"]))
        return reply

    held = federated(order, tmp_path / "run", HARDENED, owes)
    assert [_charged(held, 0)] == reported
    assert reported[0] > 2 * LEAST - 1


@pytest.mark.faults
@pytest.mark.parametrize("how", ["backup", "clone"])
def test_a_state_from_before_or_a_copy_of_it_hides_nothing(how: str, tmp_path: Path) -> None:
    """Device 1's state comes back from a backup before round 4, or rounds alternate between two copies of it.

    What really left the device is counted here, answer by answer; the rule of before charged less.
    """
    released, kept = [0], list[bytes]()

    def meddle(honest: ClientApp, message: Message, context: Context) -> Message:
        if int(context.node_config["partition-id"]) != 1 or message.metadata.message_type != "train.update":
            return honest(message, context)
        number = int(message.metadata.group_id)
        path = next((tmp_path / "run" / "devices" / "device-1").rglob("*.state"), None)
        if number == 3 or (number > 1 and how == "clone"):
            assert path is not None
            kept.append(path.read_bytes())
            path.write_bytes(kept.pop(0))
        before = _steps_in(path)
        reply = honest(message, context)
        path = next((tmp_path / "run" / "devices" / "device-1").rglob("*.state"))
        released[0] += _steps_in(path) - before
        if number == 0:
            kept.append(path.read_bytes())
        return reply

    held = federated(tiny(*PRIVATE, preset="fair-mlp", rounds=6), tmp_path / "run", HARDENED, meddle)
    assert released[0] >= 6 * LEAST
    assert _charged(held, 1) >= released[0]
    named = [int(record["state_restored"][1]) for record in held.records]
    assert named == ([0, 0, 0, 1, 1, 0] if how == "backup" else [0, 0, 1, 0, 1, 0])
    lines = [json.loads(line) for line in (tmp_path / "run" / "federation.jsonl").read_text("utf-8").splitlines()]
    restored = [(line["device"], line["round"]) for line in lines if line["event"] == "restored"]
    assert restored == [(1, number + 1) for number, flag in enumerate(named) if flag]
    assert _charged(held, 0) == _steps_in(next((tmp_path / "run" / "devices" / "device-0").rglob("*.state")))


def _steps_in(path: Path | None) -> int:
    """Steps that a state file says have left the device."""
    return 0 if path is None else int(unpack(path.read_bytes().split(b"\n", 1)[1][DIGEST:])["spent"])


@pytest.mark.faults
def test_a_device_that_reports_what_it_cannot_have_done_is_named_and_charged_at_its_worst(tmp_path: Path) -> None:
    def boasts(honest: ClientApp, message: Message, context: Context) -> Message:
        reply = honest(message, context)
        if int(context.node_config["partition-id"]) == 0 and message.metadata.group_id == "1":
            reply.content[ANSWER] = ConfigRecord({**dict(reply.content[ANSWER]), "spent": 2**40})
        return reply

    held = federated(tiny(*PRIVATE, preset="fair-mlp", rounds=2), tmp_path / "run", HARDENED, boasts)
    assert held.records[1]["update_fault"].tolist() == [int(Fault.IMPLAUSIBLE), 0, 0]
    assert not held.records[1]["delivered"][0]
    most = int(per_try(access_point(Experiment(tiny(*PRIVATE, preset="fair-mlp")), TRACK, None)).most_steps[0])
    assert [int(event.steps[event.devices == 0].sum()) for event in held.of("update")][1] == most


def _charged(held: Outcome, device: int) -> int:
    return sum(int(event.steps[event.devices == device].sum()) for event in held.of("update"))


def _client(tmp_path: Path, order: Order) -> tuple[DeviceClient, np.ndarray]:
    copies = access_point(Experiment(order), TRACK, None).start().copies.of_devices
    client = device_client(order, Settings(), TRACK, 0, load("mnist"), tmp_path / "own.state")
    return client, flat(named_arrays(jax.tree.map(lambda leaf: leaf[0], copies)))


def test_a_device_gives_no_gradient_that_the_scenario_does_not_have(tmp_path: Path) -> None:
    """Without an exchange there is no noise for it: whoever asks all the same gets nothing."""
    client, copy = _client(tmp_path, tiny(*PRIVATE, preset="fair-mlp"))
    task = Task("test", *TRACK, client.agreement, 0, Phase.GRADIENT, 0.0, -1, -1, copy, None)
    assert client.answer(task).status is Status.STALE
    assert client.answer(task).values is None
    assert not (tmp_path / "own.state").exists()


def test_a_device_does_not_overspend_within_a_round(tmp_path: Path) -> None:
    """Asked for the same round over and over, with a different mean gradient each time, it sends one answer."""
    client, copy = _client(tmp_path, tiny("privacy.noise_source=hardened", "privacy.max_epsilon=12", preset="fair-mlp"))
    first = client.answer(Task("test", *TRACK, client.agreement, 0, Phase.UPDATE, 0.0, -1, -1, copy, None))
    assert first.status is Status.SENT
    for push in (1.0, 2.0, 3.0):
        mean = np.full_like(copy, push)
        again = client.answer(Task("test", *TRACK, client.agreement, 0, Phase.UPDATE, 0.0, -1, -1, copy, mean))
        assert again.spent == first.spent
        assert again.values is not None
        assert np.array_equal(again.values, first.values)


def test_a_device_takes_no_more_than_the_ledger_leaves_it(tmp_path: Path) -> None:
    client, copy = _client(tmp_path, tiny(*PRIVATE, preset="fair-mlp"))
    task = Task("test", *TRACK, client.agreement, 0, Phase.UPDATE, 0.0, -1, 83, copy, None)
    assert client.answer(task).spent == 83
    little = dataclasses.replace(task, round=1, steps_left=0)
    assert client.answer(little).status is Status.RESTING


def test_a_proof_is_about_one_scheme_and_seed() -> None:
    scenario = tiny(*PRIVATE, preset="fair-mlp").scenario
    for schemes, seeds in ((("proposed", "max_power"), (0,)), (("proposed",), (0, 1))):
        with pytest.raises(ScenarioError, match="would each release the same data"):
            Agreement(Order(scenario, schemes, seeds, 1), Settings())


def test_a_federation_does_not_end_on_a_devices_word() -> None:
    with pytest.raises(ScenarioError, match=r"run.target_loss: only devices know their losses"):
        Agreement(tiny("run.target_loss=0.5"), Settings())
    with pytest.raises(ScenarioError, match=r"privacy.sensitivity_spread: 0.1 is for simulations"):
        Agreement(tiny("privacy.sensitivity_spread=0.1"), Settings())
    with pytest.raises(ScenarioError, match=r"run.global_accuracy: only devices know their losses"):
        Agreement(tiny("run.global_accuracy=0.5", "run.optimal_loss=0.1"), Settings())
