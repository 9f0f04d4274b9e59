"""Answers that are no good: each is named, counted and left out, and the model is that of the good ones."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fairwave.errors import FederationError
from fairwave.federate import in_process, messaging
from fairwave.federate.flower_records import ANSWER, ARRAYS, FLAT, TELEMETRY
from fairwave.federate.log_reader import lines_of
from fairwave.learning.named_arrays import NamedArrays
from fairwave.runs.faults import Fault
from tests.federate.parties import REPEATABLE, Meddle, Outcome, close, federated, model_of_round, named, tiny

pytestmark = pytest.mark.faults

CULPRIT, ROUND = 1, 1
"""Device and, where there is one fault only, the round (from 0)."""

Change = Callable[[RecordDict], None]


def _arrays(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    def spoil(records: RecordDict) -> None:
        records[ARRAYS] = ArrayRecord({FLAT: Array(change(records[ARRAYS][FLAT].numpy()))})

    return spoil


def _reported(name: str, value: int | float | str) -> Change:
    def spoil(records: RecordDict) -> None:
        records[ANSWER] = ConfigRecord({**records[ANSWER], name: value})

    return spoil


def _at_one_place(value: float) -> Change:
    def change(array: np.ndarray) -> np.ndarray:
        changed = array.copy()
        changed.flat[-1] = value
        return changed

    return _arrays(change)


def _without(name: str) -> Change:
    def spoil(records: RecordDict) -> None:
        del records[name]

    return spoil


def _garbled(records: RecordDict) -> None:
    records[ARRAYS] = ArrayRecord({FLAT: Array("float32", (1,), "numpy.ndarray", b"no array")})


def _archived(records: RecordDict) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, a=np.zeros(3))
    records[ARRAYS] = ArrayRecord({FLAT: Array("float32", (3,), "numpy.ndarray", buffer.getvalue())})


def _by_layer(records: RecordDict) -> None:
    layers = named(records[ARRAYS][FLAT].numpy())
    records[ARRAYS] = ArrayRecord({name: Array(array) for name, array in layers.items()})


def _raise(records: RecordDict) -> None:
    raise RuntimeError("a device's program failed")


SPOILED: dict[str, tuple[Change, Fault]] = {
    "NaN": (_at_one_place(np.nan), Fault.NOT_FINITE),
    "infinity": (_at_one_place(np.inf), Fault.NOT_FINITE),
    "two axes": (_arrays(lambda array: array[..., None]), Fault.OTHER_SHAPE),
    "a value too few": (_arrays(lambda array: array[1:]), Fault.OTHER_SHAPE),
    "a value too many": (_arrays(lambda array: np.append(array, array[:1])), Fault.OTHER_SHAPE),
    "no axis": (_arrays(lambda array: np.asarray(array.sum())), Fault.OTHER_SHAPE),
    "another order of bytes": (_arrays(lambda array: array.astype(">f4")), Fault.OTHER_TYPE),
    "another type": (_arrays(lambda array: array.astype(np.float64)), Fault.OTHER_TYPE),
    "a huge norm": (_at_one_place(1e6), Fault.TOO_LONG),
    "no arrays": (_without(ARRAYS), Fault.UNREADABLE),
    "no answer record": (_without(ANSWER), Fault.UNREADABLE),
    "an array for each layer": (_by_layer, Fault.UNREADABLE),
    "bytes that are no array": (_garbled, Fault.UNREADABLE),
    "a word for a number": (_reported("round", "two"), Fault.UNREADABLE),
    "an unknown status": (_reported("status", "fine"), Fault.UNREADABLE),
    "another version": (_reported("version", 99), Fault.UNREADABLE),
    "another round": (_reported("round", 0), Fault.OTHER_ROUND),
    "more examples": (_reported("num-examples", 6_000), Fault.OTHER_EXAMPLES),
    "noise that is not a number": (_reported("reported-noise-std", float("nan")), Fault.NOT_FINITE),
    "negative noise": (_reported("reported-noise-std", -1.0), Fault.UNREADABLE),
    "a state with a name beyond 64 bits": (_reported("state-name", 2**63), Fault.UNREADABLE),
    "a negative number of steps": (_reported("spent", -1), Fault.UNREADABLE),
    "an unknown reason": (_reported("reason", "the record [0.25, 0.5] is odd"), Fault.UNREADABLE),
    "an archive for an array": (_archived, Fault.UNREADABLE),
    "a refusal": (_reported("status", "failed"), Fault.FAILED),
    "an exception": (_raise, Fault.FAILED),
}


class Saboteur:
    """Spoils one device's answers in some rounds of one exchange; remembers every good update that was sent."""

    def __init__(self, phase: str, *spoilers: Change) -> None:
        """The first spoils round 1 (from 0), the next round 2, and so on."""
        self._phase, self._spoilers = phase, dict(enumerate(spoilers, start=ROUND))
        self.updates: dict[int, dict[int, NamedArrays]] = {}

    def __call__(self, honest: ClientApp, message: Message, context: Context) -> Message:
        reply, number = honest(message, context), int(message.metadata.group_id) if _trains(message) else -1
        device = int(context.node_config["partition-id"])
        spoiled = device == CULPRIT and message.metadata.message_type == f"train.{self._phase}"
        if spoiled and number in self._spoilers:
            self._spoilers[number](reply.content)
            return reply
        if message.metadata.message_type == "train.update":
            self.updates.setdefault(number, {})[device] = named(reply.content[ARRAYS][FLAT].numpy())
        return reply


