"""Updates in 8 bits on the wire: what is refused, what plans charge, and that a device sends the same bits again."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message
from flwr.clientapp import ClientApp

from fairwave.data.sources import load
from fairwave.federate.answer_checks import Expected, fault_in
from fairwave.federate.flower_records import ARRAYS, FLAT
from fairwave.federate.protocol import Answer, Phase, Status, Task, sayable
from fairwave.federate.sent_values import received, sent_form
from fairwave.federate.setup import device_client
from fairwave.learning.rounding import NOT_FINITE, rounded
from fairwave.report.federation_section import federation_section
from fairwave.report.tables import pieces_html
from fairwave.runs.faults import Fault
from fairwave.runs.open_run import open_run
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from tests.federate.parties import LIKE, REPEATABLE, TRACK, federated, tiny

EIGHT = "learning.update_bits=8"
VALUES = np.random.default_rng(5).normal(size=7_850).astype(np.float32)
SENT = np.asarray(rounded(jax.numpy.asarray(VALUES), jax.random.key(1)))
STEPS = slice(7_850, None)
EXPECTED = Expected(1, 60, LIKE, 1e3, update_bits=8)


def _changed(place: slice | int, value: int) -> np.ndarray:
    changed = SENT.copy()
    changed[place] = value
    return changed


HOSTILE = {
    "the values in single precision": (VALUES, Fault.OTHER_SHAPE),
    "no steps": (SENT[:7_850], Fault.OTHER_SHAPE),
    "a step too few": (SENT[:-1], Fault.OTHER_SHAPE),
    "a step too many": (np.append(SENT, SENT[-1:]), Fault.OTHER_SHAPE),
    "two axes": (SENT[None], Fault.OTHER_SHAPE),
    "no axis": (SENT[0].reshape(()), Fault.OTHER_SHAPE),
    "bytes without a sign": (SENT.view(np.uint8), Fault.OTHER_TYPE),
    "numbers of 16 bits": (SENT.astype(np.int16), Fault.OTHER_TYPE),
    "single precision of that length": (SENT.astype(np.float32), Fault.OTHER_TYPE),
    "truths": (SENT.astype(bool), Fault.OTHER_TYPE),
    "objects": (SENT.astype(object), Fault.OTHER_TYPE),
    "the least step that a byte holds": (_changed(STEPS, -128), Fault.UNREADABLE),
    "a step below all": (_changed(-1, -127), Fault.UNREADABLE),
    "a step above all": (_changed(-1, 123), Fault.UNREADABLE),
    "the largest step that a byte holds": (_changed(STEPS, 127), Fault.UNREADABLE),
    "a value that is not finite": (_changed(4_000, NOT_FINITE), Fault.NOT_FINITE),
    "values beyond single precision": (
        np.append(_changed(0, 127)[:7_850], np.full(31, 122, np.int8)),
        Fault.NOT_FINITE,
    ),
    "a huge norm": (_changed(STEPS, 10), Fault.TOO_LONG),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_named_and_refused(name: str) -> None:
    sent, fault = HOSTILE[name]
    assert fault_in(Answer(1, Status.SENT, SENT, 60), EXPECTED) is Fault.NONE
    assert fault_in(Answer(1, Status.SENT, sent, 60), EXPECTED) is fault


@pytest.mark.parametrize("name", [name for name, (_, fault) in HOSTILE.items() if fault < Fault.NOT_FINITE])
def test_a_device_does_not_send_them(name: str) -> None:
    assert sayable(Answer(1, Status.SENT, SENT, 60), LIKE, 8)
    assert not sayable(Answer(1, Status.SENT, HOSTILE[name][0], 60), LIKE, 8)


def test_what_arrives_is_the_value_up_to_a_step() -> None:
    assert sent_form(LIKE, 8) == (SENT.size, SENT.dtype)
    values = received(SENT, LIKE, 8)
    assert values.dtype == np.float32
    steps = np.repeat(2.0 ** SENT[STEPS].astype(float), 256)[:7_850]
    assert (np.abs(values - VALUES) < steps).all()


class Tapped:
    """Keeps every array that devices sent; may spoil one device's steps in the second round."""

    def __init__(self, culprit: int | None = None) -> None:
        self._culprit = culprit
        self.kinds: set[tuple[str, tuple[int, ...]]] = set()

    def __call__(self, honest: ClientApp, message: Message, context: Context) -> Message:
        reply, about = honest(message, context), message.metadata
        if about.message_type.startswith("train"):
            sent = reply.content[ARRAYS][FLAT].numpy()
            self.kinds.add((str(sent.dtype), sent.shape))
            mine = context.node_config["partition-id"] == self._culprit
            if mine and about.group_id == "1" and about.message_type == "train.update":
                spoiled = sent.copy()
                spoiled[STEPS] = 127
                reply.content[ARRAYS] = ArrayRecord({FLAT: Array(spoiled)})
        return reply


def test_gradients_and_updates_travel_as_bytes_and_a_bad_one_is_left_out(tmp_path: Path) -> None:
    tapped = Tapped(culprit=1)
    held = federated(tiny(EIGHT), tmp_path / "run", meddle=tapped)
    assert tapped.kinds == {("int8", (7_850 + 31,))}
    assert held.records[1]["update_fault"].tolist() == [0, int(Fault.UNREADABLE), 0]
    assert held.records[2]["delivered"].all()


def test_a_device_that_is_asked_again_sends_the_same_bytes(tmp_path: Path) -> None:
    """The answer is kept as it was sent, so that a restart rounds nothing anew."""
    order = tiny(EIGHT, "privacy.noise_source=hardened", "privacy.max_epsilon=unset", preset="fair-mlp")
    settings = REPEATABLE.model_copy(update={"noise": "hardened"})
    copy, sent = np.zeros(7_850, np.float32), []
    for _ in range(2):
        client = device_client(order, settings, TRACK, 0, load("mnist"), tmp_path / "own.state")
        answer = client.answer(Task("0" * 16, *TRACK, client.agreement, 0, Phase.UPDATE, 0.0, -1, -1, copy, None))
        assert answer.values is not None
        assert answer.values.dtype == np.int8
        sent.append((answer.values.tobytes(), answer.spent))
    assert sent[0] == sent[1]


SMALL = ("radio.payload_bits=unset", "radio.charge_gradient_upload=true")
FEW = ("cell.num_devices=2", "data.samples_per_device=200")


@pytest.mark.parametrize(
    ("preset", "overrides"),
    [
        ("small", SMALL),
        pytest.param("fair-mlp", ("defences.use=[]", "privacy.max_epsilon=unset"), marks=pytest.mark.slow),
    ],
)
def test_plans_charge_what_is_sent(preset: str, overrides: tuple[str, ...], tmp_path: Path) -> None:
    """Within 15 %; in single precision, the wire carries some four times what plans charge."""
    ratio = {}
    for bits in (8, 32):
        scenario = load_scenario(preset, [*FEW, *overrides, f"learning.update_bits={bits}"])
        held = federated(Order.checked(scenario, ("proposed",), (0,), 1), tmp_path / str(bits)).records[0]
        assert held["delivered"].all()
        ratio[bits] = held["uplink_bytes"] / held["planned_uplink_bytes"]
    assert (np.abs(ratio[8] - 1.0) < 0.15).all()
    assert (ratio[32] > 3.9).all()
    page = pieces_html(federation_section(open_run(tmp_path / "8").results))
    assert "on the wire (bytes), mean" in page
    assert f">{ratio[8].mean():.2f}</td>" in page
