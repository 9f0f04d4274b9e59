"""Tasks and answers as Flower's records, and back. Nothing that arrives is trusted to have the agreed form."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fairwave.federate.protocol import VERSION, Answer, Phase, Reason, Status, Task

TASK, ANSWER, TELEMETRY, HELLO = "fairwave.task", "fairwave.answer", "fairwave.telemetry", "fairwave.hello"
COPY, MEAN_GRADIENT, ARRAYS = "copy", "mean-gradient", "arrays"
FLAT = "flat"
"""The one array of each of these records: all values in the agreed order."""

_Kind = TypeVar("_Kind", int, float, str, bytes)


class Unreadable(Exception):
    """A message without the records or values that are agreed on; the text names them, never their content."""


def task_to_records(task: Task) -> RecordDict:
    """A task as it travels."""
    records = RecordDict()
    records[TASK] = ConfigRecord(
        {
            "version": VERSION,
            "federation": task.federation,
            "scheme": task.scheme,
            "seed": task.seed,
            "agreement": task.agreement,
            "round": task.round,
            "phase": str(task.phase),
            "deviation": task.deviation,
            "scored-round": task.scored_round,
            "steps-left": task.steps_left,
            "ask": task.ask,
        }
    )
    for name, flat in ((COPY, task.copy), (MEAN_GRADIENT, task.mean_gradient)):
        if flat is not None:
            records[name] = ArrayRecord({FLAT: Array(flat)})
    return records


def task_from_records(records: RecordDict) -> Task:
    """What `task_to_records` wrote."""
    fields = _config(records, TASK)
    if value(fields, "version", int) != VERSION:
        raise Unreadable(f"{TASK}: version {value(fields, 'version', int)}, this device speaks {VERSION}")
    phase = value(fields, "phase", str)
    if phase not in list(Phase):
        raise Unreadable("'phase': unknown")
    return Task(
        federation=value(fields, "federation", str),
        scheme=value(fields, "scheme", str),
        seed=value(fields, "seed", int),
        agreement=value(fields, "agreement", bytes),
        round=value(fields, "round", int),
        phase=Phase(phase),
        deviation=value(fields, "deviation", float),
        scored_round=value(fields, "scored-round", int),
        steps_left=value(fields, "steps-left", int),
        copy=from_array(records, COPY),
        mean_gradient=from_array(records, MEAN_GRADIENT),
        ask=value(fields, "ask", int),
    )


def answer_to_records(answer: Answer) -> RecordDict:
    """An answer as it travels."""
    records = RecordDict()
    records[ANSWER] = ConfigRecord(
        {
            "version": VERSION,
            "round": answer.round,
            "status": str(answer.status),
            "num-examples": answer.examples,
            "spent": answer.spent,
            "state-name": answer.state_name,
            "exhausted": int(answer.exhausted),
            "reported-noise-std": answer.reported_noise_std,
            "reported-loss": answer.reported_loss,
            "gradients": answer.gradients,
            "update-asks": answer.update_asks,
            "gradient-asks": answer.gradient_asks,
            "reason": str(answer.reason),
        }
    )
    if answer.values is not None:
        records[ARRAYS] = ArrayRecord({FLAT: Array(answer.values)})
    if answer.telemetry:
        records[TELEMETRY] = MetricRecord({name: float(number) for name, number in answer.telemetry.items()})
    return records


def answer_from_records(records: RecordDict) -> Answer:
    """What `answer_to_records` wrote, or a client of another framework."""
    fields = _config(records, ANSWER)
    if value(fields, "version", int) != VERSION:
        raise Unreadable(f"{ANSWER}: another version")
    status, reason = value(fields, "status", str), value(fields, "reason", str)
    if status not in list(Status) or reason not in list(Reason):
        raise Unreadable(f"{ANSWER}: unknown status or reason")
    telemetry = records.get(TELEMETRY)
    extra = dict(telemetry) if isinstance(telemetry, MetricRecord) else {}
    return Answer(
        round=value(fields, "round", int),
        status=Status(status),
        values=from_array(records, ARRAYS),
        examples=value(fields, "num-examples", int),
        spent=value(fields, "spent", int),
        state_name=value(fields, "state-name", int),
        exhausted=value(fields, "exhausted", int) != 0,
        reported_noise_std=value(fields, "reported-noise-std", float),
        reported_loss=value(fields, "reported-loss", float),
        telemetry={name: float(number) for name, number in extra.items() if isinstance(number, int | float)},
        gradients=value(fields, "gradients", int),
        update_asks=value(fields, "update-asks", int),
        gradient_asks=value(fields, "gradient-asks", int),
        reason=Reason(reason),
    )


def from_array(records: RecordDict, name: str) -> np.ndarray | None:
    """The flat array of a record, of whatever length and type it arrived with; None if there is no such record."""
    record = records.get(name)
    if record is None:
        return None
    if not isinstance(record, ArrayRecord):
        raise Unreadable(f"{name}: no record of arrays")
    if set(record) != {FLAT}:
        raise Unreadable(f"{name}: not the one array '{FLAT}'")
    try:
        flat = record[FLAT].numpy()
    except Exception:  # bytes that are no array can fail anywhere in NumPy's reader
        raise Unreadable(f"{name}: an array that cannot be read") from None
    if type(flat) is not np.ndarray:  # NumPy also reads archives of arrays
        raise Unreadable(f"{name}: something that is no array")
    return flat


def serialised_bytes(content: RecordDict) -> int:
    """Bytes of all the objects as which Flower sends a content."""
    waiting, size = [content], 0
    while waiting:
        each: Any = waiting.pop()
        size += len(each.deflate())
        waiting.extend((each.children or {}).values())
    return size


def value(record: ConfigRecord, name: str, kind: type[_Kind]) -> _Kind:
    """A value of the agreed kind; a whole number will do for a real one."""
    held = record.get(name)
    if kind is float and type(held) is int:
        return kind(held)
    if type(held) is not kind:
        raise Unreadable(f"'{name}': missing, or not {kind.__name__}")
    return held


def _config(records: RecordDict, name: str) -> ConfigRecord:
    record = records.get(name)
    if not isinstance(record, ConfigRecord):
        raise Unreadable(f"{name}: no such record")
    return record