def _trains(message: Message) -> bool:
    return message.metadata.message_type.startswith("train")


def _mean_of_the_good(before: NamedArrays, updates: dict[int, NamedArrays]) -> NamedArrays:
    """The paper's aggregation, in plain NumPy."""
    good = list(updates.values())
    return {name: before[name] + np.mean([each[name] for each in good], axis=0, dtype=np.float64) for name in before}


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Saboteur, Outcome]:
    """A federation in which every round but the first and the last has a fault."""
    folder, saboteur = tmp_path_factory.mktemp("spoiled") / "run", Saboteur("update", *(s for s, _ in SPOILED.values()))
    return folder, saboteur, federated(tiny(rounds=len(SPOILED) + 2), folder, meddle=saboteur)


@pytest.mark.parametrize("name", SPOILED)
def test_a_bad_update_is_counted_and_left_out(name: str, spoiled: tuple[Path, Saboteur, Outcome]) -> None:
    folder, saboteur, held = spoiled
    number, fault = ROUND + list(SPOILED).index(name), SPOILED[name][1]
    record, before = held.records[number], held.records[number - 1]
    assert record["update_fault"].tolist() == [0, int(fault), 0]
    assert record["delivered"].tolist() == [True, False, True]
    assert record["deviation"][CULPRIT] == before["deviation"][CULPRIT]
    assert set(saboteur.updates[number]) == {0, 2}
    start = model_of_round(folder, number)
    assert close(model_of_round(folder, number + 1), _mean_of_the_good(start, saboteur.updates[number]))


def test_after_all_its_faults_a_device_is_welcome_again(spoiled: tuple[Path, Saboteur, Outcome]) -> None:
    folder, saboteur, held = spoiled
    for number in (0, len(held.records) - 1):
        assert held.records[number]["delivered"].all()
        assert not held.records[number]["update_fault"].any()
    last = len(held.records) - 1
    start = model_of_round(folder, last)
    assert close(model_of_round(folder, last + 1), _mean_of_the_good(start, saboteur.updates[last]))


def test_a_bad_gradient_takes_its_device_out_of_the_round(tmp_path: Path) -> None:
    faults = [SPOILED[name] for name in ("NaN", "two axes", "an exception")]
    saboteur = Saboteur("gradient", *(spoil for spoil, _ in faults))
    held = federated(tiny(rounds=5), tmp_path / "run", meddle=saboteur)
    for number, (_, fault) in enumerate(faults, start=ROUND):
        assert held.records[number]["gradient_fault"].tolist() == [0, int(fault), 0]
        assert set(saboteur.updates[number]) == {0, 2}
        start = model_of_round(tmp_path / "run", number)
        expected = _mean_of_the_good(start, saboteur.updates[number])
        assert close(model_of_round(tmp_path / "run", number + 1), expected)
    assert held.records[4]["delivered"].all()


