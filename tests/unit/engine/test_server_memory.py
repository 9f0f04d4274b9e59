"""What server optimisers carry from round to round: in the engine, in checkpoints, and in rounds without updates."""

from __future__ import annotations

import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import fairwave
from fairwave.errors import ScenarioError
from fairwave.runs.order import Order
from fairwave.runs.packing import pack_state, unpack_state
from tests.builders import SOFTMAX_MNIST, clusters_cell, leaves, rounds_of

OPTIMISERS = ("fedavgm", "fedadam", "fedyogi", "fedadagrad")
ALONE = "learning.gradient_exchange=false"


def models(states) -> np.ndarray:
    return np.array([ravel_pytree(state.server.global_params)[0] for state, _ in states], np.float64)


@pytest.mark.parametrize(
    "late", [(), ("cell.straggler_probability=0.5", "learning.late_rounds=2")], ids=["none", "late"]
)
def test_without_momentum_and_at_rate_1_it_is_the_mean(late):
    """Late updates are in it with their weights, as in the mean."""
    plain = rounds_of(clusters_cell("max_power", ALONE, *late), 4)
    same = rounds_of(clusters_cell("fedavgm", ALONE, "peers.server_momentum=0", *late), 4)
    np.testing.assert_allclose(models(same), models(plain), atol=1e-6)
    assert any(record.late_use is not None and record.late_use.weight.any() for _, record in same) == bool(late)


def test_a_model_moves_by_what_is_remembered():
    """The change of the model in every round follows from the moments after it, as Algorithm 2 has it."""
    cell = clusters_cell("fedadam", "cell.participants=2")
    done = rounds_of(cell, 4)
    before = np.asarray(ravel_pytree(cell.start().server.global_params)[0], np.float64)
    for state, model in zip((state for state, _ in done), models(done), strict=True):
        first, second = (np.asarray(kept, np.float64) for kept in leaves(state.server.scheme_memory))
        assert (second > 0.0).all() and (second != 1e-6).any()
        np.testing.assert_allclose(model - before, 0.01 * first / (np.sqrt(second) + 1e-3), atol=1e-6)
        before = model


@pytest.mark.parametrize("name", ["fedavgm", "fedadagrad"])
def test_a_round_without_updates_moves_nothing_and_changes_no_memory(name):
    done = rounds_of(clusters_cell(name, "cell.straggler_probability=0.8", devices=2), 8)
    arrived = [bool(np.asarray(record.delivered).any()) for _, record in done]
    empty = [number for number in range(1, 8) if not arrived[number]]
    assert empty and any(arrived[: empty[-1]])
    for number in empty:
        kept, last = (
            leaves((done[at][0].server.global_params, done[at][0].server.scheme_memory)) for at in (number, number - 1)
        )
        for ours, theirs in zip(kept, last, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    full = next(number for number in range(8) if arrived[number])
    assert any((leaf != 0.0).any() for leaf in leaves(done[full][0].server.scheme_memory))


def test_a_checkpoint_goes_on_where_it_was():
    cell = clusters_cell("fedyogi", "cell.participants=3")
    whole = rounds_of(cell, 4)
    restored = unpack_state(pack_state(whole[1][0]), like=cell.start())
    again = rounds_of(cell, 4, restored, 2)
    assert pack_state(again[-1][0]) == pack_state(whole[-1][0])


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_proof_about_devices_refuses_them(name):
    central = ("privacy.mode=device", "defences.use=[]", "privacy.max_epsilon=unset")
    with pytest.raises(ScenarioError, match="does more than take the mean of updates"):
        Order.checked(fairwave.load_scenario("fair-mlp", [*SOFTMAX_MNIST, *central]), (name,), (0,), 1)
