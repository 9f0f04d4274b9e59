"""Scattering features of images: what survives of an image when small shifts and deformations must not matter.

An image is filtered by Morlet wavelets of two scales and eight orientations, the modulus of the result by those of the
coarser scale once more, and everything is averaged over four pixels (Bruna, Mallat, "Invariant Scattering Convolution
Networks", 2013). Nothing is learned, so that features cost no privacy, and a linear model on them is far better than
one on pixels. Every image is normalised by itself (Tramèr, Boneh, "Differentially Private Learning Needs Better
Features (or Much More Data)", 2021): no statistics of anybody's data enter.

Filters, reflection at the borders and the order of the features are those of kymatio, an independent implementation,
with which coefficients agree to 0.001.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

SCALES, ORIENTATIONS = 2, 8
STRIDE = 1 << SCALES
"""Pixels over which features are averaged, and between two of them."""
CHANNELS = 1 + SCALES * ORIENTATIONS + ORIENTATIONS * ORIENTATIONS
"""Coefficients of a place in one colour: the mean, each wavelet, and each pair of a fine and a coarse one."""
GROUPS = 27
"""Groups of channels that are normalised together, as in Tramèr and Boneh."""
SMALLEST_VARIANCE = 1e-5
AT_A_TIME = 500
"""Images whose features are computed at a time."""

Images = Float[Array, "image colour height width"]


@dataclasses.dataclass(frozen=True)
class Scattering:
    """Scattering features of images of one shape: height, width and colours."""

    image_shape: tuple[int, int, int]

    @property
    def num_features(self) -> int:
        """Features of one image."""
        height, width, colours = self.image_shape
        return CHANNELS * colours * (height // STRIDE) * (width // STRIDE)

    @property
    def multiply_adds(self) -> float:
        """Multiplications and additions, in pairs, of one image: Fourier transforms, filters and moduli."""
        height, width, colours = self.image_shape
        points = [_padded(height) * _padded(width) / 4**scale for scale in range(SCALES + 1)]
        transform = [2.5 * count * math.log2(count) for count in points]
        total = transform[0]
        for scale in range(SCALES):
            total += ORIENTATIONS * (2.0 * points[0] + 2.0 * points[scale] + 2.0 * transform[scale])
            for finer in range(scale + 1, SCALES):
                total += ORIENTATIONS**2 * (2.0 * points[scale] + 2.0 * points[finer] + 2.0 * transform[finer])
        return float(colours * (total + CHANNELS * (0.5 * points[0] + transform[SCALES])))

    def objection(self) -> str | None:
        """Why such images have no such features; None if they have."""
        if min(self.image_shape[:2]) < STRIDE or any(side % STRIDE for side in self.image_shape[:2]):
            return (
                f"image_shape {list(self.image_shape)}: height and width must be multiples of {STRIDE}; pad the images"
            )
        return None

    def __call__(self, inputs: np.ndarray, scaled: Callable[[Array], Array]) -> np.ndarray:
        """Features of every image, in half precision, scaled so that each image's are at most about 1 long.

        `scaled` makes floating-point numbers of inputs as they are stored.
        """
        height, width, colours = self.image_shape
        images = inputs.reshape(-1, height, width, colours)
        size = min(AT_A_TIME, len(images))
        features = np.empty((len(images), self.num_features), np.float16)

        def fill(start: int) -> None:
            some = images[start : start + size]
            whole = np.concatenate([some, images[: size - len(some)]])  # one shape, so that one program serves all
            channels_first = jnp.moveaxis(scaled(jnp.asarray(whole)), -1, 1)
            features[start : start + size] = np.asarray(_features(channels_first))[: len(some)]

        starts = range(0, len(images), size)
        with ThreadPoolExecutor(os.cpu_count()) as threads:  # XLA computes a Fourier transform on one core
            list(threads.map(fill, starts))
        return features


@jax.jit
def _features(images: Images) -> Float[Array, "image feature"]:
    return _normalised(scattered(images)).astype(jnp.float16)


@jax.jit
def scattered(images: Images) -> Float[Array, "image colour channel height width"]:
    """Scattering coefficients of orders 0, 1 and 2 at every fourth pixel."""
    before = [(_padded(side) - side) // 2 for side in images.shape[2:]]
    after = [_padded(side) - side - first for side, first in zip(images.shape[2:], before, strict=True)]
    filters = _filters(_padded(images.shape[2]), _padded(images.shape[3]))
    spectrum = jnp.fft.fft2(jnp.pad(images, [(0, 0), (0, 0), *zip(before, after, strict=True)], mode="reflect"))
    parts = [_averaged(spectrum[:, :, None], filters.average[0], 0)]
    second = []
    for scale in range(SCALES):
        first = _modulus(_filtered(spectrum[:, :, None], filters.wavelets[scale][0]), scale)
        parts.append(_averaged(first, filters.average[scale], scale))
        for finer in range(scale + 1, SCALES):
            both = _modulus(_filtered(first[:, :, :, None], filters.wavelets[finer][scale]), finer - scale)
            pairs = _averaged(both, filters.average[finer], finer)
            second.append(pairs.reshape(*pairs.shape[:2], ORIENTATIONS**2, *pairs.shape[4:]))
    every = jnp.concatenate([*parts, *second], axis=2)
    (top, left), (height, width) = (first // STRIDE for first in before), (side // STRIDE for side in images.shape[2:])
    return every[..., top : top + height, left : left + width]


def _padded(side: int) -> int:
    """Pixels with those that are added by reflection."""
    return ((side + STRIDE) // STRIDE + 1) * STRIDE


def _filtered(spectrum: Array, response: np.ndarray) -> Array:
    """A spectrum times that of a filter, whose axes are the last ones."""
    return spectrum * response.reshape(*[1] * (spectrum.ndim - response.ndim), *response.shape)


def _modulus(spectrum: Array, halvings: int) -> Array:
    """The spectrum of the modulus of a signal, at every so many-th pixel."""
    return jnp.fft.fft2(jnp.abs(jnp.fft.ifft2(_coarser(spectrum, halvings))))


def _averaged(spectrum: Array, average: np.ndarray, scale: int) -> Array:
    return jnp.real(jnp.fft.ifft2(_coarser(_filtered(spectrum, average), SCALES - scale)))


def _coarser(spectrum: Array, halvings: int) -> Array:
    """The spectrum of every second, fourth, ... pixel: frequencies that can no longer be told apart are averaged."""
    step = 1 << halvings
    *batch, height, width = spectrum.shape
    blocks = spectrum.reshape(*batch, step, height // step, step, width // step)
    return jnp.mean(blocks, axis=(-4, -2))


def _normalised(coefficients: Float[Array, "image colour channel height width"]) -> Float[Array, "image feature"]:
    """Each image's channels, in groups, at mean 0 and variance 1, all divided by the root of their number."""
    images, colours, channels, height, width = coefficients.shape
    groups = coefficients.reshape(images, GROUPS, colours * channels // GROUPS * height * width)
    mean, variance = groups.mean(axis=2, keepdims=True), groups.var(axis=2, keepdims=True)
    unit = (groups - mean) / jnp.sqrt(variance + SMALLEST_VARIANCE)
    return unit.reshape(images, -1) / math.sqrt(colours * channels * height * width)


@dataclasses.dataclass(frozen=True)
class _Filters:
    """Spectra of the filters, which are real."""

    average: list[np.ndarray]
    """At each resolution."""
    wavelets: list[list[np.ndarray]]
    """For each scale, at each resolution finer than it: eight orientations."""


@functools.cache
def _filters(height: int, width: int) -> _Filters:
    average = _gabor(height, width, 0.8 * 2 ** (SCALES - 1), 0.0, 0.0, 1.0)
    wavelets = []
    for scale in range(SCALES):
        angles = [(ORIENTATIONS // 2 - 1 - turn) * np.pi / ORIENTATIONS for turn in range(ORIENTATIONS)]
        own = np.stack([_morlet(height, width, 0.8 * 2**scale, angle, 0.75 * np.pi / 2**scale) for angle in angles])
        wavelets.append([_folded(own, halvings) for halvings in range(scale + 1)])
    return _Filters([_folded(average, halvings) for halvings in range(SCALES)], wavelets)


def _folded(spectrum: np.ndarray, halvings: int) -> np.ndarray:
    """A filter's spectrum at a coarser resolution."""
    step = 1 << halvings
    *rest, height, width = spectrum.shape
    folded = spectrum.reshape(*rest, step, height // step, step, width // step).sum(axis=(-4, -2))
    return np.asarray(folded, np.float32)


def _morlet(height: int, width: int, sigma: float, angle: float, frequency: float) -> np.ndarray:
    """A wave under a bell, less as much of the bell as makes its mean zero."""
    slant = 4.0 / ORIENTATIONS
    wave = _gabor(height, width, sigma, angle, frequency, slant)
    bell = _gabor(height, width, sigma, angle, 0.0, slant)
    return np.asarray(wave - bell * (wave[0, 0] / bell[0, 0]))


def _gabor(height: int, width: int, sigma: float, angle: float, frequency: float, slant: float) -> np.ndarray:
    """Spectrum of a wave under a Gaussian bell on a torus."""
    total = np.zeros((height, width), complex)
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.array([[cosine, -sine], [sine, cosine]])
    shape = turn @ np.diag([1.0, slant * slant]) @ turn.T / (2.0 * sigma * sigma)
    for over_y, over_x in itertools.product(range(-2, 3), repeat=2):
        y, x = np.mgrid[over_y * height : (over_y + 1) * height, over_x * width : (over_x + 1) * width]
        bell = shape[0, 0] * y * y + (shape[0, 1] + shape[1, 0]) * x * y + shape[1, 1] * x * x
        total += np.exp(-bell + 1j * frequency * (y * cosine + x * sine))
    return np.real(np.fft.fft2(total / (2.0 * np.pi * sigma * sigma / slant)))
