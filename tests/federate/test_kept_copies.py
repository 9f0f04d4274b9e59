"""A federation's checkpoint without the copies that nobody will see goes on to the same bits."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path

import jax
import numpy as np
import pytest

from fairwave.engine.state import ServerState
from fairwave.federate import rounds
from fairwave.federate.kept_copies import with_needed_copies
from fairwave.federate.setup import access_point
from fairwave.runs.experiment import Experiment
from fairwave.runs.order import Order
from fairwave.runs.packing import unpack
from fairwave.runs.store import RunStore
from tests.federate.parties import TRACK, close, federated, model_of_round, tiny

COHORT = ("cell.num_devices=8", "cell.participants=2")
NESTED = ('privacy.copies="nested"', 'defences.use=["watermark", "norm_clipping"]')
ROUNDS = 5


def _order(count: int = ROUNDS, *more: str) -> Order:
    return tiny(*COHORT, *more, rounds=count)


def _checkpoint(folder: Path) -> bytes:
    store = RunStore(folder)
    held = store.checkpoint(TRACK)
    store.close()
    assert held is not None
    return held


def _in_steps(folder: Path, *more: str) -> None:
    """Stopped after every round, and started again from the checkpoint."""
    for count in range(1, ROUNDS + 1):
        federated(_order(count, *more), folder)


@pytest.mark.parametrize("more", [(), NESTED], ids=["plain", "nested copies and defences"])
def test_a_federation_in_cohorts_resumes_to_the_same_bits(more: tuple[str, ...], tmp_path: Path) -> None:
    whole = federated(_order(ROUNDS, *more), tmp_path / "whole")
    _in_steps(tmp_path / "steps", *more)
    for number in range(1, ROUNDS + 1):
        one, other = (model_of_round(tmp_path / name, number) for name in ("whole", "steps"))
        assert close(one, other, tolerance=0.0)
    assert _checkpoint(tmp_path / "whole") == _checkpoint(tmp_path / "steps")
    store = RunStore(tmp_path / "steps")
    for mine, theirs in zip(store.records(TRACK), whole.records, strict=True):
        for name in ("deviation", "delivered", "received_accuracy", "noise_std"):
            assert np.array_equal(mine[name], theirs[name], equal_nan=True), name
    store.close()
    copies = unpack(_checkpoint(tmp_path / "whole"))["copies.models.0.weight"]
    assert int(copies.any(axis=(1, 2)).sum()) <= 2
    with sqlite3.connect(tmp_path / "whole" / "run.sqlite") as reader:
        sizes = [len(row[0]) for row in reader.execute("SELECT content FROM piece")]
    assert sizes.count(copies[0].nbytes) <= 3  # two copies, and zeros once


def test_without_a_copy_that_is_needed_it_would_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that the test above rejects: the checkpoint keeps nobody's copy."""

    def nobodys(point: object, server: ServerState, next_round: int) -> ServerState:
        return dataclasses.replace(server, copies=jax.tree.map(jax.numpy.zeros_like, server.copies))

    federated(_order(), tmp_path / "whole")
    monkeypatch.setattr(rounds, "with_needed_copies", nobodys)
    _in_steps(tmp_path / "steps")
    one, other = (model_of_round(tmp_path / name, ROUNDS) for name in ("whole", "steps"))
    assert not close(one, other, tolerance=0.0)


def test_copies_that_everybody_reads_are_all_kept() -> None:
    """By rewards, and by a defence that compares a copy with the one before."""
    for more, scheme in (((), "cgsv"), (('defences.use=["projection"]',), "proposed")):
        order = tiny(*COHORT, *more, scheme=scheme)
        point = access_point(Experiment(order), next(order.tracks()), None)
        server = point.start()
        assert with_needed_copies(point, server, 1) is server
