"""Whether a client keeps to the protocol: questions as an access point asks them, and what must come back.

The questions go through a function, so that they can be asked over a network or of a client in the same process.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from flwr.app import ConfigRecord, RecordDict

from fairwave.double_precision import double_precision
from fairwave.federate.agreement import Agreement
from fairwave.federate.answer_checks import Expected, fault_in
from fairwave.federate.client_data import agreed_counts
from fairwave.federate.connections import GREETING
from fairwave.federate.device_keys import KnownKeys
from fairwave.federate.flower_records import (
    ANSWER,
    ARRAYS,
    HELLO,
    TASK,
    TELEMETRY,
    Unreadable,
    answer_from_records,
    task_to_records,
    value,
)
from fairwave.federate.protocol import VERSION, Answer, Phase, Reason, Status, Task, new_ask
from fairwave.federate.task_checks import agreement_digest
from fairwave.keys import Stream, device_key, run_key
from fairwave.learning.models import model_of
from fairwave.learning.named_arrays import flattened, named_arrays
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.faults import Fault

Ask: TypeAlias = Callable[[str, RecordDict], RecordDict | None]
"""Sends a content with a message type to the client; what comes back, or None if nothing does."""


class Broken(Exception):
    """A rule that the client has broken; the text says how."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One rule, and how it was broken; empty if it was kept."""

    rule: str
    broken: str = ""


