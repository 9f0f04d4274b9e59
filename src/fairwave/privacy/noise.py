"""Where the noise of a proved release comes from.

`simulation` is seeded single precision: repeatable, and worthless against whoever knows the seed or looks at the last
bits. `hardened` and `exact` run on the host, draw from the operating system, and never repeat.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jaxtyping import Array, Float, UInt32

from fairwave.privacy.exact_noise import exactly_noised
from fairwave.privacy.hardened_noise import DISTANCE, hardened_noised
from fairwave.types import Key, Scalar

Source = Literal["simulation", "hardened", "exact"]
Values = Float[Array, "..."]

_ON_HOST: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "hardened": hardened_noised,
    "exact": exactly_noised,
}


def noised(source: Source, values: Values, std: Scalar | float, key: Key) -> Values:
    """Values plus Gaussian noise of that std; the key serves the seeded source only."""
    if source == "simulation":
        return values + (std * standard_normal(key, values.shape)).astype(values.dtype)
    return on_host_noised(source, [values], std)[0]


def on_host_noised(source: Source, parts: list[Values], std: Scalar | float) -> list[Values]:
    """The same for several arrays, with noise that the host draws in one call."""
    # JAX calls the host from threads of its own, in which double precision is off: such numbers would arrive rounded.
    # As words of 32 bits they arrive as they are, whatever the thread's settings.
    words = [part if part.dtype == jnp.float32 else _as_words(part.astype(jnp.float64)) for part in parts]
    on_host = functools.partial(_called_back, _ON_HOST[source])
    given = io_callback(on_host, [jax.typeof(part) for part in words], words, _as_words(jnp.asarray(std, jnp.float64)))
    return [
        part if part.dtype == jnp.float32 else jax.lax.bitcast_convert_type(part, jnp.float64).astype(asked.dtype)
        for part, asked in zip(given, parts, strict=True)
    ]


def random_bits(source: Source, count: int, key: Key) -> UInt32[Array, " count"]:
    """Bits that decide who is in a batch; as secret as the noise."""
    if source == "simulation":
        return jax.random.bits(key, (count,), jnp.uint32)
    shape = jax.ShapeDtypeStruct((count,), jnp.uint32)  # type: ignore[no-untyped-call]
    return io_callback(functools.partial(_system_bits, count), shape)  # type: ignore[no-any-return]


def floating_point_delta(source: Source, num_values: int) -> float:
    """What a source adds to delta for so many values: how far its law may be from a rounded Gaussian's.

    None is given for `simulation`, which protects nothing; `exact` samples a discrete Gaussian without error.
    """
    return DISTANCE * num_values if source == "hardened" else 0.0


def standard_normal(key: Key, shape: tuple[int, ...]) -> Float[Array, ...]:
    """The numbers of `jax.random.normal` in single precision, to the bit, in half the time on a CPU.

    There JAX keeps the generator's rounds in a loop of their own, through memory; written out, they become one with
    what uses the numbers. Noise is drawn in every step of private training, where this counts.
    """
    size = int(np.prod(shape, dtype=np.int64))
    if size >= 2**32:
        return jax.random.normal(key, shape, jnp.float32)
    first, second = _threefry(jax.random.key_data(key), jax.lax.iota(jnp.uint32, size))
    bits = first ^ second
    unit = jax.lax.bitcast_convert_type((bits >> jnp.uint32(9)) | jnp.uint32(0x3F800000), jnp.float32)
    low = np.nextafter(np.float32(-1.0), np.float32(0.0))
    uniform = jnp.maximum(low, (unit - np.float32(1.0)) * (np.float32(1.0) - low) + low)
    return (np.float32(np.sqrt(2.0)) * jax.lax.erf_inv(uniform)).reshape(shape)


def _system_bits(count: int) -> np.ndarray:
    return np.frombuffer(os.urandom(4 * count), np.uint32)


def _as_words(values: Values) -> UInt32[Array, "... 2"]:
    return jax.lax.bitcast_convert_type(values, jnp.uint32)


def _called_back(draw: Callable[[np.ndarray, float], np.ndarray], parts: list[Array], std: Array) -> list[np.ndarray]:
    exact_std = float(_from_words(std))
    return [_noised_words(draw, np.asarray(part), exact_std) for part in parts]


def _noised_words(draw: Callable[[np.ndarray, float], np.ndarray], part: np.ndarray, std: float) -> np.ndarray:
    """Sources draw for arrays of at least one axis; a parameter may be a single number."""
    if part.dtype == np.float32:
        return draw(np.atleast_1d(part).astype(np.float64), std).astype(np.float32).reshape(part.shape)
    given = draw(np.atleast_1d(_from_words(part)), std)
    return np.ascontiguousarray(given, np.float64)[..., None].view(np.uint32).reshape(part.shape)


def _from_words(words: Array | np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(words)).view(np.float64)[..., 0]


def _threefry(key: Array, counter: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011) of the counters (0, counter)."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(0x1BD11BDA))
    first, second = jnp.zeros_like(counter) + keys[0], counter + keys[1]
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            first = first + second
            second = first ^ ((second << jnp.uint32(rotation)) | (second >> jnp.uint32(32 - rotation)))
        first = first + keys[(group + 1) % 3]
        second = second + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return first, second
