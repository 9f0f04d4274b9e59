"""Sources of noise: the seeded one is JAX's own, the hardened one keeps its recipe, and wrong scales are noticed."""

from __future__ import annotations

import math
import os

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.stats import chi2, kstest, laplace, norm

from fairwave.privacy import exact_noise, hardened_noise
from fairwave.privacy.exact_noise import PER_STD as EXACT_PER_STD
from fairwave.privacy.exact_noise import exactly_noised
from fairwave.privacy.hardened_noise import (
    HALF_WIDTH,
    exactly_moved,
    grid_step,
    hardened_noised,
    moved_by_quantile,
    moved_by_table,
)
from fairwave.privacy.noise import floating_point_delta, noised, random_bits, standard_normal

LENGTH = 109_386
ALARM = 1e-6


@pytest.mark.parametrize("shape", [(1,), (7, 3), (LENGTH,), (0,)])
def test_seeded_noise_is_jaxs_to_the_bit(shape):
    key = jax.random.fold_in(jax.random.key(12), 5)
    np.testing.assert_array_equal(standard_normal(key, shape), jax.random.normal(key, shape, jnp.float32))
    each = jax.vmap(lambda one: standard_normal(one, shape))(jax.random.split(key, 3))
    many = jax.vmap(lambda one: jax.random.normal(one, shape, jnp.float32))(jax.random.split(key, 3))
    np.testing.assert_array_equal(each, many)


def scale_is_right(residuals: np.ndarray) -> bool:
    """Two-sided chi-square test, in units of the claimed std."""
    energy = float(np.sum(residuals**2))
    return 2 * min(chi2.cdf(energy, residuals.size), chi2.sf(energy, residuals.size)) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "size", "error"), [(hardened_noised, 4 * LENGTH, 0.02), (exactly_noised, 60_000, 0.04)]
)
def test_scale_and_shape(draw, size, error):
    """No seed is possible, so that each test raises a false alarm once in a million runs. So many draws tell such an
    error of scale, and Laplace noise of the right scale, with more than eight standard errors to spare."""
    values, std = np.linspace(-3.0, 3.0, size), 0.37
    residuals = (draw(values, std) - values) / std
    residuals /= math.sqrt(1 + (grid_step(std) / std) ** 2 / 12) if draw is hardened_noised else 1.0
    assert scale_is_right(residuals)
    assert not scale_is_right((1 + error) * residuals) and not scale_is_right((1 - error) * residuals)
    # The largest of the differences that the grid and the cutting make, beside the test's own.
    most = 2.7 / math.sqrt(size) + 1e-3
    assert kstest(residuals, "norm").statistic < most
    assert kstest(laplace.ppf(norm.cdf(residuals), scale=math.sqrt(0.5)), "norm").statistic > most


def test_hardened_noise_uses_the_systems_randomness_once_a_value(monkeypatch):
    asked = []

    def urandom(size: int) -> bytes:
        asked.append(size)
        return os.getrandom(size)

    monkeypatch.setattr(hardened_noise.os, "urandom", urandom)
    first, second = hardened_noised(np.zeros(1_000), 1.0), hardened_noised(np.zeros(1_000), 1.0)
    # 16 bits for every value, 32 more for some of them, 256 for hardly any.
    assert asked.count(2_000) == 2 and sum(asked) < 2 * 2_000 + 2 * 4 * 50 and (first != second).mean() > 0.9


def test_released_values_are_on_a_grid_that_follows_from_the_std_alone():
    for std in (0.05, 1.0, 1.3, 977.0):
        step = grid_step(std)
        assert math.log2(step) == round(math.log2(step)) and std / 16 < step <= std / 8
        for values in (np.zeros(500), np.random.default_rng(0).normal(size=500) * 1e4):
            released = hardened_noised(values, std)
            assert released.dtype == np.float64 and (released == np.rint(released / step) * step).all()
    assert (hardened_noised(np.arange(3.0), 0.0) == np.arange(3.0)).all()


NEVER, ALWAYS = (0, bytes(32)), (2**32 - 1, b"\xff" * 32)
"""The ends of an interval, as further bits."""


