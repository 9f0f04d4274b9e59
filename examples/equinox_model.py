"""Bring your own model: an equinox network, trained by every scheme of fairwave.

    python examples/equinox_model.py

A model is a pytree of parameters with `init` and `losses`. An equinox module is a pytree already; its static parts
(activation functions and the like) are set aside, because parameters are averaged and noise is added to them.
"""

from __future__ import annotations

import equinox as eqx
import jax

import fairwave
from fairwave.learning.model import Model, classifier


def equinox_model(width: int = 32) -> Model:
    """An equinox MLP for images of 784 values and 10 classes."""

    def network(key: jax.Array) -> eqx.nn.MLP:
        return eqx.nn.MLP(784, 10, width, depth=2, key=key)

    _, static = eqx.partition(network(jax.random.key(0)), eqx.is_array)

    def init(key: jax.Array) -> eqx.nn.MLP:
        return jax.tree.map(lambda leaf: leaf.astype("float32"), eqx.filter(network(key), eqx.is_array))

    def logits(params: eqx.nn.MLP, inputs: jax.Array) -> jax.Array:
        return jax.vmap(eqx.combine(params, static))(inputs.reshape(inputs.shape[0], -1))

    return classifier(init, logits)


if __name__ == "__main__":
    results = fairwave.simulate("small", ["proposed", "no_privacy"], rounds=5, model=equinox_model()).results
    print(results["loss"].mean("device").squeeze("seed").to_pandas().round(3))
