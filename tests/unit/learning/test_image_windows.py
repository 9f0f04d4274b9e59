"""Convolutions as matrix products of windows, against those of XLA."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from fairwave.learning import convolution, pooled_convolution
from fairwave.learning.convolution import Convolutional
from fairwave.learning.image_windows import convolved
from fairwave.learning.model import cross_entropy
from fairwave.learning.pooled_convolution import PooledConvolutional


def by_xla(images, kernel, stride, padding=((0, 0), (0, 0))):
    return jax.lax.conv_general_dilated(
        images, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel_shape", [(1, 1, 2, 3), (3, 3, 2, 4), (4, 2, 2, 1)])
@pytest.mark.parametrize("padding", [((0, 0), (0, 0)), ((1, 2), (0, 3))])
def test_against_the_convolution_of_xla(stride, kernel_shape, padding):
    """Values, and both gradients, for kernels and paddings that differ between rows and columns."""
    draw = np.random.default_rng(1)
    images = draw.normal(size=(2, 9, 7, 2)).astype(np.float32)
    kernel = draw.normal(size=kernel_shape).astype(np.float32)

    def with_slopes(form):
        def squares(*given):
            outputs = form(*given, stride, padding)
            return (outputs**2).sum(), outputs

        (slope, other), outputs = jax.jit(jax.grad(squares, argnums=(0, 1), has_aux=True))(images, kernel)
        return slope, other, outputs

    for ours, wanted in zip(with_slopes(convolved), with_slopes(by_xla), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("module", "network"),
    [
        (convolution, Convolutional((15, 28, 3), (8, 16), 10, jax.nn.relu)),
        (pooled_convolution, PooledConvolutional((28, 28, 1), (16, 32), 10, jax.numpy.tanh)),
    ],
)
def test_networks_are_the_same_as_with_the_convolution_of_xla(module, network, monkeypatch):
    """Logits and gradients; parameters are drawn in one way for both."""
    draw = np.random.default_rng(2)
    images = draw.random((5, *network.image_shape)).astype(np.float32)
    labels = draw.integers(0, 10, 5)
    params = network.init(jax.random.key(4))

    def slopes_and_logits():
        def loss(given):
            logits = network.logits(given, images)
            return cross_entropy(logits, labels).sum(), logits

        return jax.jit(jax.grad(loss, has_aux=True))(params)

    slopes, logits = slopes_and_logits()
    monkeypatch.setattr(module, "convolved", by_xla)
    slopes_by_xla, logits_by_xla = slopes_and_logits()
    np.testing.assert_allclose(logits, logits_by_xla, atol=1e-5)
    jax.tree.map(lambda mine, theirs: np.testing.assert_allclose(mine, theirs, atol=1e-4), slopes, slopes_by_xla)