@pytest.mark.parametrize(("std", "rest"), [(1.0, 0.0), (1.3, 0.23), (1.999, -0.48)])
def test_the_table_decides_only_what_is_beyond_doubt(std, rest):
    """Of the intervals that are called clear, those next to one in doubt, at the ends of the table and in its middle
    lead to one cell from end to end, by mpmath; and few are in doubt."""
    ratio, bits = std / grid_step(std), np.arange(2**16, dtype=np.uint16)
    moved, doubtful = moved_by_table(bits, np.full(bits.shape, rest), ratio)
    assert doubtful[[0, -1]].all() and 1e-4 < doubtful.mean() < 5e-3
    near = np.convolve(doubtful, np.ones(3), "same") > 0
    near[[1, 2, 2**15 - 1, 2**15, -3, -2]] = True
    clear = np.flatnonzero(near & ~doubtful)
    assert clear.size > 100
    for number in clear.tolist()[:: 1 + clear.size // 150]:
        ends = {exactly_moved(number, *more, rest, ratio) for more in (NEVER, ALWAYS)}
        assert ends == {moved[number]}


@pytest.mark.parametrize("std", [1.0, 1.3, 1.999])
@pytest.mark.parametrize("rest", [0.0, 0.24, -0.48])
def test_double_precision_decides_only_what_is_beyond_doubt(std, rest):
    """Every border between two grid cells is found by bisection over all 2^48 intervals; around it, an interval is
    either in doubt or leads to one cell from end to end, by mpmath."""
    ratio = std / grid_step(std)

    def cells(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, flipped = ranks >> 32, ranks >= 2**47
        fine = (ranks & (2**32 - 1)).astype(np.uint64)
        fine = np.where(flipped, 2**32 - 1 - fine, fine)  # bits beyond the middle count from the other end
        return moved_by_quantile(first.astype(np.uint16), fine.astype(np.uint32), np.full(ranks.shape, rest), ratio)

    ends = np.linspace(0, 2**48 - 1, 8_000).astype(np.int64)
    low, high = ends[:-1], ends[1:]
    before = cells(low)[0]
    for _ in range(45):
        middle = (low + high) // 2
        same = cells(middle)[0] == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    borders = np.unique(high[cells(high)[0] != before])
    around = np.arange(-60, 61, 5)
    ranks = np.unique(np.clip(borders[::7, None] + around[None, :], 1, 2**48 - 2).ravel())
    moved, doubtful = cells(ranks)
    assert borders.size > 40 and doubtful.any() and not doubtful.all()
    for rank, cell in zip(ranks[~doubtful].tolist(), moved[~doubtful].tolist(), strict=True):
        fine = rank & (2**32 - 1)
        fine = 2**32 - 1 - fine if rank >= 2**47 else fine
        for more in (bytes(32), b"\xff" * 32):
            assert exactly_moved(rank >> 32, fine, more, rest, ratio) == cell


def test_how_far_an_interval_reaches():
    """The bound on its width holds from the far tail to the middle, and would not with a tenth less."""
    reaches = []
    for tail in [1, 2, 3, 10, 10**3, 10**6, 10**10, 2**46, 2**47 - 1]:
        with mpmath.workdps(40):
            quantile = [
                -mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(tail + part) / mpmath.mpf(2) ** 47 - 1)
                for part in (0, 0.5, 1)
            ]
            reaches.append(float(max(quantile[0] - quantile[1], quantile[1] - quantile[2]) * tail))
    assert 0.9 * HALF_WIDTH < max(reaches) < HALF_WIDTH


@pytest.mark.parametrize("end", [0, 2**16 - 1])
def test_where_there_is_doubt_more_bits_decide(end):
    """The outermost interval reaches to infinity: its values follow the tail, beyond 7.8 std, by the extra bits."""
    ratio, bits, outward = 1.0 / grid_step(1.0), np.array([end], np.uint16), 1 if end else -1
    assert moved_by_table(bits, np.zeros(1), ratio)[1].all()
    assert moved_by_quantile(bits, np.zeros(1, np.uint32), np.zeros(1), ratio)[1].all()
    draw = np.random.default_rng(0)
    far = [outward * exactly_moved(end, 0, draw.bytes(32), 0.0, ratio) for _ in range(200)]
    assert min(far) > 7.7 * ratio and len(set(far)) > 3
    with mpmath.workdps(60):
        edge = mpmath.mpf(2) ** -48
        share = np.mean([cell >= 65 for cell in far])
        assert ratio == 8 and share == pytest.approx(float(mpmath.ncdf(-64.5 / ratio) / edge), abs=0.15)


def test_without_any_randomness_values_move_to_the_end_of_the_tail(monkeypatch):
    monkeypatch.setattr(hardened_noise.os, "urandom", bytes)
    assert (hardened_noised(np.zeros(3), 1.0) < -15).all()


def test_what_rounding_costs():
    assert 0.0 < floating_point_delta("hardened", 10**12) * (1 + math.exp(60)) < 1e-20
    assert floating_point_delta("exact", LENGTH) == floating_point_delta("simulation", LENGTH) == 0.0


@pytest.mark.parametrize("source", ["hardened", "exact"])
def test_host_noise_inside_a_compiled_program(source):
    """Drawn anew for every call, lane and step; as large as asked for."""
    values = jnp.arange(400, dtype=jnp.float32)

    @jax.jit
    def both(key):
        return jax.lax.map(lambda _: noised(source, values, 0.5, key), jnp.arange(2))

    first, again = np.asarray(both(jax.random.key(0))), np.asarray(both(jax.random.key(0)))
    assert first.dtype == np.float32 and (first[0] != first[1]).any() and (first != again).any()
    assert np.std(np.concatenate([first, again]) - np.asarray(values)) == pytest.approx(0.5, rel=0.15)


@pytest.mark.parametrize("source", ["hardened", "exact"])
def test_batches_are_as_secret_as_the_noise(source):
    """Not a function of the seed: drawn from the system, in compiled programs too."""
    draw = jax.jit(lambda key: random_bits(source, 5_000, key))
    first, again = np.asarray(draw(jax.random.key(0))), np.asarray(draw(jax.random.key(0)))
    assert first.dtype == np.uint32 and (first != again).mean() > 0.99
    seeded = [np.asarray(random_bits("simulation", 50, jax.random.key(0))) for _ in range(2)]
    np.testing.assert_array_equal(*seeded)


def test_cutting_to_the_grid_parts_two_sums_by_next_to_nothing(monkeypatch):
    """Sums just below multiples of the step, and a record that lifts every coordinate over them: the worst case."""
    monkeypatch.setattr(exact_noise, "_sampler", lambda scale: lambda counts: counts)
    for multiplier in (0.1, 1.3, 100.0):
        step = grid_step(multiplier, EXACT_PER_STD)
        below = np.full(LENGTH, 1_000 * step * (1 - 1e-9))
        record = np.full(LENGTH, 1e-6 * step)
        moved = exactly_noised(below + record, multiplier) - exactly_noised(below, multiplier)
        assert np.linalg.norm(moved) < 1e-4 * 0.1  # far within the margin that clipping to 1 keeps
    np.testing.assert_allclose(exactly_noised(np.array([0.5, -2.0]), 1e-3), [0.5, -2.0], atol=1e-13)
