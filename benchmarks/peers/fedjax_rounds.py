"""FedJAX: `for_each_client` with its jit backend, one call per step with batches from the host.

python fedjax_rounds.py JOB
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import fedjax
import jax
import jax.numpy as jnp
import jobs
import numpy as np
from candidate import Wire
from fedjax.algorithms.fed_avg import create_train_for_each_client


def loss(params: list, batch: dict[str, jax.Array], rng: jax.Array) -> jax.Array:
    """Mean cross entropy of a batch."""
    hidden = batch["x"]
    for index, (weight, bias) in enumerate(params):
        hidden = hidden @ weight + bias
        hidden = jax.nn.relu(hidden) if index < len(params) - 1 else hidden
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(hidden), batch["y"][:, None], axis=1))


def main() -> None:
    """Rounds until the harness has enough."""
    wire, job = Wire(), jobs.ALL[sys.argv[1]]
    own, params, rng = jobs.shares(job), jax.tree_util.tree_map(jnp.asarray, job.weights()), job.rng(2)
    train = create_train_for_each_client(jax.grad(loss), fedjax.optimizers.sgd(job.learning_rate))
    key = jax.random.PRNGKey(0)

    def batches(client: int) -> Iterator[dict[str, np.ndarray]]:
        inputs, labels = own[client]
        for picks in job.picks(rng):
            yield {"x": inputs[picks], "y": labels[picks]}

    while True:
        total = fedjax.tree_util.tree_zeros_like(params)
        for _, moved in train(params, [(client, batches(client), key) for client in job.chosen(rng)]):
            total = fedjax.tree_util.tree_add(total, moved)
        mean = fedjax.tree_util.tree_inverse_weight(total, job.cohort)
        params = jax.block_until_ready(jax.tree_util.tree_map(jnp.subtract, params, mean))
        if not wire.turn():
            break
    wire.end(jobs.accuracy([(np.asarray(weight), np.asarray(bias)) for weight, bias in params]))


if __name__ == "__main__":
    main()
