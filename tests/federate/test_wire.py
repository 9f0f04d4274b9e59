"""What is said is what is heard, and what is not as agreed is refused before it is used."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwave.federate.flower_records import (
    ANSWER,
    ARRAYS,
    TASK,
    Unreadable,
    answer_from_records,
    answer_to_records,
    task_from_records,
    task_to_records,
)
from fairwave.federate.protocol import VERSION, Answer, Phase, Status, Task
from fairwave.learning.named_arrays import named_arrays, tree_of

ARRAYS_HELD = {"0.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "0.bias": np.zeros(3, np.float32)}
TASK_GIVEN = Task("f1", "proposed", 3, 7, Phase.GRADIENT, 0.25, 5, -1, ARRAYS_HELD, None)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**53), st.integers(0, 10**6), numbers, st.sampled_from(Phase), st.booleans(), st.booleans())
def test_a_task_comes_back(seed: int, number: int, deviation: float, phase: Phase, copy: bool, mean: bool) -> None:
    task = Task(
        federation="f",
        scheme="max_power",
        seed=seed,
        round=number,
        phase=phase,
        deviation=deviation,
        scored_round=number - 1,
        steps_left=90,
        copy=ARRAYS_HELD if copy else None,
        mean_gradient=ARRAYS_HELD if mean else None,
    )
    _same(task_from_records(task_to_records(task)), task)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(Status), st.integers(0, 2**53), numbers, st.booleans())
def test_an_answer_comes_back(number: int, status: Status, spent: int, std: float, arrays: bool) -> None:
    answer = Answer(
        number, status, ARRAYS_HELD if arrays else None, 60, spent, 17, arrays, std, 0.5, {"energy_j": 0.25}
    )
    _same(answer_from_records(answer_to_records(answer)), answer)


def _same(one: object, other: object) -> None:
    for field in dataclasses.fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(theirs, dict) and theirs is ARRAYS_HELD:
            assert set(mine) == set(theirs)
            assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)
            assert all(mine[name].dtype == theirs[name].dtype for name in theirs)
        else:
            assert mine == theirs, field.name


@pytest.mark.parametrize(
    "name", ["version", "federation", "scheme", "seed", "round", "phase", "deviation", "steps-left"]
)
@pytest.mark.parametrize("change", ["missing", "another kind"])
def test_a_task_that_is_not_as_agreed_is_refused(name: str, change: str) -> None:
    records = task_to_records(TASK_GIVEN)
    held = dict(records[TASK])
    held.pop(name)
    records[TASK] = ConfigRecord(held if change == "missing" else {**held, name: b"?"})
    with pytest.raises(Unreadable, match=name):
        task_from_records(records)


def test_another_version_is_refused() -> None:
    records = task_to_records(TASK_GIVEN)
    records[TASK] = ConfigRecord({**records[TASK], "version": VERSION + 1})
    with pytest.raises(Unreadable, match=f"version {VERSION + 1}, this device speaks {VERSION}"):
        task_from_records(records)


def test_a_true_is_no_number() -> None:
    records = answer_to_records(Answer(1, Status.SENT, ARRAYS_HELD, 60))
    records[ANSWER] = ConfigRecord({**records[ANSWER], "round": True})
    with pytest.raises(Unreadable, match="round"):
        answer_from_records(records)


@pytest.mark.parametrize(
    "record",
    [
        MetricRecord({"0.weight": 1.0}),
        ArrayRecord({"0.weight": Array("float32", (2, 3), "numpy.ndarray", b"\x93NUMPY")}),
        ArrayRecord({"0.weight": Array("object", (1,), "numpy.ndarray", b"\x80\x04K\x01.")}),
    ],
)
def test_arrays_that_cannot_be_read_are_refused(record: object) -> None:
    records = answer_to_records(Answer(1, Status.SENT, None, 60))
    records[ARRAYS] = record
    with pytest.raises(Unreadable, match="arrays"):
        answer_from_records(records)


def test_nothing_that_arrives_is_unpickled() -> None:
    """An array of objects would run code of the sender's choice on being read."""

    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return pytest.fail, ("code of the sender was run",)

    from io import BytesIO

    held = BytesIO()
    np.save(held, np.array([Bomb()], dtype=object), allow_pickle=True)
    records = answer_to_records(Answer(1, Status.SENT, None, 60))
    records[ARRAYS] = ArrayRecord({"0.weight": Array("object", (1,), "numpy.ndarray", held.getvalue())})
    with pytest.raises(Unreadable):
        answer_from_records(records)


def test_names_of_arrays_lead_back_to_their_tree() -> None:
    tree = [{"weight": np.ones((2, 3)), "bias": np.zeros(3)}, {"weight": np.ones((3, 1)), "bias": np.zeros(1)}]
    arrays = named_arrays(tree)
    assert set(arrays) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    back = tree_of(dict(reversed(arrays.items())), tree)
    assert jax.tree.all(jax.tree.map(np.array_equal, back, tree))