def test_without_the_checks_the_model_would_be_spoiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite can fail: an access point that trusts every answer takes a long update in."""
    monkeypatch.setattr(messaging, "fault_in", lambda answer, expected: Fault.NONE)
    saboteur = Saboteur("update", SPOILED["a huge norm"][0])
    federated(tiny(), tmp_path / "run", meddle=saboteur)
    before = model_of_round(tmp_path / "run", ROUND)
    after = model_of_round(tmp_path / "run", ROUND + 1)
    assert not close(after, _mean_of_the_good(before, saboteur.updates[ROUND]), tolerance=1.0)


def test_silence_until_the_deadline_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = in_process.LocalGrid.pull_messages

    def deaf(self: in_process.LocalGrid, message_ids: list[str]) -> list[Message]:
        return [reply for reply in honest(self, message_ids) if not _is_culprits(reply)]

    monkeypatch.setattr(in_process.LocalGrid, "pull_messages", deaf)
    settings = REPEATABLE.model_copy(update={"deadline_s": 2.0})
    store = federated(tiny(), tmp_path / "run", settings)
    stored = store.records
    assert stored[ROUND]["gradient_fault"].tolist() == [0, int(Fault.NO_ANSWER), 0]
    assert float(stored[ROUND]["gradient_exchange_s"]) >= 2.0


def _is_culprits(reply: Message) -> bool:
    return reply.metadata.group_id == str(ROUND) and reply.metadata.src_node_id == 1_000 + CULPRIT


def test_a_device_that_is_away_for_a_round_is_named_and_does_not_count_as_one_that_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, away = in_process.LocalGrid.get_node_ids, [False]

    def come_and_go(honest: ClientApp, message: Message, context: Context) -> Message:
        if _trains(message):
            away[0] = int(message.metadata.group_id) == ROUND - 1
        return honest(message, context)

    def connected(self: in_process.LocalGrid) -> list[int]:
        return [node for node in there(self) if not (away[0] and node == 1_000 + CULPRIT)]

    monkeypatch.setattr(in_process.LocalGrid, "get_node_ids", connected)
    held = federated(tiny(), tmp_path / "run", meddle=come_and_go)
    assert held.records[ROUND]["participating"].tolist() == [True, False, True]
    lines = list(lines_of(tmp_path / "run"))
    assert [line["answered"] for line in lines if line["event"] == "round"] == [[0, 1, 2], [0, 2], [0, 1, 2]]
    told = [(line["event"], line["device"]) for line in lines if line["event"] in ("joined", "left")]
    assert told == [("joined", 0), ("joined", 1), ("joined", 2), ("left", CULPRIT), ("joined", CULPRIT)]


def test_too_few_answers_stop_the_federation_and_lose_nothing(tmp_path: Path) -> None:
    def all_but_one_fail(honest: ClientApp, message: Message, context: Context) -> Message:
        its = message.metadata.message_type == "train.update" and message.metadata.group_id == str(ROUND)
        if its and int(context.node_config["partition-id"]) > 0:
            raise RuntimeError
        return honest(message, context)

    meddle: Meddle = all_but_one_fail
    with pytest.raises(FederationError, match=r"round 2: fewer than 50% .* \(failed from device 1, 2\); every stored"):
        federated(tiny(), tmp_path / "run", meddle=meddle)
    whole = federated(tiny(), tmp_path / "whole")
    resumed = federated(tiny(), tmp_path / "run")
    assert len(resumed.records) == 3
    assert close(model_of_round(tmp_path / "run", 3), model_of_round(tmp_path / "whole", 3), tolerance=0.0)
    assert len(whole.records) == 3


def test_telemetry_of_the_wrong_kind_is_ignored(tmp_path: Path) -> None:
    def strange(records: RecordDict) -> None:
        records[TELEMETRY] = ConfigRecord({"energy_j": "much"})

    store = federated(tiny(), tmp_path / "run", meddle=Saboteur("update", strange))
    stored = store.records
    assert not stored[ROUND]["update_fault"].any()
    assert np.isnan(stored[ROUND]["energy_j"][CULPRIT])
