"""The access point's own training from the copies that it sent: directions, and deviations that follow work."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from fairwave import load_scenario, simulate
from fairwave.engine.reference_training import ReferenceTraining, reference_directions, reference_training
from fairwave.errors import ScenarioError
from fairwave.learning.local import train, update_of
from fairwave.learning.loss import Samples
from fairwave.learning.models import model_of
from fairwave.scenario.cheating_parameters import Adversary, Cheating
from fairwave.scenario.parameters import Scenario

SMALL = [
    *("learning.model=softmax", "learning.layer_sizes=[784, 10]", "learning.learning_rate=0.5"),
    "learning.gradient_exchange=false",
    *("learning.batch_size=16", "defences.reference_iterations=10", "defences.validation_samples=200"),
    *("privacy.similarity=training", "privacy.similarity_memory=0.9", "data.samples_per_device=200"),
]


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("small", SMALL)


@pytest.fixture(scope="module")
def reference(scenario: Scenario) -> ReferenceTraining:
    found = reference_training(scenario, model_of(scenario.learning))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def held() -> tuple[jax.Array, jax.Array]:
    draws = np.random.default_rng(0)
    return jnp.asarray(draws.uniform(size=(50, 784)), jnp.float32), jnp.asarray(draws.integers(0, 10, 50))


def directions(reference: ReferenceTraining, held: tuple[jax.Array, jax.Array], noise: np.ndarray) -> np.ndarray:
    params = reference.model.init(jax.random.key(1))
    copies = ravel_pytree(params)[0][None, :] + jnp.asarray(noise, jnp.float32)
    found, reached = reference_directions(reference, params, copies, held, jax.random.key(2), jnp.asarray(0))
    assert bool(jnp.all(reached >= 0.0))
    return np.asarray(found)


def test_the_response_changes_its_sign_with_the_noise(
    reference: ReferenceTraining, held: tuple[jax.Array, jax.Array]
) -> None:
    noise = 0.1 * np.random.default_rng(3).normal(size=(1, 7850))
    response, late = directions(reference, held, np.concatenate([noise, -noise]))
    np.testing.assert_allclose(response[0], -response[1], atol=1e-5)
    assert np.linalg.norm(response[0]) > 1e-2
    for each in (response, late):  # without the noise itself, which can be guessed
        assert abs(each[0] @ noise[0]) < 1e-3 * np.linalg.norm(each[0]) * np.linalg.norm(noise)
    assert not np.allclose(late[0], -late[1], atol=1e-3)


def test_directions_are_those_of_local_training(
    reference: ReferenceTraining, held: tuple[jax.Array, jax.Array]
) -> None:
    """Against two calls of the devices' training, one after the other."""
    params = reference.model.init(jax.random.key(1))
    samples = Samples(*held, jnp.arange(50), jnp.asarray(50))

    def trained(start: object, part: int, steps: int) -> object:
        key, learning = jax.random.fold_in(jax.random.key(2), part), reference.learning
        rate, size = learning.learning_rate, learning.batch_size
        options = {"iterations": jnp.asarray(steps), "batch_size": size, "learning_rate": rate}
        return train(reference.model, start, None, samples, key=key, **options)

    midway = trained(params, 0, 4)
    late = ravel_pytree(update_of(trained(midway, 1, 6), midway))[0]
    found = directions(reference, held, np.zeros((1, 7850)))
    np.testing.assert_allclose(found[1, 0], late, atol=1e-6)
    np.testing.assert_array_equal(found[0, 0], 0.0)  # a copy without noise leaves nothing to respond to


def test_an_exchange_of_gradients_takes_the_answer_away() -> None:
    with pytest.raises(ScenarioError, match="gradient_exchange to false"):
        load_scenario("small", ["privacy.similarity=training", "learning.gradient_exchange=true"])


def test_who_does_not_train_deviates_and_who_trains_does_not(scenario: Scenario) -> None:
    cast = Cheating(adversaries=(Adversary(behaviour="noise_update", devices=(1,), first_round=2),))
    run = simulate(scenario.model_copy(update={"cheating": cast}), ["proposed"], rounds=6).results
    deviation = run["deviation"].values[0, 0, -1]
    assert deviation[1] > 0.9
    assert np.delete(deviation, 1).mean() < 0.2
