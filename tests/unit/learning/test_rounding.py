"""Rounding to 8 bits: against a twin in NumPy, its bound, and that it is right on average."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from fairwave.keys import Stream, device_key, run_key
from fairwave.learning.rounding import LARGEST_EXPONENT, LEAST_EXPONENT, NOT_FINITE, restored, rounded
from fairwave.privacy.central_release import central_release
from fairwave.scenario.learning_parameters import VALUES_PER_STEP, num_steps

KEY = jax.random.key(19)
ROUNDINGS, FALSE_ALARM = 4_000, 1e-6


def _sent(values: np.ndarray, key: object = KEY) -> np.ndarray:
    return np.asarray(rounded(jax.numpy.asarray(values, np.float32), key))


def _received(values: np.ndarray, key: object = KEY) -> np.ndarray:
    return np.asarray(restored(jax.numpy.asarray(_sent(values, key)), values.size))


def _steps(values: np.ndarray) -> np.ndarray:
    """The step of every value, by logarithms in double precision."""
    steps = np.empty(values.size)
    for begin in range(0, values.size, VALUES_PER_STEP):
        part = values[begin : begin + VALUES_PER_STEP].astype(np.float64)
        largest = np.abs(part[np.isfinite(part)]).max(initial=0.0)
        exponent = LEAST_EXPONENT
        while 127.0 * 2.0**exponent < largest:
            exponent += 1
        steps[begin : begin + part.size] = 2.0**exponent
    return steps


def _twin(values: np.ndarray) -> np.ndarray:
    """The same rounding, written in double precision and without JAX but for the random bits."""
    steps, chance = _steps(values), np.asarray(jax.random.bits(KEY, (values.size,), np.uint32)) // 256 / 2.0**24
    sent = np.empty(values.size, np.int64)
    for place, value in enumerate(values.astype(np.float64)):
        if not np.isfinite(value):
            sent[place] = NOT_FINITE
            continue
        size = 0.0 if abs(value) < 2.0**-126 else abs(value) / steps[place]
        up = chance[place] < size - np.floor(size)
        sent[place] = np.sign(value) * (np.floor(size) + up)
    exponents = np.log2(steps[::VALUES_PER_STEP]).astype(np.int64)
    return np.concatenate([sent, exponents]).astype(np.int8)


@pytest.mark.parametrize("size", [1, 255, 256, 257, 7_850])
@pytest.mark.parametrize("spread", [0.0, 3.0, 15.0])
def test_rounding_is_its_numpy_twin(size: int, spread: float) -> None:
    draw = np.random.default_rng(size)
    values = (draw.standard_normal(size) * np.exp(spread * draw.standard_normal(size))).astype(np.float32)
    sent = _sent(values)
    assert sent.dtype == np.int8
    assert sent.size == size + num_steps(size)
    assert np.array_equal(sent, _twin(values))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.floats(-(2.0**127), 2.0**127, width=32, allow_subnormal=True) | st.sampled_from([0.0, 127.0, 127.5, 1e-45]),
        min_size=1,
        max_size=300,
    )
)
def test_no_value_is_off_by_a_step(values: list[float]) -> None:
    given_values = np.asarray(values, np.float32)
    steps = _steps(given_values)
    error = np.abs(_received(given_values).astype(np.float64) - given_values)
    assert (error < steps).all()
    largest = np.abs(given_values[:VALUES_PER_STEP].astype(np.float64)).max()
    assert steps[0] == 2.0**LEAST_EXPONENT or steps[0] < 2.0 * largest / 127.0


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -127.0, 2.0**-126, 2.0**-140, 127.0 * 2.0**100])
def test_values_that_are_multiples_arrive_as_they_are(value: float) -> None:
    received = _received(np.full(300, value, np.float32))
    assert np.array_equal(received, np.full(300, 0.0 if abs(value) < 2.0**-126 else value, np.float32))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_said_and_spoils_nothing_else(odd: float) -> None:
    values = np.linspace(-1.0, 1.0, 600, dtype=np.float32)
    values[300] = odd
    sent, received = _sent(values), _received(values)
    assert sent[300] == NOT_FINITE
    assert np.isnan(received[300])
    others = np.delete(np.arange(600), 300)
    assert np.isfinite(received[others]).all()
    assert (np.abs(received - values)[others] < _steps(values)[others]).all()
    assert (sent[others[others < 600]] != NOT_FINITE).all()
    assert not np.isfinite(_received(np.full(3, odd, np.float32))).any()


def test_the_largest_numbers_need_the_largest_exponent() -> None:
    largest = np.finfo(np.float32).max
    assert _sent(np.asarray([largest]))[-1] == LARGEST_EXPONENT
    assert _sent(np.asarray([0.0]))[-1] == LEAST_EXPONENT


def _distance(values: np.ndarray, draw: Callable[[np.ndarray, object], np.ndarray]) -> float:
    """How far the means of many roundings are from the values: chi-square, in their own standard errors."""
    keys = jax.random.split(KEY, ROUNDINGS)
    mean = np.mean([draw(values, key) for key in keys], axis=0, dtype=np.float64)
    steps = _steps(values)
    share = np.abs(values) / steps % 1.0
    spread = steps * np.sqrt(share * (1.0 - share) / ROUNDINGS)
    return float(np.sum(((mean - values) / spread) ** 2))


def _nearest(values: np.ndarray, key: object) -> np.ndarray:
    steps = _steps(values)
    return np.rint(values / steps) * steps


def _towards_zero(values: np.ndarray, key: object) -> np.ndarray:
    steps = _steps(values)
    return np.trunc(values / steps) * steps


def _coin(values: np.ndarray, key: object) -> np.ndarray:
    """Up or down with the same probability, whatever the value."""
    steps = _steps(values)
    up = np.asarray(jax.random.bernoulli(key, 0.5, values.shape))
    return np.sign(values) * (np.floor(np.abs(values) / steps) + up) * steps


VALUES = np.random.default_rng(7).normal(size=320).astype(np.float32)


@pytest.mark.statistical
def test_rounding_is_right_on_average() -> None:
    """False alarm once in a million: each mean is nearly Gaussian, so that their squares add up to a chi-square."""
    many = jax.jit(jax.vmap(lambda key: restored(rounded(jax.numpy.asarray(VALUES), key), VALUES.size)))
    drawn = iter(np.asarray(many(jax.random.split(KEY, ROUNDINGS))))
    assert _distance(VALUES, lambda values, key: next(drawn)) < chi2.isf(FALSE_ALARM, VALUES.size)


@pytest.mark.statistical
@pytest.mark.parametrize("mutant", [_nearest, _towards_zero, _coin])
def test_other_roundings_are_not(mutant: Callable[[np.ndarray, object], np.ndarray]) -> None:
    assert _distance(VALUES, mutant) > chi2.isf(FALSE_ALARM, VALUES.size)


def test_rounding_is_addressed_by_round_stream_and_device() -> None:
    root = run_key(3)
    addresses = [
        device_key(root, 0, Stream.UPDATE_ROUNDING, 0),
        device_key(root, 1, Stream.UPDATE_ROUNDING, 0),
        device_key(root, 0, Stream.UPDATE_ROUNDING, 1),
        device_key(root, 0, Stream.GRADIENT_ROUNDING, 0),
    ]
    sent = [_sent(VALUES, key).tobytes() for key in addresses]
    assert len(set(sent)) == len(sent)
    assert _sent(VALUES, device_key(run_key(3), 1, Stream.UPDATE_ROUNDING, 0)).tobytes() == sent[1]


def test_a_rounded_update_that_is_too_long_is_clipped_again() -> None:
    """Mode 'device': what counts at a trusted access point is the length after its own clipping."""
    update = np.abs(VALUES) / np.linalg.norm(VALUES)
    update *= np.float32(0.5) / np.linalg.norm(update)
    rows = np.stack([_received(update, key) for key in jax.random.split(KEY, 40)])
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    longest = rows[[int(np.argmax(lengths))]]
    assert lengths.max() > 0.5 * 1.0001
    zeros = jax.numpy.zeros(VALUES.size, np.float32)
    released = central_release(
        zeros, longest, jax.numpy.ones(1, bool), KEY, clip_norm=0.5, noise_multiplier=0.0, source="simulation"
    )
    assert np.linalg.norm(np.asarray(released.params, np.float64)) <= float(released.sensitivity) * (1.0 + 1e-6)
    assert float(released.sensitivity) == pytest.approx(0.5)


def test_rounding_what_was_rounded_changes_nothing() -> None:
    once = _received(VALUES)
    assert np.array_equal(_received(once, jax.random.key(77)), once)
    assert not np.array_equal(_received(VALUES, jax.random.key(77)), once)
