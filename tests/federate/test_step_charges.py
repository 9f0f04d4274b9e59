"""The ledger of a proof never falls below what has left a device, whatever goes wrong."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwave.data.sources import load
from fairwave.errors import ScenarioError
from fairwave.federate.agreement import Agreement
from fairwave.federate.client import DeviceClient
from fairwave.federate.client_app import app_of
from fairwave.federate.flower_records import ANSWER
from fairwave.federate.protocol import Answer, Phase, Status, Task
from fairwave.federate.settings import Settings
from fairwave.federate.setup import access_point, device_client
from fairwave.federate.step_charges import PerTry, StepCharges, at_worst
from fairwave.learning.named_arrays import named_arrays
from fairwave.runs.experiment import Experiment
from fairwave.runs.order import Order, Track
from tests.federate.parties import Outcome, federated, flat, tiny

LEAST, MOST = 80, 120
PER_TRY = PerTry(np.array([LEAST]), np.array([MOST]), gradients=1)
HARDENED = Settings(quorum=0.3, wait_s=1.0, patience=1)
PRIVATE = ("privacy.noise_source=hardened", "privacy.max_epsilon=unset")
TRACK = Track("proposed", 0)

Event = st.tuples(st.sampled_from(["answer", "silent", "failed try", "lost state"]), st.integers(LEAST, MOST))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(Event, min_size=1, max_size=4), min_size=1, max_size=8))
def test_the_charge_is_never_below_the_truth(rounds: list[list[tuple[str, int]]]) -> None:
    """One device lives through any mixture of good answers, silence, tries that failed, and lost client states.

    Each try releases a gradient and then steps; two tries with a state lost in between are two gradients.
    """
    charges, charged, released = StepCharges(1), np.zeros(2, np.int64), np.zeros(2, np.int64)
    state_name, told, fresh = 1, np.zeros(2, np.int64), True
    for tries in rounds:
        answer = None
        for what, steps in tries:
            if what == "lost state" and not fresh:  # between two tries, or between rounds
                state_name, told, fresh = state_name + 1, np.zeros(2, np.int64), True
            one_try = np.array([steps, 1])
            released, told, fresh = released + one_try, told + one_try, False
            if what in ("answer", "lost state"):
                answer = Answer(0, Status.SENT, spent=int(told[0]), gradients=int(told[1]), state_name=state_name)
            else:
                answer = None
        charge = charges.charge({} if answer is None else {0: answer}, {0: len(tries)}, PER_TRY)
        charged += (charge.steps[0], charge.gradients[0])
        assert (charged >= released).all()
        charges = StepCharges(1, [charges.arrays()])  # as after a restart


def test_a_quiet_federation_is_charged_exactly() -> None:
    charges, charged, spent = StepCharges(1), np.zeros(2, np.int64), 0
    for number in range(1, 6):
        spent += 87
        answer = Answer(0, Status.SENT, spent=spent, gradients=number, state_name=7)
        charge = charges.charge({0: answer}, {0: 1}, PER_TRY)
        charged += (charge.steps[0], charge.gradients[0])
    assert charged.tolist() == [5 * 87, 5]


def test_what_was_missed_is_charged_with_the_next_answer_whatever_that_is() -> None:
    for status in Status:
        charges = StepCharges(1)
        reported = Answer(0, Status.SENT, spent=90, gradients=1, state_name=7)
        charges.charge({0: reported}, {0: 1}, PER_TRY)
        late = Answer(1, status, spent=250, gradients=3, state_name=7)
        charge = charges.charge({0: late}, {0: 1}, PER_TRY)
        assert (charge.steps[0], charge.gradients[0]) == (160, 2)


LateEvent = st.tuples(st.sampled_from(["answer", "late", "late, lost state", "silent"]), st.integers(LEAST, MOST))


@settings(max_examples=300, deadline=None)
@given(st.lists(LateEvent, min_size=1, max_size=10))
def test_late_answers_are_charged_once_and_never_below_the_truth(rounds: list[tuple[str, int]]) -> None:
    """A late answer is found in the round after, in which its device is not asked. At most the worst of every try."""
    charges, charged, released, asked = StepCharges(1), 0, 0, 0
    state_name, told = 1, 0
    for what, steps in rounds:
        if what == "late, lost state":
            state_name, told = state_name + 1, 0
        released, told, asked = released + steps, told + steps, asked + 1
        answer = Answer(0, Status.SENT, spent=told, gradients=asked, state_name=state_name)
        charged += int(charges.charge({0: answer} if what == "answer" else {}, {0: 1}, PER_TRY).steps[0])
        if what.startswith("late"):
            charges.answered_late(0, answer)
            charged += int(charges.charge({}, {}, PER_TRY).steps[0])
        assert released <= charged <= asked * MOST + (asked * MOST if "silent" in dict(rounds) else 0)
        charges = StepCharges(1, [charges.arrays()])  # as after a restart


def test_a_state_that_is_first_heard_of_late_is_not_charged_twice() -> None:
    charges = StepCharges(1)
    first = charges.charge({}, {0: 1}, PER_TRY).steps[0]
    charges.answered_late(0, Answer(0, Status.SENT, spent=90, gradients=1, state_name=7))
    second = charges.charge({0: Answer(2, Status.SENT, spent=177, gradients=2, state_name=7)}, {0: 1}, PER_TRY)
    assert (first, second.steps[0], second.gradients[0]) == (MOST, 87, 1)


def test_whoever_reports_nothing_is_charged_the_least() -> None:
    mute = Answer(0, Status.SENT)
    charge = StepCharges(1).charge({0: mute}, {0: 1}, PER_TRY)
    assert (charge.steps[0], charge.gradients[0]) == (LEAST, 1)


def test_tries_whose_end_is_unknown_are_taken_at_their_worst() -> None:
    of_three = PerTry(np.full(3, LEAST), np.array([MOST, 2 * MOST, MOST]), gradients=1)
    worst = at_worst({1: 2}, of_three)
    assert (worst.steps.tolist(), worst.gradients.tolist()) == ([0, 4 * MOST, 0], [0, 2, 0])


def _robbed(order: Order, home: Path, device: int) -> ClientApp:
    """The program of a device that has lost all that it had written down, its account too."""
    shutil.rmtree(home / f"device-{device}", ignore_errors=True)
    return app_of(lambda: Agreement(order, HARDENED), home)


@pytest.mark.slow
def test_a_lost_client_state_hides_nothing(tmp_path: Path) -> None:
    """Device 0 loses its client state before every round: each new one begins at 0, and the ledger does not."""
    order = tiny(*PRIVATE, preset="fair", rounds=3)
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
    order = tiny("privacy.noise_source=hardened", "privacy.max_epsilon=12", preset="fair", rounds=8)

    def forgets(honest: ClientApp, message: Message, context: Context) -> Message:
        if message.metadata.message_type == "train.update":
            honest = _robbed(order, tmp_path / "run" / "devices", int(context.node_config["partition-id"]))
        return honest(message, context)

    held = federated(order, tmp_path / "run", HARDENED, forgets)
    budget = int(access_point(Experiment(order), TRACK, None).enforced.budget[0])
    assert budget - LEAST < _charged(held, 0) <= budget


@pytest.mark.slow
def test_a_device_that_comes_back_in_outage_pays_its_debt(tmp_path: Path) -> None:
    order = tiny(*PRIVATE, preset="fair", rounds=2)

    def owes(honest: ClientApp, message: Message, context: Context) -> Message:
        reply = honest(message, context)
        if int(context.node_config["partition-id"]) == 0 and message.metadata.group_id == "1":
            answer = dict(reply.content[ANSWER])
            reply.content[ANSWER] = ConfigRecord({**answer, "status": "outage", "spent": 500})
            del reply.content["arrays"]
        return reply

    held = federated(order, tmp_path / "run", HARDENED, owes)
    assert _charged(held, 0) == 500


def _charged(held: Outcome, device: int) -> int:
    return sum(int(event.steps[event.devices == device].sum()) for event in held.of("update"))


def _client(tmp_path: Path, order: Order) -> tuple[DeviceClient, np.ndarray]:
    copies = access_point(Experiment(order), TRACK, None).start().copies.of_devices
    client = device_client(order, Settings(), TRACK, 0, load("mnist"), tmp_path / "own.state")
    return client, flat(named_arrays(jax.tree.map(lambda leaf: leaf[0], copies)))


def test_a_device_gives_no_gradient_that_the_scenario_does_not_have(tmp_path: Path) -> None:
    """Without an exchange there is no noise for it: whoever asks all the same gets nothing."""
    client, copy = _client(tmp_path, tiny(*PRIVATE, preset="fair"))
    task = Task("test", *TRACK, client.agreement, 0, Phase.GRADIENT, 0.0, -1, -1, copy, None)
    assert client.answer(task).status is Status.STALE
    assert client.answer(task).values is None
    assert not (tmp_path / "own.state").exists()


def test_a_device_does_not_overspend_within_a_round(tmp_path: Path) -> None:
    """Asked for the same round over and over, with a different mean gradient each time, it sends one answer."""
    client, copy = _client(tmp_path, tiny("privacy.noise_source=hardened", "privacy.max_epsilon=12", preset="fair"))
    first = client.answer(Task("test", *TRACK, client.agreement, 0, Phase.UPDATE, 0.0, -1, -1, copy, None))
    assert first.status is Status.SENT
    for push in (1.0, 2.0, 3.0):
        mean = np.full_like(copy, push)
        again = client.answer(Task("test", *TRACK, client.agreement, 0, Phase.UPDATE, 0.0, -1, -1, copy, mean))
        assert again.spent == first.spent
        assert again.values is not None
        assert np.array_equal(again.values, first.values)


def test_a_device_takes_no_more_than_the_ledger_leaves_it(tmp_path: Path) -> None:
    client, copy = _client(tmp_path, tiny(*PRIVATE, preset="fair"))
    task = Task("test", *TRACK, client.agreement, 0, Phase.UPDATE, 0.0, -1, 83, copy, None)
    assert client.answer(task).spent == 83
    little = dataclasses.replace(task, round=1, steps_left=0)
    assert client.answer(little).status is Status.RESTING


def test_a_proof_is_about_one_scheme_and_seed() -> None:
    scenario = tiny(*PRIVATE, preset="fair").scenario
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
