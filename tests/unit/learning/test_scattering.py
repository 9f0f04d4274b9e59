"""Scattering features against an independent implementation, and what privacy needs of them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave.errors import ScenarioError
from fairwave.learning.features import featured, preparation_iterations
from fairwave.learning.loss import scaled
from fairwave.learning.scattering import CHANNELS, GROUPS, Scattering, scattered

MNIST = Scattering((28, 28, 1))
KYMATIO = {
    (0, 0, 3, 3): 0.372315,
    (0, 1, 0, 0): 0.043201,
    (0, 5, 3, 4): 0.000290,
    (0, 12, 6, 2): 0.004568,
    (1, 0, 3, 3): 0.661128,
    (1, 3, 3, 2): 0.025604,
    (1, 9, 4, 3): 0.042258,
    (1, 20, 3, 3): 0.001373,
    (1, 47, 2, 4): 0.001496,
    (2, 0, 0, 6): 0.377758,
    (2, 8, 1, 1): 0.093476,
    (2, 16, 5, 5): 0.048548,
    (2, 30, 3, 0): 0.002200,
    (2, 80, 6, 6): 0.059262,
}
"""Coefficients (image, channel, row, column) of kymatio 0.3.0: Scattering2D(J=2, shape=(28, 28), L=8)."""


def images() -> np.ndarray:
    """A wave, a bell and a chessboard."""
    y, x = np.mgrid[0:28, 0:28]
    bell = np.exp(-((x - 12) ** 2 + (y - 15) ** 2) / 30.0)
    return np.stack([0.5 + 0.5 * np.sin(0.7 * x + 0.3 * y), bell, (x // 5 + y // 7) % 2]).astype(np.float32)


def test_coefficients_are_kymatios():
    ours = np.asarray(scattered(jnp.asarray(images())[:, None]))[:, 0]
    assert ours.shape == (3, CHANNELS, 7, 7)
    for place, theirs in KYMATIO.items():
        assert ours[place] == pytest.approx(theirs, abs=1e-3), place
    mirrored = np.asarray(scattered(jnp.asarray(images())[:, None, :, ::-1]))[:, 0]
    assert any(abs(mirrored[place] - theirs) > 1e-2 for place, theirs in KYMATIO.items())  # the comparison can fail


def test_a_samples_features_come_from_that_sample_alone():
    """Or one record would change what the model sees of another, and clipping would bound nothing."""
    rng = np.random.default_rng(0)
    some = rng.integers(0, 256, (7, 784), dtype=np.uint8)
    others = rng.integers(0, 256, (7, 784), dtype=np.uint8)
    others[3] = some[3]
    np.testing.assert_array_equal(MNIST(some, scaled)[3], MNIST(others, scaled)[3])
    assert not np.array_equal(MNIST(some, scaled)[2], MNIST(others, scaled)[2])


def test_as_many_as_there_are_in_their_order():
    """Images are computed a number at a time; the last ones need no neighbours."""
    some = np.random.default_rng(1).integers(0, 256, (503, 784), dtype=np.uint8)
    whole = MNIST(some, scaled)
    assert whole.shape == (503, 3969) and whole.dtype == np.float16
    np.testing.assert_allclose(whole[500:], MNIST(some[500:], scaled), atol=2e-3)


def test_every_image_is_normalised_by_itself():
    features = MNIST(images(), scaled).astype(np.float64).reshape(3, GROUPS, -1)
    assert np.abs(features.mean(axis=2)).max() < 1e-4
    assert (np.linalg.norm(features.reshape(3, -1), axis=1) < 1.01).all()


@pytest.mark.parametrize("value", [0, 255])
def test_an_image_without_contrast_has_finite_features(value):
    assert np.isfinite(MNIST(np.full((1, 784), value, np.uint8), scaled)).all()


def test_colours_are_scattered_one_by_one():
    rng = np.random.default_rng(2)
    grey = rng.random((2, 1, 32, 32), dtype=np.float32)
    colour = np.concatenate([grey, rng.random((2, 2, 32, 32), dtype=np.float32)], axis=1)
    np.testing.assert_allclose(
        scattered(jnp.asarray(colour))[:, 0], scattered(jnp.asarray(grey))[:, 0], rtol=1e-4, atol=1e-6
    )
    assert Scattering((32, 32, 3)).num_features == 3 * CHANNELS * 8 * 8


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["learning.layer_sizes=[784, 10]"], "let layer_sizes begin with 3969"),
        (["learning.image_shape=[27, 28, 1]"], "must be multiples of 4; pad the images"),
        (["learning.image_shape=unset"], "features 'scattering' need image_shape"),
        (["learning.features=scatter"], "expected 'none' or 'scattering'"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_remedy(overrides, said):
    with pytest.raises(ScenarioError, match=said):
        fairwave.load_scenario("fair", overrides)


def test_their_cost_is_charged_in_local_iterations():
    """By hand: 6,000 images of 1.97 million multiplications against 3 x 39,700 x 128 of an iteration."""
    learning = fairwave.load_scenario("fair").learning
    cost = preparation_iterations(learning, np.array([6_000]))
    assert cost[0] == pytest.approx(6_000 * MNIST.multiply_adds / (3 * 39_700 * 128))
    assert 1.9e6 < MNIST.multiply_adds < 2.1e6
    assert (preparation_iterations(fairwave.load_scenario("fair-mlp").learning, np.array([6_000])) == 0.0).all()


def test_without_features_inputs_stay_as_they_are():
    given = np.ones((2, 784), np.uint8)
    assert featured(fairwave.load_scenario("paper").learning, given) is given
