"""What hidden layers apply to their outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fairwave.scenario.learning_parameters import Activation

Elementwise: TypeAlias = Callable[[Array], Array]

ACTIVATIONS: dict[Activation, Elementwise] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
}
