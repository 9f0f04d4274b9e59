"""Server optimisers against Flower's own strategies, given the same updates, and against steps worked by hand.

Flower 1.41 differs from Algorithm 2 of Reddi et al. in two things: second moments begin at zero instead of tau squared
or more, and FedAdam's rate is corrected as Adam's is, with a power that is one ahead of the round's number.
"""

from __future__ import annotations

import time

import jax.numpy as jnp
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message, Metadata, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAdagrad, FedAdam, FedAvgM, FedYogi

from fairwave.errors import ScenarioError
from fairwave.extensions import SCHEMES
from fairwave.policy.server_optimizers import Moments, yogi_second_moment
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.peers import Peers
from fairwave.schemes.scheme import SchemeSettings
from tests.builders import updates_of

RATE, MOMENTUM, DECAY, TAU = 0.07, 0.8, 0.95, 0.01
SETTINGS = SchemeSettings(
    Peers(
        server_rate=RATE,
        adaptive_rate=RATE,
        server_momentum=MOMENTUM,
        second_moment_decay=DECAY,
        adaptive_tau=TAU,
    ),
    learning_rate=0.1,
)
START = np.array([1.0, -2.0, 0.5, 0.0])
ROUNDS = np.random.default_rng(0).normal(scale=[1.0, 0.1, 0.01, 1e-4], size=(3, 5, 4))
"""Three rounds of updates by five devices; values differ in scale, below tau and above it."""
LATE = 10**6
"""A round so late that Flower's correction of the rate is gone."""
SHARED = {"eta": RATE, "tau": TAU}
FLOWERS = {
    "fedavgm": lambda: FedAvgM(server_learning_rate=RATE, server_momentum=MOMENTUM),
    "fedadam": lambda: FedAdam(**SHARED, beta_1=MOMENTUM, beta_2=DECAY),
    "fedyogi": lambda: FedYogi(**SHARED, beta_1=MOMENTUM, beta_2=DECAY),
    "fedadagrad": lambda: FedAdagrad(**SHARED),
}
ADAPTIVE = ("fedadam", "fedyogi", "fedadagrad")


def record_of(model: np.ndarray) -> ArrayRecord:
    return ArrayRecord({"w": Array(np.asarray(model))})


def reply(model: np.ndarray) -> Message:
    content = RecordDict({"arrays": record_of(model), "metrics": MetricRecord({"num-examples": 10})})
    metadata = Metadata(1, "a", 1, 2, "", "", time.time(), 60.0, "train")
    return Message(content, metadata=metadata)


def by_flower(name: str, second: float | None, first_round: int) -> list[np.ndarray]:
    """Flower's model after each of the rounds; `second` is put where it keeps its second moment, which is else zero."""
    strategy, model, models = FLOWERS[name](), START, []
    if second is not None:
        strategy.v_t = {"w": np.full_like(START, second)}
    for number, updates in enumerate(ROUNDS):
        strategy.current_arrays = record_of(model) if name == "fedavgm" else {"w": model}
        moved, _ = strategy.aggregate_train(first_round + number, [reply(model + update) for update in updates])
        model = moved["w"].numpy()
        models.append(model)
    return models


def by_scheme(name: str, memory: object = None) -> list[np.ndarray]:
    scheme, model, models = SCHEMES[name], START, []
    memory = scheme.start(SETTINGS, 5, jnp.asarray(START)) if memory is None else memory
    for updates in ROUNDS:
        step, memory = scheme.combine(SETTINGS, updates_of(updates), memory)
        model = model + np.asarray(step)
        models.append(model)
    return models


@pytest.mark.parametrize("name", FLOWERS)
def test_three_rounds_are_flowers(name):
    """With the first second moment of Algorithm 2 put into Flower's, and without its correction of FedAdam's rate."""
    second = TAU**2 if name in ADAPTIVE else None
    ours, theirs = by_scheme(name), by_flower(name, second, LATE)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    assert np.abs(ours[-1] - START).max() > 0.05


@pytest.mark.parametrize("name", ADAPTIVE)
def test_from_flowers_own_start_it_is_flowers_too(name):
    zero = Moments(jnp.zeros(4), jnp.zeros(4))
    theirs = by_flower(name, None, LATE)
    np.testing.assert_allclose(by_scheme(name, zero), theirs, rtol=1e-6, atol=1e-9)
    assert np.abs(np.asarray(by_scheme(name)) - theirs).max() > 1e-4  # the start does make a difference


def test_flowers_fedadam_differs_by_its_correction():
    """In round 1 its rate has the factor that Adam has in its second step."""
    factor = np.sqrt(1.0 - DECAY**2) / (1.0 - MOMENTUM**2)
    ours, theirs = by_scheme("fedadam")[0] - START, by_flower("fedadam", TAU**2, 1)[0] - START
    np.testing.assert_allclose(theirs, factor * ours, rtol=1e-6)
    assert abs(factor - 1.0) > 0.1


@pytest.mark.parametrize("name", ["fedadagrad", "fedadam", "fedyogi"])
def test_a_value_too_large_to_be_squared_does_not_stop_the_model_for_good(name):
    scheme = SCHEMES[name]
    memory = scheme.start(SETTINGS, 1, jnp.zeros(2, jnp.float32))
    _, memory = scheme.combine(SETTINGS, updates_of(np.array([[1e30, 0.1]], np.float32)), memory)
    step, _ = scheme.combine(SETTINGS, updates_of(np.array([[0.1, 0.1]], np.float32)), memory)
    assert (jnp.abs(step) > 1e-4).all() and jnp.isfinite(step).all()


def test_yogis_second_moment_moves_by_a_part_of_the_square():
    second, mean = jnp.array([1.0, 1.0, 4.0]), jnp.array([0.5, 3.0, 2.0])
    # below: 1 - 0.1 * 0.25; above: 1 + 0.1 * 9; equal: it stays
    np.testing.assert_allclose(yogi_second_moment(second, mean, 0.9), [0.975, 1.9, 4.0], rtol=1e-12)
    assert (yogi_second_moment(mean**2 * (1 + 1e-9), mean, 0.0) >= 0.0).all()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("peers.server_momentum=1", "peers.server_momentum"),
        ("peers.second_moment_decay=-0.1", "peers.second_moment_decay"),
        ("peers.adaptive_tau=0", "peers.adaptive_tau"),
        ("peers.adaptive_rate=0", "peers.adaptive_rate"),
        ("peers.fedprox_weight=-1", "peers.fedprox_weight"),
    ],
)
def test_parameters_out_of_range_are_refused(override, said):
    with pytest.raises(ScenarioError, match=said):
        load_scenario("small", [override])
