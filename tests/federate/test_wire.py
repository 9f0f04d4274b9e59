"""What is said is what is heard, and what is not as agreed is refused before it is used."""

from __future__ import annotations

import dataclasses
import io

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
from fairwave.learning.named_arrays import flat_form, flattened, named_arrays, tree_of, unflattened

HELD = np.arange(9, dtype=np.float32)
TASK_GIVEN = Task("f1", "proposed", 3, b"agreed", 7, Phase.GRADIENT, 0.25, 5, -1, HELD, None)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**53), st.integers(0, 10**6), numbers, st.sampled_from(Phase), st.booleans(), st.booleans())
def test_a_task_comes_back(seed: int, number: int, deviation: float, phase: Phase, copy: bool, mean: bool) -> None:
    task = Task(
        federation="f",
        scheme="max_power",
        seed=seed,
        agreement=bytes(range(16)),
        round=number,
        phase=phase,
        deviation=deviation,
        scored_round=number - 1,
        steps_left=90,
        copy=HELD if copy else None,
        mean_gradient=HELD if mean else None,
    )
    _same(task_from_records(task_to_records(task)), task)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(Status), st.integers(0, 2**53), numbers, st.booleans())
def test_an_answer_comes_back(number: int, status: Status, spent: int, std: float, arrays: bool) -> None:
    answer = Answer(number, status, HELD if arrays else None, 60, spent, 17, arrays, std, 0.5, {"energy_j": 0.25})
    _same(answer_from_records(answer_to_records(answer)), answer)


def _same(one: object, other: object) -> None:
    for field in dataclasses.fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if theirs is HELD:
            assert np.array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
        else:
            assert mine == theirs, field.name


@pytest.mark.parametrize(
    "name", ["version", "federation", "scheme", "seed", "agreement", "round", "phase", "deviation", "steps-left"]
)
@pytest.mark.parametrize("change", ["missing", "another kind"])
def test_a_task_that_is_not_as_agreed_is_refused(name: str, change: str) -> None:
    records = task_to_records(TASK_GIVEN)
    held = dict(records[TASK])
    held.pop(name)
    records[TASK] = ConfigRecord(held if change == "missing" else {**held, name: [1]})
    with pytest.raises(Unreadable, match=name):
        task_from_records(records)


def test_another_version_is_refused() -> None:
    records = task_to_records(TASK_GIVEN)
    records[TASK] = ConfigRecord({**records[TASK], "version": VERSION + 1})
    with pytest.raises(Unreadable, match=f"version {VERSION + 1}, this device speaks {VERSION}"):
        task_from_records(records)


def test_a_true_is_no_number() -> None:
    records = answer_to_records(Answer(1, Status.SENT, HELD, 60))
    records[ANSWER] = ConfigRecord({**records[ANSWER], "round": True})
    with pytest.raises(Unreadable, match="round"):
        answer_from_records(records)


def _archive() -> bytes:
    """What NumPy reads as a file of arrays, which has neither shape nor type."""
    held = io.BytesIO()
    np.savez(held, flat=HELD)
    return held.getvalue()


@pytest.mark.parametrize(
    "record",
    [
        MetricRecord({"flat": 1.0}),
        ArrayRecord({}),
        ArrayRecord({"0.weight": Array(HELD)}),
        ArrayRecord({"flat": Array(HELD), "more": Array(HELD)}),
        ArrayRecord({"flat": Array("float32", (9,), "numpy.ndarray", b"\x93NUMPY")}),
        ArrayRecord({"flat": Array("object", (1,), "numpy.ndarray", b"\x80\x04K\x01.")}),
        ArrayRecord({"flat": Array("float32", (9,), "numpy.ndarray", _archive())}),
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

    held = io.BytesIO()
    np.save(held, np.array([Bomb()], dtype=object), allow_pickle=True)
    records = answer_to_records(Answer(1, Status.SENT, None, 60))
    records[ARRAYS] = ArrayRecord({"flat": Array("object", (1,), "numpy.ndarray", held.getvalue())})
    with pytest.raises(Unreadable):
        answer_from_records(records)


def test_names_of_arrays_lead_back_to_their_tree() -> None:
    tree = [{"weight": np.ones((2, 3)), "bias": np.zeros(3)}, {"weight": np.ones((3, 1)), "bias": np.zeros(1)}]
    arrays = named_arrays(tree)
    assert set(arrays) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    back = tree_of(dict(reversed(arrays.items())), tree)
    assert jax.tree.all(jax.tree.map(np.array_equal, back, tree))


def test_a_model_travels_as_one_array_in_the_order_of_its_leaves() -> None:
    draw = np.random.default_rng(0)
    tree = [{"weight": draw.random((2, 3), np.float32), "bias": draw.random(3, np.float32)} for _ in range(12)]
    like = named_arrays(tree)
    shuffled = dict(sorted(like.items(), key=lambda item: item[0][::-1]))
    flat = flattened(shuffled, like)
    leaves = [layer[name] for layer in tree for name in ("bias", "weight")]
    assert np.array_equal(flat, np.concatenate([leaf.ravel(order="C") for leaf in leaves]))
    assert flat_form(like) == (flat.size, flat.dtype) == (12 * 9, np.float32)
    back = unflattened(flat, like)
    assert list(back) == list(like)
    assert all(np.array_equal(back[name], like[name]) for name in like)
    stacked = unflattened(np.stack([flat, 2.0 * flat]), like)
    assert all(np.array_equal(stacked[name][1], 2.0 * like[name]) for name in like)


def test_a_message_carries_one_array() -> None:
    assert list(task_to_records(TASK_GIVEN)["copy"]) == ["flat"]
    assert list(answer_to_records(Answer(1, Status.SENT, HELD, 60))[ARRAYS]) == ["flat"]
