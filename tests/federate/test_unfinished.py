"""A round that was begun and never concluded is part of the account, at its worst; and two gradients are two."""

from __future__ import annotations

from pathlib import Path

import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fairwave.errors import FederationError, StoreError
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.flower_records import answer_from_records, task_from_records
from fairwave.federate.settings import Settings
from fairwave.privacy.accounting import epsilon_of
from fairwave.privacy.spending import Spending
from fairwave.runs.store import RunStore
from tests.federate.parties import TRACK, federated, tiny

PRIVATE = ("privacy.noise_source=hardened", "data.samples_per_device=600", "defences.use=[]")
STRICT = Settings(energy="model", deadline_s=30.0, quorum=1.0, patience=3)
KIND = (1.3, 16 / 600)


def _trains(message: Message) -> bool:
    return message.metadata.message_type.startswith("train")


def test_an_interrupted_round_is_counted_at_its_worst(tmp_path: Path) -> None:
    """Device 2 fails in round 2 three times: the others have answered each time, and nothing of it is stored."""
    spent: dict[int, int] = {}

    def meddle(honest: ClientApp, message: Message, context: Context) -> Message:
        device = int(context.node_config["partition-id"])
        if _trains(message) and device == 2 and task_from_records(message.content).round == 1:
            raise RuntimeError
        reply = honest(message, context)
        if _trains(message):
            spent[device] = answer_from_records(reply.content).spent
        return reply

    with pytest.raises(FederationError):
        federated(tiny(*PRIVATE, preset="fair-mlp", rounds=3), tmp_path / "run", STRICT, meddle)
    store = RunStore(tmp_path / "run")
    begun = store.unfinished()[TRACK]
    ledger = [event for _, event in store.releases(TRACK)]
    store.close()
    stored = Spending().add(event for event in ledger if event.sender == "device").accounts()
    assert stored[0].steps < spent[0]  # what the ledger alone would say is below the truth
    everything = [*(event for event in ledger if event.sender == "device"), *(event for _, event in begun)]
    accounts = Spending().add(everything).accounts()
    for device in (0, 1, 2):
        assert accounts[device].steps >= spent[device]
        assert accounts[device].epsilon(1e-5) >= epsilon_of({KIND: spent[device]}, 1e-5)
    assert {number for number, _ in begun} == {1}


def test_a_concluded_round_leaves_nothing_unfinished(tmp_path: Path) -> None:
    federated(tiny(*PRIVATE, preset="fair-mlp", rounds=1), tmp_path / "run", STRICT)
    store = RunStore(tmp_path / "run")
    assert store.unfinished() == {}
    store.close()


def test_a_file_that_a_crash_left_behind_is_not_counted_again(tmp_path: Path) -> None:
    kept: list[bytes] = []

    def watches(honest: ClientApp, message: Message, context: Context) -> Message:
        if _trains(message):
            kept.append((tmp_path / "run" / "asked-proposed-0.json").read_bytes())
        return honest(message, context)

    federated(tiny(*PRIVATE, preset="fair-mlp", rounds=1), tmp_path / "run", STRICT, watches)
    (tmp_path / "run" / "asked-proposed-0.json").write_bytes(kept[-1])
    store = RunStore(tmp_path / "run")
    assert store.unfinished() == {}
    (tmp_path / "run" / "asked-proposed-0.json").write_bytes(kept[-1][:-20])
    with pytest.raises(StoreError, match=r"asked-proposed-0\.json: damaged"):
        store.unfinished()
    store.close()


EXCHANGE = ("learning.gradient_exchange=true", "privacy.exchange_noise_multiplier=5", "privacy.max_epsilon=unset")
FAILING, LOSING, ROUND = 2, 0, 1
"""Device 2 fails once in the second round, so that its gradients are exchanged twice; device 0 may lose its state."""


class FailsOnce:
    """Lets one device fail in one gradient exchange, and another lose its state before the exchange is repeated."""

    def __init__(self, again: ClientApp | None = None, home: Path | None = None) -> None:
        self._again, self._home, self._failed = again, home, False
        self.gradients: list[float] = []

    def __call__(self, honest: ClientApp, message: Message, context: Context) -> Message:
        device, number = int(context.node_config["partition-id"]), message.metadata.group_id
        if message.metadata.message_type != "train.gradient" or number != str(ROUND):
            return honest(message, context)
        if device == FAILING and not self._failed:
            self._failed = True
            raise RuntimeError
        if device == LOSING and self.gradients and self._home is not None:
            for path in self._home.rglob(f"device-{LOSING}/**/*.state"):
                path.unlink()
        reply = (self._again or honest)(message, context)
        if device == LOSING:
            values = answer_from_records(reply.content).values
            assert values is not None
            self.gradients.append(float(values.sum()))
        return reply


def test_two_tries_with_a_lost_state_are_two_gradients(tmp_path: Path) -> None:
    order, home = tiny(*PRIVATE, *EXCHANGE, preset="fair-mlp", rounds=2), tmp_path / "run" / "devices"
    meddle = FailsOnce(app_of(lambda: Agreement(order, STRICT), home), home)
    held = federated(order, tmp_path / "run", STRICT, meddle)
    assert len(set(meddle.gradients)) == 2
    # Of device 2, which failed, nobody knows what became of the first question: that too may have been answered.
    assert [event.steps.tolist() for event in held.of("gradient")] == [[1, 1, 1], [2, 1, 2]]


def test_a_gradient_that_is_sent_again_is_one(tmp_path: Path) -> None:
    meddle = FailsOnce()
    held = federated(tiny(*PRIVATE, *EXCHANGE, preset="fair-mlp", rounds=2), tmp_path / "run", STRICT, meddle)
    assert len(meddle.gradients) == 2
    assert len(set(meddle.gradients)) == 1
    assert [event.steps.tolist() for event in held.of("gradient")] == [[1, 1, 1], [1, 1, 2]]
