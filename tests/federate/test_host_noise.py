"""Noise that the host draws works wherever something is released, and has the std that is claimed, to the last bit.

JAX calls the host from threads of its own, in which double precision is off.
"""

from __future__ import annotations

import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.engine.device_programs import gradient_program, training_program
from fairwave.federate.settings import Settings
from fairwave.privacy import noise
from fairwave.runs.experiment import Experiment, run_rounds
from tests.federate.parties import federated, tiny

EXCHANGE = ("learning.gradient_exchange=true", "privacy.exchange_noise_multiplier=5", "privacy.max_epsilon=unset")
SMALL = (
    "learning.model=softmax",
    "learning.layer_sizes=[784, 10]",
    "compute.min_iterations=1",
    "compute.max_iterations=2",
)
SOURCES = ["hardened", pytest.param("exact", marks=pytest.mark.slow)]


class Listener:
    """Hands on what a source is asked for, and keeps it."""

    def __init__(self, source: str) -> None:
        self._draw = noise._ON_HOST[source]
        self.stds: set[float] = set()
        self.types: set[str] = set()
        self.threads: set[int] = set()

    def __call__(self, values: np.ndarray, std: float) -> np.ndarray:
        self.stds.add(std)
        self.types.add(str(values.dtype))
        self.threads.add(threading.get_ident())
        return self._draw(values, std)


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def listener(source: str, monkeypatch: pytest.MonkeyPatch) -> Listener:
    heard = Listener(source)
    monkeypatch.setitem(noise._ON_HOST, source, heard)
    for program in (training_program, gradient_program):  # compiled programs call whom they were made with
        program.cache_clear()
    jax.clear_caches()
    return heard


@pytest.mark.slow
@pytest.mark.parametrize("exchange", [(), EXCHANGE], ids=["updates alone", "with gradients"])
def test_in_a_simulation(source: str, listener: Listener, exchange: tuple[str, ...]) -> None:
    order = tiny(*SMALL, *exchange, f"privacy.noise_source={source}", preset="fair", rounds=2)
    records = [done.record for done in run_rounds(Experiment(order).cell(next(order.tracks())), 2)]
    assert len(records) == 2
    assert np.asarray(records[-1].delivered).any()
    assert listener.stds == ({1.3, 5.0} if exchange else {1.3})
    assert listener.types == {"float64"}


@pytest.mark.parametrize(
    "exchange",
    [pytest.param((), marks=pytest.mark.slow, id="updates alone"), pytest.param(EXCHANGE, id="with gradients")],
)
def test_in_a_federation(source: str, listener: Listener, exchange: tuple[str, ...], tmp_path: Path) -> None:
    order = tiny(*SMALL, *exchange, f"privacy.noise_source={source}", preset="fair", rounds=2)
    held = federated(order, tmp_path / "run", Settings(telemetry=True, energy="model", patience=1))
    assert len(held.records) == 2
    assert held.records[-1]["delivered"].any()
    assert listener.stds == ({1.3, 5.0} if exchange else {1.3})
    assert listener.types == {"float64"}


@pytest.mark.slow
def test_at_a_trusted_access_point(source: str, listener: Listener) -> None:
    overrides = ("privacy.mode=device", "privacy.noise_multiplier=2.7", "defences.use=[]")
    order = tiny(*SMALL, *overrides, f"privacy.noise_source={source}", preset="fair", rounds=2, scheme="max_power")
    records = [done.record for done in run_rounds(Experiment(order).cell(next(order.tracks())), 2)]
    heard = {2.7 * 1.0 / int(np.asarray(record.delivered).sum()) for record in records}
    assert listener.stds == heard
    assert listener.types == {"float64"}


def test_the_std_is_exact_in_every_thread(listener: Listener, source: str) -> None:
    """A compiled call comes from a thread in which 1.3 would be 1.2999999523."""
    add = jax.jit(lambda values: noise.noised(source, values, 1.3, jax.random.key(0)))  # type: ignore[arg-type]
    for values in (jnp.zeros(3, jnp.float32), jnp.full(3, 1 / 3, jnp.float64)):
        for _ in range(3):
            add(values).block_until_ready()
    assert listener.stds == {1.3}
