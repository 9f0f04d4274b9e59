"""One round of the engine against a plain NumPy twin, and what must not depend on how it is run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.data.sources import DataSet
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.device_map import Execution
from fairwave.engine.state import State
from fairwave.extensions import SCHEMES
from fairwave.keys import Stream, device_key
from fairwave.learning.loss import Samples, local_gradient, local_loss, mean_loss, scaled
from fairwave.learning.model import Model
from fairwave.learning.models import model_of
from fairwave.policy.device_plan import Case
from fairwave.scenario.parameters import Scenario
from tests.builders import clusters_scenario, rounds_of

TWIN = Path(__file__).parents[3] / "examples" / "one_round_by_hand.py"
spec = importlib.util.spec_from_file_location("one_round_by_hand", TWIN)
assert spec is not None and spec.loader is not None
by_hand = importlib.util.module_from_spec(spec)
spec.loader.exec_module(by_hand)


@pytest.fixture(scope="module")
def data() -> DataSet:
    draw = np.random.default_rng(0)
    centres = draw.integers(0, 256, (3, 30))
    labels = draw.integers(0, 3, 400).astype(np.int32)
    inputs = np.clip(centres[labels] + draw.normal(0, 40, (400, 30)), 0, 255).astype(np.uint8)
    return DataSet(inputs[:300], labels[:300], inputs[300:], labels[300:])


def scenario(*overrides: str) -> Scenario:
    return clusters_scenario(*overrides, devices=3)


def cell(data: DataSet, name: str, *overrides: str, threads: int | None = None) -> SimulatedCell:
    chosen = scenario(*overrides)
    return SimulatedCell(chosen, SCHEMES[name], model_of(chosen.learning), data, Execution(threads=threads))


def as_numpy(tree, device: int | None = None):
    return [{k: np.asarray(v if device is None else v[device], np.float64) for k, v in layer.items()} for layer in tree]


def picks(run: SimulatedCell, number: int, device: int, held: int, iterations: int) -> list[np.ndarray]:
    """The samples of every batch, from the same addresses as the engine's."""
    key = device_key(run.access_point.root, number, Stream.BATCH, device)
    draw = jax.vmap(lambda i: jax.random.randint(jax.random.fold_in(key, i), (16,), 0, held))
    return list(np.asarray(draw(jnp.arange(iterations))))


def gap_to_the_twin(data: DataSet, run: SimulatedCell, state: State, number: int, weight: float) -> tuple[State, float]:
    """The next state, and the largest difference between the engine's round and the twin's, over all of its results."""
    after, record = run.round(state, number)
    own = [run.honest_devices.holdings.of(k) for k in range(3)]
    batches = [picks(run, number, k, own[k].size, int(record.plan.local_iterations[k])) for k in range(3)]
    inputs = data.train_inputs.astype(np.float64) / 255
    model, updates, losses = by_hand.one_round(
        as_numpy(state.server.global_params),
        [as_numpy(run.copies(state), k) for k in range(3)],
        [(inputs[k], data.train_labels[k]) for k in own],
        batches,
        learning_rate=0.05,
        gradient_weight=weight,
    )
    lengths = [np.sqrt(sum((v**2).sum() for layer in u for v in layer.values())) for u in updates]
    pairs = [(np.asarray(record.loss), losses), (0.1 * np.asarray(record.update_norm), 0.1 * np.array(lengths))]
    for ours, theirs in zip(as_numpy(after.server.global_params), model, strict=True):
        pairs += [(ours[name], theirs[name]) for name in ours]
    return after, max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs)


@pytest.mark.parametrize("weight", [0.0, 1.0, 0.3])
def test_two_rounds_agree_with_the_twin(data, weight):
    """Without noise, to single precision; the batches are read off the same addresses."""
    run = cell(data, "no_privacy", f"learning.gradient_weight={weight}")
    state = run.start()
    for number in range(2):
        state, gap = gap_to_the_twin(data, run, state, number, weight)
        assert gap < 2e-5


def test_a_twin_with_the_wrong_correction_is_noticed(data):
    """The mutant: the engine corrects with the whole mean gradient, the twin with none of it."""
    run = cell(data, "no_privacy", "learning.gradient_weight=1.0")
    _, gap = gap_to_the_twin(data, run, run.start(), 0, 0.0)
    assert gap > 1e-3


def test_surrogate_gradient_by_finite_differences(data):
    """Eq. (4): the gradient that training follows at h is that of L(w+h) - (grad L(w) - xi * mean)' h."""
    network = model_of(scenario().learning)
    params = network.init(jax.random.key(1))
    flat, unravel = jax.flatten_util.ravel_pytree(jax.tree.map(lambda leaf: leaf.astype(jnp.float64), params))
    inputs, labels = jnp.asarray(data.train_inputs / 255.0), jnp.asarray(data.train_labels)
    own = jax.grad(lambda v: mean_loss(network, unravel(v), inputs, labels))(flat)
    mean = own + 0.1 * jnp.sin(jnp.arange(flat.size))
    step = 0.01 * jnp.cos(jnp.arange(flat.size))

    def surrogate(h):
        return mean_loss(network, unravel(flat + h), inputs, labels) - (own - 0.7 * mean) @ h

    from fairwave.learning.local import correction_term, surrogate_gradient

    batch = jax.grad(lambda v: mean_loss(network, unravel(v), inputs, labels))(flat + step)
    ours = surrogate_gradient(batch, correction_term(own, mean, 0.7))
    for index in range(0, flat.size, 37):
        nudge = jnp.zeros(flat.size).at[index].set(1e-6)
        slope = (surrogate(step + nudge) - surrogate(step - nudge)) / 2e-6
        assert float(ours[index]) == pytest.approx(float(slope), abs=1e-6)


