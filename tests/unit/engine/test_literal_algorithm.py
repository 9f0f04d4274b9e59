"""Algorithm 1 to the letter: the access point overwrites its model, starts from zeros, and its sensitivity moves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.engine.cell import SimulatedCell
from fairwave.engine.round_record import ledger_events
from fairwave.engine.server import AccessPoint
from fairwave.engine.state import State
from fairwave.learning.model import flat_rows
from tests.builders import clusters_cell, leaves, rounds_of

OVERWRITE = "privacy.overwrite_model=true"
SHAPE = "learning.layer_sizes=[30, 64, 3]"
"""2,179 parameters: the std of so many draws is known to 1.5 %."""
LEVEL = 0.01 / 0.95 * np.sqrt(2.0 * np.log(1.25e5))
"""Noise std of a device without deviation, from the paper's Eq. (9)."""


def flat(tree: object) -> np.ndarray:
    return np.concatenate([leaf.ravel() for leaf in leaves(tree)])


def copies(run: SimulatedCell, state: State) -> np.ndarray:
    return np.asarray(flat_rows(run.copies(state))[0])


def first_round(scheme: str, *overrides: str) -> tuple[SimulatedCell, State, object]:
    run = clusters_cell(scheme, SHAPE, *overrides)
    return run, *rounds_of(run, 1)[0]


@pytest.mark.parametrize("scheme", ["proposed", "max_power"])
def test_the_noise_stays_in_the_model(scheme):
    """The same round with and without: the models differ by noise of the level without deviation, and by it alone."""
    _, kept, plain = first_round(scheme)
    _, overwritten, printed = first_round(scheme, OVERWRITE)
    noise = flat(overwritten.server.global_params) - flat(kept.server.global_params)
    assert noise.std() == pytest.approx(LEVEL, rel=5 / np.sqrt(2 * noise.size))  # five standard errors
    assert abs(noise.mean()) < 5 * LEVEL / np.sqrt(noise.size)
    np.testing.assert_allclose(printed.deviation, plain.deviation)  # scored against the true model
    np.testing.assert_allclose(printed.noise_std, plain.noise_std)
    assert float(printed.release_std) == pytest.approx(LEVEL) and float(plain.release_std) == 0.0


def test_the_benchmark_sends_its_one_noisy_model_to_everybody():
    run, state, _ = first_round("max_power", OVERWRITE)
    rows = copies(run, state)
    assert (rows == flat(state.server.global_params)).all()
    apart, state, _ = first_round("max_power")
    assert np.ptp(copies(apart, state), axis=0).min() > 0.0


def test_the_proposed_scheme_fills_copies_up_to_their_level():
    run, state, record = first_round("proposed", OVERWRITE)
    added = copies(run, state) - flat(state.server.global_params)
    wanted = np.sqrt(np.maximum(np.asarray(record.noise_std) ** 2 - LEVEL**2, 0.0))
    best = np.argmin(np.asarray(record.deviation))
    assert (added[best] == 0.0).all()
    others = np.delete(np.arange(len(added)), best)
    assert (wanted[others] > 0.0).all()
    np.testing.assert_allclose(added[others].std(axis=1), wanted[others], rtol=5 / np.sqrt(2 * added.shape[1]))


@pytest.mark.slow
def test_the_noise_of_all_rounds_adds_up():
    """With a learning rate that moves nothing, the model walks: its distance grows with the square root of rounds."""
    run = clusters_cell("max_power", SHAPE, OVERWRITE, rate=1e-9)
    start = flat(run.start().server.global_params)
    walked = [(flat(state.server.global_params) - start).std() for state, _ in rounds_of(run, 9)]
    assert walked[8] == pytest.approx(3 * LEVEL, rel=5 / np.sqrt(2 * start.size))
    assert walked[8] / walked[0] == pytest.approx(3.0, rel=0.2)


def test_a_network_of_zeros_learns_its_last_bias_alone():
    run = clusters_cell("max_power", "learning.first_model=zero", "privacy.sensitivity=1e-9")
    start = run.start()
    assert not flat(start.server.global_params).any() and not copies(run, start).any()
    state, _ = rounds_of(run, 1)[0]
    moved = [np.abs(leaf).max() for leaf in leaves(state.server.global_params)]
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state.server.global_params)]
    last = max(index for index, name in enumerate(names) if "bias" in name)
    assert moved[last] > 1e-4
    assert max(value for index, value in enumerate(moved) if index != last) < 1e-6


def test_the_sensitivity_moves_from_round_to_round_and_all_follow_it():
    """The same factor for updates and copies, in every scheme; within its spread, and never twice the same."""
    spread = ("privacy.sensitivity_spread=0.5", "privacy.local_noise=true")
    factors = []
    for scheme in ("max_power", "priced"):
        run = clusters_cell(scheme, *spread)
        records = [record for _, record in rounds_of(run, 6)]
        copies_std = np.array([float(np.asarray(record.noise_std)[0]) for record in records])
        events = [ledger_events(run.access_point, record, number) for number, record in enumerate(records)]
        updates = np.array([next(e.noise_std[0] for e in told if e.content == "update") for told in events])
        np.testing.assert_allclose(updates, copies_std, rtol=1e-12)
        factors.append(copies_std / LEVEL)
    np.testing.assert_array_equal(*factors)
    assert (np.abs(factors[0] - 1.0) <= 0.5).all() and len(set(factors[0])) == 6 and np.ptp(factors[0]) > 0.2


@pytest.mark.slow
def test_devices_add_the_noise_that_the_ledger_tells():
    """An update with noise, less the one without, has the round's std."""
    seen = {}
    for name, extra in (("quiet", ("privacy.local_noise=false",)), ("noisy", ("privacy.local_noise=true",))):
        run = clusters_cell("max_power", SHAPE, "privacy.sensitivity_spread=0.9", *extra, devices=2)
        seen[name] = run, flat(rounds_of(run, 1)[0][0].server.global_params)
    noise = seen["noisy"][1] - seen["quiet"][1]  # the mean of two devices' noise
    told = seen["noisy"][0].access_point.update_std(0)
    assert abs(told / LEVEL - 1.0) > 0.1
    assert noise.std() * np.sqrt(2.0) == pytest.approx(told, rel=5 / np.sqrt(2 * noise.size))


def test_without_a_spread_the_level_is_the_paper_s():
    point: AccessPoint = clusters_cell("max_power", "privacy.local_noise=true").access_point
    assert [point.update_std(number) for number in range(3)] == [pytest.approx(LEVEL)] * 3
    assert clusters_cell("max_power").access_point.update_std(0) == 0.0


def test_an_interrupted_run_goes_on_with_the_same_noise():
    run = clusters_cell("proposed", OVERWRITE, "privacy.sensitivity_spread=0.3")
    whole = rounds_of(run, 4)
    again = rounds_of(run, 4, whole[1][0], 2)
    for ours, theirs in zip(leaves(again[-1][0].server), leaves(whole[-1][0].server), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert jnp.isfinite(again[-1][1].global_loss)
