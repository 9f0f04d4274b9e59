"""Bring your own model: a flax network, trained by every scheme of fairwave. Needs `pip install flax`.

    python examples/flax_model.py

A model is a pytree of parameters with `init` and `losses`; flax's linen modules give both.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

import fairwave
from fairwave.learning.model import Model, classifier


class Network(nn.Module):
    """Two dense layers for 10 classes."""

    width: int = 32

    @nn.compact
    def __call__(self, inputs: jax.Array) -> jax.Array:
        """Scores of the classes."""
        hidden = nn.relu(nn.Dense(self.width)(inputs.reshape(inputs.shape[0], -1)))
        return nn.Dense(10)(hidden)


def flax_model(width: int = 32) -> Model:
    """The network above as a model for images of 784 values."""
    network = Network(width)

    def init(key: jax.Array) -> dict[str, object]:
        return dict(network.init(key, jnp.zeros((1, 784), jnp.float32)))

    return classifier(init, network.apply)


if __name__ == "__main__":
    results = fairwave.simulate("small", ["proposed", "no_privacy"], rounds=5, model=flax_model()).results
    print(results["loss"].mean("device").squeeze("seed").to_pandas().round(3))
