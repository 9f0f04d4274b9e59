"""What devices of a simulation send in 8 bits, those that misbehave included."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from fairwave.engine.server import AccessPoint
from fairwave.engine.server_steps import Upload
from fairwave.learning.model import flat_rows
from fairwave.learning.rounding import restored, rounded
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario

TINY = (
    "cell.num_devices=3",
    "data.samples_per_device=60",
    "learning.model=softmax",
    "learning.layer_sizes=[784, 10]",
    "learning.batch_size=16",
    "cheating.adversaries=[{behaviour='scaled', devices=[1], strength=3.7}]",
)


def _uploaded(monkeypatch: pytest.MonkeyPatch, bits: int) -> list[np.ndarray]:
    """The updates of two rounds as the access point receives them."""
    uploads: list[np.ndarray] = []
    honest = AccessPoint.conclude

    def watched(self: AccessPoint, server: object, upload: Upload, *rest: object) -> object:
        uploads.append(np.asarray(flat_rows(upload.updates)[0]))
        return honest(self, server, upload, *rest)

    scenario = load_scenario("small", [*TINY, f"learning.update_bits={bits}"])
    order = Order.checked(scenario, ("proposed",), (0,), 2)
    with monkeypatch.context() as patched:
        patched.setattr(AccessPoint, "conclude", watched)
        list(run_rounds(Experiment(order).cell(next(order.tracks())), 2))
    return uploads


def _fits_into_8_bits(row: np.ndarray) -> bool:
    """Whether rounding, which is at random, leaves it as it is."""
    again = restored(rounded(jax.numpy.asarray(row), jax.random.key(5)), row.size)
    return np.array_equal(np.asarray(again), row)


def test_all_that_is_uploaded_fits_into_8_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to rounding it is what 32 bits would have been, in the first round, before updates have moved anything."""
    plain, rough = _uploaded(monkeypatch, 32), _uploaded(monkeypatch, 8)
    assert all(_fits_into_8_bits(row) for rows in rough for row in rows)
    assert not any(_fits_into_8_bits(row) for rows in plain for row in rows)
    error = np.linalg.norm(rough[0] - plain[0], axis=1) / np.linalg.norm(plain[0], axis=1)
    assert (error > 0.0).all()
    assert (error < 0.1).all()