@pytest.mark.parametrize("held", [1, 7, 1_000, 1_001, 2_500])
def test_chunks_do_not_change_loss_or_gradient(held):
    draw = np.random.default_rng(1)
    inputs, labels = jnp.asarray(draw.random((3_000, 5)), jnp.float32), jnp.asarray(draw.integers(0, 2, 3_000))
    own = np.zeros(2_600, np.int32)
    own[:held] = draw.permutation(3_000)[:held]
    samples = Samples(inputs, labels, jnp.asarray(own), jnp.asarray(held))
    network = model_of(scenario("learning.layer_sizes=[5, 4, 2]").learning)
    params = network.init(jax.random.key(0))
    whole, gradient = jax.value_and_grad(
        lambda p: mean_loss(network, p, scaled(inputs[own[:held]]), labels[own[:held]])
    )(params)
    ours, ours_gradient = local_gradient(network, params, samples)
    assert float(local_loss(network, params, samples)) == pytest.approx(float(whole), rel=1e-5)
    assert float(ours) == pytest.approx(float(whole), rel=1e-5)
    for a, b in zip(jax.tree.leaves(ours_gradient), jax.tree.leaves(gradient), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_number_of_threads_changes_nothing(data):
    results = []
    for threads in (1, 2, 3):
        run = cell(data, "fair_noise_only", "cell.num_devices=5", threads=threads)
        state = run.start()
        for number in range(3):
            state, record = run.round(state, number)
        results.append((state, record))
    for other in results[1:]:
        for a, b in zip(jax.tree.leaves(results[0]), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-5, atol=1e-6)


def test_a_round_replays_from_its_state_alone(data):
    run = cell(data, "proposed", "privacy.local_noise=true")
    states = [state for state, _ in rounds_of(run, 4)]
    fresh = cell(data, "proposed", "privacy.local_noise=true")
    again = [state for state, _ in rounds_of(fresh, 4, states[1], first=2)]
    for a, b in zip(jax.tree.leaves(states[3]), jax.tree.leaves(again[1]), strict=True):
        assert (np.asarray(a) == np.asarray(b)).all()


def test_all_in_outage_changes_nothing(data):
    run = cell(data, "proposed", "radio.max_transmit_power_w=1e-9")
    state = run.start()
    after, record = run.round(state, 0)
    assert (np.asarray(record.plan.case) == Case.OUTAGE).all() and not np.asarray(record.delivered).any()
    kept = [
        (each.server.global_params, run.copies(each), each.devices.effort, each.server.deviation)
        for each in (state, after)
    ]
    for a, b in zip(*map(jax.tree.leaves, kept), strict=True):
        assert (np.asarray(a) == np.asarray(b)).all()
    assert float(record.plan.energy_j.sum()) == 0.0


def test_a_foreign_model_can_be_trained(data):
    """Any pytree with `init` and `losses`: least squares on one weight vector, without classes."""

    def losses(params, inputs, labels):
        return (inputs @ params["w"] - labels) ** 2

    linear = Model(init=lambda key: {"w": jnp.zeros(30, jnp.float32)}, losses=losses)
    run = SimulatedCell(scenario("learning.learning_rate=0.01"), SCHEMES["no_privacy"], linear, data)
    records = [record for _, record in rounds_of(run, 5)]
    assert float(records[-1].loss.mean()) < 0.5 * float(records[0].received_loss.mean())
    assert np.isnan(records[-1].test_accuracy)


def test_models_are_evaluated_at_the_cadence_and_nothing_else_changes(data):
    every, third = (
        [record for _, record in rounds_of(cell(data, "proposed", f"run.evaluate_every={n}"), 4)] for n in (1, 3)
    )
    for number, (all_known, some) in enumerate(zip(every, third, strict=True)):
        known = number == 2
        for name in ("global_loss", "test_accuracy", "membership_auc", "received_accuracy"):
            assert np.isfinite(getattr(all_known, name)).all() and np.isfinite(getattr(some, name)).all() == known
        for name in ("loss", "received_loss", "deviation", "noise_std"):
            assert (np.asarray(getattr(all_known, name)) == np.asarray(getattr(some, name))).all()


@pytest.mark.parametrize("kind", ["literal", "update", "leave_one_out"])
def test_the_best_device_deviates_by_exactly_nothing(kind: str, data: DataSet) -> None:
    """Not by a rounding error either: a device's effort fit takes 0 for "expect nothing from working more"."""
    run = cell(data, "proposed", f"privacy.similarity={kind}", "privacy.local_noise=false")
    least = [float(np.min(record.deviation)) for _, record in rounds_of(run, 12)]
    assert least == [0.0] * 12
