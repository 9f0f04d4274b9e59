"""Bounds that proofs rest on: no contribution is longer than told, and batches are drawn as accounted for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from fairwave.privacy.central_release import central_release, fill_up
from fairwave.privacy.clipping import clip_factor, clipped_mean
from fairwave.privacy.membership import loss_attack_auc
from fairwave.privacy.sampling import overflow_probability, poisson_batch, sampling_probability, sufficient_capacity

AWKWARD = [np.nan, np.inf, -np.inf, 3e38, 1e-40, 0.0]


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 2.0**127, width=32), st.floats(1e-3, 1e3))
def test_nothing_is_longer_than_the_bound(length, bound):
    factor = float(clip_factor(jnp.asarray(length, jnp.float32), bound))
    assert 0.0 <= factor <= 1.0 and length * factor <= bound
    assert factor == 1.0 or length > bound * (1 - 2e-4)


@pytest.mark.parametrize("bad", AWKWARD)
def test_one_device_moves_the_mean_by_no_more_than_told(bad):
    draw = np.random.default_rng(3)
    vectors = (draw.normal(size=(6, 50)) * 10.0 ** draw.integers(-3, 4, (6, 1))).astype(np.float32)
    vectors[2, 7] = bad
    everybody = jnp.ones(6, bool)
    whole = clipped_mean(jnp.asarray(vectors), everybody, 0.5)
    assert float(whole.sensitivity) == pytest.approx(0.5 / 6) and np.isfinite(whole.value).all()
    for device in range(6):
        silenced = vectors.copy()
        silenced[device] = 0.0
        moved = np.linalg.norm(np.asarray(whole.value) - clipped_mean(jnp.asarray(silenced), everybody, 0.5).value)
        assert moved <= float(whole.sensitivity)


def test_one_of_a_million_devices_moves_the_mean_by_no_more_than_told():
    """In single precision the sum of a million rounds by more than one of them is worth: by 1.0044 times the bound."""
    draw = np.random.default_rng(4)
    vectors = draw.normal(size=(1_000_000, 3)).astype(np.float32)
    everybody, bound = jnp.ones(vectors.shape[0], bool), 0.1
    whole = clipped_mean(jnp.asarray(vectors), everybody, bound)
    for device in (0, 17, 999_999):
        silenced = vectors.copy()
        silenced[device] = 0.0
        moved = np.linalg.norm(whole.value - clipped_mean(jnp.asarray(silenced), everybody, bound).value)
        assert moved <= float(whole.sensitivity) * (1 + 1e-9)
        assert moved >= float(whole.sensitivity) * (1 - 1e-5)


def test_central_noise_is_part_of_the_model_and_silence_releases_nothing():
    params, updates = jnp.zeros(20_000, jnp.float32), jnp.zeros((4, 20_000), jnp.float32)
    settings_of = {"clip_norm": 2.0, "noise_multiplier": 3.0, "source": "simulation"}
    heard = central_release(params, updates, jnp.array([1, 1, 0, 0], bool), jax.random.key(0), **settings_of)
    assert float(heard.noise_std) == pytest.approx(3.0) == 3 * float(heard.sensitivity)
    assert float(np.std(heard.params)) == pytest.approx(3.0, rel=0.03)
    nobody = central_release(params, updates, jnp.zeros(4, bool), jax.random.key(0), **settings_of)
    assert float(nobody.noise_std) == 0.0 and (nobody.params == params).all()
    np.testing.assert_allclose(fill_up(jnp.asarray(3.0), jnp.array([5.0, 3.0, 1.0])), [4.0, 0.0, 0.0])


@pytest.mark.statistical
def test_records_are_taken_independently_with_the_probability_told():
    """Fixed key, 4,000 draws of 300 records. Each record's count against the binomial, all records' and all pairs' of
    neighbours by chi-square, false alarm 1e-6; sampling with a probability 5 % too large is rejected."""
    held, count, probability, draws = 320, 300, 0.1, 4_000

    def taken(key, p):
        bits = jax.random.bits(key, (held,), jnp.uint32)
        places, used = poisson_batch(bits, jnp.asarray(count), jnp.asarray(p), 80)
        return jnp.zeros(held, bool).at[places].max(used)

    def statistic(p: float) -> tuple[float, np.ndarray]:
        each = np.asarray(jax.vmap(lambda key: taken(key, p))(jax.random.split(jax.random.key(7), draws)))
        assert not each[:, count:].any()
        counts = each[:, :count].sum(axis=0)
        spread = draws * probability * (1 - probability)
        return float(np.sum((counts - draws * probability) ** 2) / spread), each[:, :count]

    energy, each = statistic(probability)
    assert 2 * min(chi2.sf(energy, count), chi2.cdf(energy, count)) > 1e-6
    assert chi2.sf(statistic(1.05 * probability)[0], count) < 1e-6
    pairs = (each[:, :-1] & each[:, 1:]).sum(axis=0)
    spread = draws * probability**2 * (1 - probability**2)
    together = float(np.sum(pairs - draws * probability**2) ** 2 / (spread * pairs.size * 1.2))
    assert chi2.sf(together, 1) > 1e-6
    sizes = each.sum(axis=1)
    assert sizes.mean() == pytest.approx(30.0, abs=5 * np.sqrt(27 / draws))


def test_a_full_batch_takes_everybody_and_an_overfull_one_drops_the_rest():
    bits = jnp.asarray([0, 2**32 - 1] * 5, jnp.uint32)
    places, used = poisson_batch(bits, jnp.asarray(7), jnp.asarray(1.0), 8)
    assert places[:7].tolist() == list(range(7)) and used.tolist() == [True] * 7 + [False]
    _, used = poisson_batch(bits, jnp.asarray(10), jnp.asarray(1.0), 4)
    assert used.all()
    assert float(sampling_probability(128, jnp.asarray(6_000))) == 128 / 6_000
    assert float(sampling_probability(128, jnp.asarray(100))) == 1.0


@pytest.mark.parametrize(("expected", "count"), [(128, 6_000), (128, 130), (10, 600), (1, 10), (128, 60), (5, 5)])
def test_batches_have_room(expected, count):
    capacity = sufficient_capacity(expected, count, 1e-5)
    share = min(1.0, expected / count)
    assert capacity % 8 == 0 and capacity >= min(expected, count)
    assert overflow_probability(count, share, capacity) <= 1e-12
    if capacity < count:
        assert overflow_probability(count, share, capacity - 16) > 1e-12
        assert overflow_probability(count, share, capacity) == pytest.approx(binom.sf(capacity - 1, count - 1, share))


def test_loss_attack_against_every_pair():
    draw = np.random.default_rng(2)
    members, others = draw.normal(size=40).round(1), draw.normal(0.5, 1.0, size=70).round(1)
    pairs = np.sign(others[None, :] - members[:, None])
    assert float(loss_attack_auc(jnp.asarray(members), jnp.asarray(others))) == pytest.approx(np.mean(0.5 + pairs / 2))
    assert float(loss_attack_auc(jnp.zeros(5), jnp.ones(3))) == 1.0
