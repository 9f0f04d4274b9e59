"""The loop of local training against a loop in plain Python."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.learning.descent import BLOCK, Step, descent

LENGTHS = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 7]
STEP = Step(
    draw=lambda operands, iteration: jnp.stack([iteration, operands["offset"] + iteration]),
    gradient=lambda operands, params, batch: {"w": params["w"] * 0.1 + batch.astype(jnp.float32)},
    move=lambda operands, params, gradient: {"w": params["w"] - operands["rate"] * gradient["w"]},
)


def by_hand(length: int, offset: int, rate: float) -> np.ndarray:
    w = np.array([1.0, 2.0])
    for iteration in range(length):
        w = w - rate * (0.1 * w + np.array([iteration, offset + iteration]))
    return w


def start() -> dict[str, jax.Array]:
    return {"w": jnp.array([1.0, 2.0], jnp.float32)}


@pytest.mark.parametrize("length", LENGTHS)
def test_one_device_takes_as_many_steps_as_it_is_told(length):
    operands = {"offset": jnp.asarray(5), "rate": jnp.asarray(0.3, jnp.float32)}
    trained = jax.jit(lambda n: descent(STEP, n, start(), operands))(jnp.asarray(length))
    np.testing.assert_allclose(trained["w"], by_hand(length, 5, 0.3), rtol=1e-5)


@pytest.mark.parametrize("shared_length", [True, False])
def test_many_take_as_many_as_each_is_told(shared_length):
    """With operands of which one is each device's own and one is everybody's."""
    lengths = np.full(len(LENGTHS), 17) if shared_length else np.array(LENGTHS)
    offsets = np.arange(len(LENGTHS))

    def one(length: jax.Array, offset: jax.Array) -> dict[str, jax.Array]:
        return descent(STEP, length, start(), {"offset": offset, "rate": jnp.asarray(0.3, jnp.float32)})

    if shared_length:
        trained = jax.jit(jax.vmap(one, in_axes=(None, 0)))(jnp.asarray(17), jnp.asarray(offsets))
    else:
        trained = jax.jit(jax.vmap(one))(jnp.asarray(lengths), jnp.asarray(offsets))
    expected = [by_hand(length, offset, 0.3) for length, offset in zip(lengths, offsets, strict=True)]
    np.testing.assert_allclose(trained["w"], np.stack(expected), rtol=1e-5)


def test_a_finished_device_keeps_its_model_where_its_gradient_is_not_finite():
    """Waiting for the others must not harm it: a gradient that it does not take may be anything."""
    explosive = Step(
        draw=lambda operands, iteration: jnp.asarray(iteration)[None],
        gradient=lambda operands, params, batch: {"w": jnp.where(batch[0] < 1, params["w"], jnp.inf)},
        move=STEP.move,
    )
    operands = {"offset": jnp.asarray(0), "rate": jnp.asarray(0.5, jnp.float32)}
    trained = jax.vmap(lambda n: descent(explosive, n, start(), operands))(jnp.asarray([1, 12]))["w"]
    np.testing.assert_allclose(trained[0], [0.5, 1.0])
    assert not np.isfinite(trained[1]).any()
