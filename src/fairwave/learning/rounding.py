"""Values in 8 bits: each is rounded up or down at random, so that what arrives is right on average.

A chunk of values shares one step, the least power of two of which 127 reach its largest value. A value v between two
multiples of the step becomes the upper one with the probability with which v lies above the lower one. With a power of
two nothing else is rounded: the multiples, and the values that are made of them again, are exact in single precision,
and the same on every machine.

What arrives is off by less than a step in every value, and a step is below 2/127 of the chunk's largest value (or is
2^-126, the least). Its expectation is the value itself, up to 2^-24 of a step, for so fine are the random numbers. So d
values that share a step s are off by at most s sqrt(d) in length, and by s sqrt(d) / 2 in the root mean square.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int8, Int32

from fairwave.scenario.learning_parameters import VALUES_PER_STEP, num_steps
from fairwave.types import Key, Params

LARGEST = 127
"""Multiples of a step go from minus this to this."""
NOT_FINITE = -128
"""Stands for a value that is not finite, so that whoever receives it knows."""
LEAST_EXPONENT, LARGEST_EXPONENT = -126, 122
"""Exponents of steps: from the least normal number to what the largest number of single precision needs."""


def rounded(values: Params, key: Key) -> Int8[Array, " sent"]:
    """Values as they are sent: the multiple of each, then the exponent of every chunk's step."""
    chunks = _chunks(values.astype(jnp.float32))
    finite = jnp.isfinite(chunks)
    magnitude = jnp.where(finite & (jnp.abs(chunks) >= 2.0**LEAST_EXPONENT), jnp.abs(chunks), 0.0)
    exponents = _exponents(jnp.max(magnitude, axis=1))
    steps = magnitude * _power_of_two(-exponents)[:, None]
    below = jnp.floor(steps)
    bits = jax.random.bits(key, (values.size,), jnp.uint32) >> 8
    chance = _chunks(bits.astype(jnp.float32) * 2.0**-24)
    multiple = jnp.sign(chunks) * (below + (chance < steps - below))
    levels = jnp.where(finite, multiple, NOT_FINITE).astype(jnp.int8)
    return jnp.concatenate([levels.ravel()[: values.size], exponents.astype(jnp.int8)])


def restored(sent: Int8[Array, " sent"], size: int) -> Float[Array, " param"]:
    """The values that were sent, `size` of them; NaN where a value was not finite."""
    levels, exponents = _chunks(sent[:size]), sent[size:].astype(jnp.int32)
    values = levels.astype(jnp.float32) * _power_of_two(exponents)[:, None]
    return jnp.where(levels == NOT_FINITE, jnp.nan, values).ravel()[:size].astype(jnp.float32)


def _chunks(values: Array) -> Array:
    """Values in rows that share a step; the last one is filled up with zeros."""
    rows = num_steps(values.size)
    return jnp.pad(values, (0, rows * VALUES_PER_STEP - values.size)).reshape(rows, VALUES_PER_STEP)


def _exponents(largest: Float[Array, " chunk"]) -> Int32[Array, " chunk"]:
    """The least exponent e with largest <= 127 * 2^e, from the bits of the number: exact, where a logarithm is not."""
    bits = jax.lax.bitcast_convert_type(largest, jnp.int32)
    fraction = bits & 0x7FFFFF  # largest = (1 + fraction / 2^23) * 2^(exponent - 127), and 127 = (1 + 63 / 64) * 2^6
    return jnp.maximum((bits >> 23) - 133 + (fraction > 63 << 17), LEAST_EXPONENT)


def _power_of_two(exponents: Int[Array, " chunk"]) -> Float[Array, " chunk"]:
    """2^e for exponents of normal numbers, exactly."""
    return jax.lax.bitcast_convert_type((exponents.astype(jnp.int32) + 127) << 23, jnp.float32)