class Conformance:
    """The questions to one client, in order: later ones stand on what earlier ones have begun."""

    @double_precision()
    def __init__(self, agreement: Agreement, device: int, keys: KnownKeys | None, ask: Ask) -> None:
        """Without known keys, the signature is not checked."""
        self._device, self._keys, self._send = device, keys, ask
        self._track = next(agreement.order.tracks())
        scenario = agreement.order.seeded(self._track.seed)
        self._exchanges = scenario.learning.gradient_exchange
        first = device_key(run_key(scenario.run.seed), 0, Stream.INITIAL_MODEL, 0)
        self._like = named_arrays(model_of(scenario.learning).init(first))
        self._model = flattened(self._like, self._like)
        examples = int(agreed_counts(scenario, np.zeros(0))[device])
        self._expected = Expected(0, examples, self._like, agreement.settings.max_norm, scenario.learning.update_bits)
        self._task = Task(
            federation=secrets.token_hex(8),
            scheme=self._track.scheme,
            seed=self._track.seed,
            agreement=agreement_digest(scenario, self._track.scheme, agreement.settings.noise),
            round=0,
            phase=Phase.GRADIENT if self._exchanges else Phase.UPDATE,
            deviation=0.0,
            scored_round=-1,
            steps_left=-1,
            copy=self._model,
            mean_gradient=None,
        )
        self._good: list[Answer] = []
        self._counts = mode_of(scenario.privacy).counts_steps

    def run(self) -> Iterator[Check]:
        """Ask everything; a rule that is broken does not keep the others from being checked."""
        for rule, check in self._rules().items():
            try:
                check()
            except Broken as broken:
                yield Check(rule, str(broken))
            else:
                yield Check(rule)

    def _rules(self) -> dict[str, Callable[[], None]]:
        rules: dict[str, Callable[[], None]] = {
            "it introduces itself, and signs a question that was never asked before": self._introduces_itself,
            "a task in another version of the protocol is not answered": lambda: self._refuses(
                task_of_version(self._task, VERSION + 1), Reason.UNREADABLE
            ),
            "a task without its record is not answered": lambda: self._refuses(RecordDict(), Reason.UNREADABLE),
            "a copy of another length is refused": lambda: self._refuses_copy(self._model[:-1]),
            "a copy of another type is refused": lambda: self._refuses_copy(self._model.astype(np.float64)),
            "a copy that is not finite is refused": lambda: self._refuses_copy(_with(self._model, np.nan)),
            "a copy that is too long to be honest is refused": lambda: self._refuses_copy(_with(self._model, 1e30)),
            "a deviation outside of 0 and 1 is refused": lambda: self._refuses(
                self._asked(deviation=1.5), Reason.REFUSED_COPY
            ),
            "a task of another agreement is refused": lambda: self._refuses(
                self._asked(agreement=bytes(16)), Reason.OTHER_AGREEMENT
            ),
            "a task of a federation with a strange name is refused": lambda: self._refuses(
                self._asked(federation="../strange"), Reason.OTHER_AGREEMENT
            ),
            "a round is not entered in its second exchange": self._enters_at_the_beginning,
            "the first exchange of a round is answered": lambda: self._answers(self._task),
            "the same question gets the same bits": lambda: self._repeats(self._task),
        }
        if self._exchanges:
            rules["the second exchange is answered with an update"] = lambda: self._answers(self._second())
            rules["the same second question gets the same bits"] = lambda: self._repeats(self._second())
        rules["the next round is answered"] = lambda: self._answers(dataclasses.replace(self._task, round=1))
        rules["a round that is over is not answered again"] = lambda: self._is_stale(self._task)
        rules["what it says has left it never becomes less"] = self._counts_grow
        return rules

    def _second(self) -> Task:
        return dataclasses.replace(self._task, phase=Phase.UPDATE, copy=None, mean_gradient=np.zeros_like(self._model))

    def _asked(self, **changes: object) -> RecordDict:
        return task_to_records(dataclasses.replace(self._task, **changes))  # type: ignore[arg-type]

    def _introduces_itself(self) -> None:
        question = secrets.token_bytes(16)
        greeting = RecordDict({HELLO: ConfigRecord({"version": VERSION, "question": question})})
        reply = self._send(GREETING, greeting)
        fields = None if reply is None else reply.get(HELLO)
        if not isinstance(fields, ConfigRecord):
            raise Broken(f"no reply with a record {HELLO}")
        try:
            said = value(fields, "version", int), value(fields, "partition-id", int)
            signature = value(fields, "signature", bytes)
        except Unreadable as error:
            raise Broken(str(error)) from None
        if said != (VERSION, self._device):
            raise Broken(f"version and device are {said}, not {(VERSION, self._device)}")
        if self._keys is not None and not self._keys.vouches(self._device, question, signature):
            raise Broken("the signature is not one of the device's key over the question")

    def _answer(self, content: RecordDict, phase: Phase) -> Answer:
        reply = self._send(f"train.{phase}", content)
        if reply is None:
            raise Broken("no reply")
        strange = set(reply) - {ANSWER, ARRAYS, TELEMETRY}
        if strange:
            raise Broken(f"records that nobody agreed on: {', '.join(sorted(strange))}")
        try:
            return answer_from_records(reply)
        except Unreadable as error:
            raise Broken(str(error)) from None

    def _refuses(self, content: RecordDict, *reasons: Reason) -> None:
        answer = self._answer(content, self._task.phase)
        if answer.status is not Status.FAILED or answer.reason not in reasons:
            raise Broken(f"status '{answer.status}' and reason '{answer.reason}', not 'failed' and '{reasons[0]}'")
        if answer.values is not None:
            raise Broken("arrays with a refusal")

    def _refuses_copy(self, copy: np.ndarray) -> None:
        self._refuses(self._asked(copy=copy), Reason.REFUSED_COPY)

    def _enters_at_the_beginning(self) -> None:
        if self._exchanges:
            self._is_stale(self._second())

    def _is_stale(self, task: Task) -> None:
        answer = self._answer(_asked_anew(task), task.phase)
        if answer.status is not Status.STALE or answer.values is not None:
            raise Broken(f"status '{answer.status}', not 'stale'")

    def _answers(self, task: Task) -> None:
        answer = self._answer(_asked_anew(task), task.phase)
        fault = fault_in(answer, dataclasses.replace(self._expected, round=task.round))
        if fault is not Fault.NONE:
            raise Broken(f"the answer is no good: {fault.name.lower()} (reason '{answer.reason}')")
        if answer.status not in (Status.SENT, Status.OUTAGE, Status.LOST):
            raise Broken(f"status '{answer.status}'")
        self._good.append(answer)

    def _repeats(self, task: Task) -> None:
        if not self._good:
            raise Broken("there is no good answer to compare with")
        again, before = self._answer(_asked_anew(task), task.phase), self._good[-1]
        if again.status is not before.status or not _same(again.values, before.values):
            raise Broken("the answers differ: that would be a second release of the same data")

    def _counts_grow(self) -> None:
        for earlier, later in zip(self._good, self._good[1:], strict=False):
            if later.spent < earlier.spent or later.gradients < earlier.gradients:
                raise Broken("it reports fewer steps or gradients than before")
            if self._counts and _answered(later) <= _answered(earlier):
                raise Broken("it does not count the questions that it has answered")
            if later.state_name != earlier.state_name:
                raise Broken("it changes the name of its state")


def _asked_anew(task: Task) -> RecordDict:
    """A task as another question, even if it asks for the same."""
    return task_to_records(dataclasses.replace(task, ask=new_ask()))


def _answered(answer: Answer) -> int:
    return answer.update_asks + answer.gradient_asks


def task_of_version(task: Task, version: int) -> RecordDict:
    """A task that says that it is of some version of the protocol."""
    records = task_to_records(task)
    fields = records[TASK]
    assert isinstance(fields, ConfigRecord)
    fields["version"] = version
    return records


def _with(flat: np.ndarray, number: float) -> np.ndarray:
    changed = flat.copy()
    changed[0] = number
    return changed


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()
