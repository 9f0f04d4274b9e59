"""Moving devices against a plain twin that steps round by round."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fairwave.errors import ScenarioError
from fairwave.keys import Stream, device_key, run_key
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.mobility_laws import Radial
from fairwave.wireless.mobility import distance_now_m, motions

NEAR, FAR, STEP_S = 20.0, 120.0, 0.75
LAW = Radial(law="radial", max_speed_m_per_s="300 m/s", near_m=NEAR, far_m=FAR)


def stepped(placed_m: float, speed_m_per_s: float, outward: bool, rounds: int) -> list[float]:
    """One device's distances: it walks for a round, and turns back whenever it meets an end."""
    where, ahead = min(max(placed_m, NEAR), FAR), 1 if outward else -1
    seen = [where]
    for _ in range(rounds - 1):
        way = speed_m_per_s * STEP_S
        while way > 0:
            room = FAR - where if ahead > 0 else where - NEAR
            gone = min(way, room)
            where, way = where + ahead * gone, way - gone
            if gone == room:
                ahead = -ahead
        seen.append(where)
    return seen


def test_the_closed_form_is_the_walk():
    """At up to 225 m a round in a ring of 100 m, many turn back more than once; some are placed outside."""
    placed = np.linspace(5.0, 200.0, 40)
    motion = motions(LAW, placed, seed=4)
    times = STEP_S * jnp.arange(60)
    seen = np.asarray(jax.vmap(jax.vmap(distance_now_m, in_axes=(None, 0)), in_axes=(0, None))(motion, times))
    for device, placed_m in enumerate(placed):
        share, side = jax.random.uniform(device_key(run_key(4), 0, Stream.MOBILITY, device), (2,))
        walk = stepped(placed_m, 300.0 * float(share), bool(side < 0.5), 60)
        np.testing.assert_allclose(seen[device], walk, rtol=0, atol=1e-8)
    assert (seen >= NEAR).all() and (seen <= FAR).all() and (np.ptp(seen, axis=1) > 50).sum() > 30


@pytest.mark.statistical
def test_speeds_are_uniform_and_half_go_out():
    """Fixed key, 20,000 devices. p > 1e-6, and six sigma: false alarms below one in a million."""
    motion = motions(LAW, np.full(20_000, 50.0), seed=1)
    assert stats.kstest(motion.speed_m_per_s, stats.uniform(0, 300).cdf).pvalue > 1e-6
    assert stats.kstest(motion.speed_m_per_s, stats.uniform(10, 290).cdf).pvalue < 1e-6
    outward = int((np.asarray(motion.begun_m) == 30.0).sum())
    assert abs(outward - 10_000) < 6 * np.sqrt(5_000)
    assert abs(np.corrcoef(motion.speed_m_per_s, motion.begun_m)[0, 1]) < 6 / np.sqrt(20_000)


def test_a_ring_without_room_is_refused():
    with pytest.raises(ScenarioError, match=r"cell.mobility: near_m 100 leaves no way to far_m 100"):
        load_scenario("paper", ["cell.mobility={law='radial', max_speed_m_per_s='2 m/s', near_m=100, far_m=100}"])
    with pytest.raises(ScenarioError, match=r"cell.mobility.max_speed_m_per_s: .* is a length; expected a speed"):
        load_scenario("paper", ["cell.mobility={law='radial', max_speed_m_per_s='2 m', near_m=10, far_m=100}"])
