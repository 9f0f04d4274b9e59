"""The form in which a device sends its gradient or its update, and what the access point makes of it.

With 32 bits it is the flat array of the values. With 8 bits it is one array of bytes: the multiple of each value, in
steps of its chunk, then the exponent of every chunk's step (`learning/rounding.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.learning.named_arrays import flat_form
from fairwave.learning.rounding import LARGEST_EXPONENT, LEAST_EXPONENT, restored
from fairwave.scenario.learning_parameters import num_steps

Layout: TypeAlias = Mapping[str, np.ndarray]
_restored = jax.jit(restored, static_argnums=1)


def sent_form(like: Layout, bits: int) -> tuple[int, np.dtype[Any]]:
    """Length and type of what is sent."""
    size, kind = flat_form(like)
    return (size + num_steps(size), np.dtype(np.int8)) if bits == 8 else (size, kind)


def has_sent_form(sent: np.ndarray, like: Layout, bits: int) -> bool:
    """Whether an array has the agreed length and type, and steps that can be."""
    size, kind = sent_form(like, bits)
    return type(sent) is np.ndarray and sent.shape == (size,) and sent.dtype == kind and has_steps(sent, like, bits)


def has_steps(sent: np.ndarray, like: Layout, bits: int) -> bool:
    """Whether the steps, where any are sent, are among those that rounding gives."""
    exponents = sent[flat_form(like)[0] :]
    return bits != 8 or bool(((exponents >= LEAST_EXPONENT) & (exponents <= LARGEST_EXPONENT)).all())


def received(sent: np.ndarray, like: Layout, bits: int) -> np.ndarray:
    """The values of what has the agreed form, in the order of the layout; not finite where a value was not."""
    size, kind = flat_form(like)
    return np.asarray(_restored(jnp.asarray(sent), size)).astype(kind) if bits == 8 else sent
