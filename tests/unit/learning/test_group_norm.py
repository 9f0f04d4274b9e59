"""Group normalisation, against loops over samples and groups."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.learning.group_norm import group_norm, num_groups


def in_numpy(values: np.ndarray, scale: np.ndarray, shift: np.ndarray, groups: int) -> np.ndarray:
    """Mean and variance of every sample's every group of neighbouring channels, taken apart and put together."""
    rows = []
    for sample in values:
        parts = np.split(sample, groups, axis=-1)
        rows.append(np.concatenate([(part - part.mean()) / np.sqrt(part.var() + 1e-5) for part in parts], axis=-1))
    return np.stack(rows) * scale + shift


@pytest.mark.parametrize(("channels", "groups"), [(8, 4), (12, 4), (6, 2), (5, 1), (1, 1)])
@pytest.mark.parametrize("places", [(4, 3), (7,)])
def test_against_numpy(channels, groups, places):
    draw = np.random.default_rng(3)
    values = draw.normal(2.0, 3.0, size=(3, *places, channels))
    scale, shift = draw.normal(size=(2, channels))
    assert num_groups(channels) == groups
    given = group_norm(*(jnp.asarray(each, jnp.float32) for each in (values, scale, shift)))
    np.testing.assert_allclose(given, in_numpy(values, scale, shift, groups), atol=2e-5)


def test_a_flat_image_becomes_the_shift_and_has_a_finite_slope():
    flat, shift = jnp.full((1, 4, 4, 8), 3.0), jnp.arange(8.0)
    given, back = jax.vjp(lambda values: group_norm(values, jnp.ones(8), shift), flat)
    np.testing.assert_array_equal(given, jnp.broadcast_to(shift, flat.shape))
    assert np.isfinite(back(jnp.ones_like(given))[0]).all()


def test_samples_are_normalised_by_themselves():
    draw = np.random.default_rng(4)
    values = draw.normal(size=(3, 4, 4, 8)).astype(np.float32)
    changed = values.copy()
    changed[1] = 1e3 * draw.normal(size=(4, 4, 8))
    before, after = (group_norm(jnp.asarray(each), jnp.ones(8), jnp.zeros(8)) for each in (values, changed))
    np.testing.assert_array_equal(before[::2], after[::2])
    assert not np.array_equal(before[1], after[1])
