"""Runs that were never made, stored as `fairwave run` stores them: tests know what a page should say of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import fairwave
from fairwave.engine.end_reasons import EndReason
from fairwave.engine.round_record import FROM_PLAN, PER_DEVICE, Arrays
from fairwave.runs.database import locked
from fairwave.runs.finished_round import FinishedRound
from fairwave.runs.history import Session
from fairwave.runs.order import Order, Track
from fairwave.runs.store import RunStore

SESSION = Session("2026-01-02T03:04:05+00:00", "fairwave run small", "a machine", '{"python": "3.11"}')
PROPOSED, MAX_POWER = Track("proposed", 0), Track("max_power", 0)
DISTANCE_M = np.array([50.0, 100.0, 200.0])


def energy_j(number: int) -> np.ndarray:
    """Device 2 is in outage in round 2 of every track, and spends nothing."""
    return np.array([0.1, 0.2, 0.0 if number == 1 else 0.3]) * (1 + number)


def round_arrays(number: int, **others: np.ndarray) -> Arrays:
    outage = np.array([False, False, number == 1])
    return (
        {name: np.zeros(3) for name in (*FROM_PLAN, *PER_DEVICE)}
        | {
            "loss": np.array([2.0, 1.0, 0.6]) / (1 + number),
            "energy_j": energy_j(number),
            "local_iterations": np.array([9, 8, 7]),
            "deviation": np.array([0.0, 0.5, 1.0]),
            "noise_std": np.array([0.0, 0.01, 0.02]),
            "participating": np.ones(3, bool),
            "outage": outage,
            "late": np.zeros(3, bool),
            "delivered": ~outage,
            "cheating": np.array([False, True, False]),
            "finding/echo": np.array([False, number == 2, False]),
            "global_loss": np.array(1.5),
            "test_accuracy": np.array(0.1 * (1 + number)),
            "membership_auc": np.array(0.5),
        }
        | others
    )


def an_order(rounds: int = 4, schemes: tuple[str, ...] = ("proposed", "max_power")) -> Order:
    return Order(fairwave.load_scenario("small", ["cell.num_devices=3"]), schemes, (0,), rounds)


def write_rounds(store: RunStore, track: Track, numbers: range, ended: EndReason | None = None) -> None:
    store.begin(
        track, b"data", {"distance_m": DISTANCE_M, "path_loss_db": DISTANCE_M, "samples": np.ones((3, 10), int)}
    )
    for number in numbers:
        last = ended if number == numbers[-1] else None
        store.append(track, [FinishedRound(number, round_arrays(number), [], last)], b"state")


@contextlib.contextmanager
def being_written(folder: Path, order: Order) -> Iterator[RunStore]:
    """A run that this test writes, with the lock that its writer holds."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        store = RunStore(folder, write=True) if (folder / "run.sqlite").exists() else RunStore.create(folder, order)
        store.extend(order, SESSION)
        try:
            yield store
        finally:
            store.close()


def a_run(folder: Path, rounds: int = 4, stored: int | None = None) -> Path:
    """A run of two schemes, of which so many rounds are stored; all unless said otherwise."""
    with being_written(folder, an_order(rounds)) as store:
        for track in (PROPOSED, MAX_POWER):
            write_rounds(store, track, range(rounds if stored is None else stored))
    return folder
