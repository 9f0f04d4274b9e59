"""FadingLaw, placement and channel knowledge. Statistical tests have fixed keys and must reject a mutant.

The Kolmogorov-Smirnov tests use 20,000 samples and p > 1e-6: a right sampler fails one key in a million.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fairwave.extensions import FADING
from fairwave.keys import Stream, device_key, run_key
from fairwave.policy.fleet import physical_devices
from fairwave.scenario.fading_laws import FadingLaw
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.wireless.channel_knowledge import safe_gain
from fairwave.wireless.fading import Nakagami, NoFading, Rayleigh, Rician, draw_channel
from fairwave.wireless.hardware import distances_m

SAMPLES = 20_000
ALARM = 1e-6

pytestmark = pytest.mark.statistical


def draw(law: FadingLaw, error_std: float = 0.0, seed: int = 3):
    def one(round_index):
        return draw_channel(law, error_std, run_key(seed), round_index, jnp.asarray(7))

    return jax.tree.map(np.asarray, jax.vmap(one)(jnp.arange(SAMPLES)))


CASES = [
    # The mutants: power of mean 1 per unit of scale, a wrong shape, a wrong line of sight.
    (Rayleigh(law="rayleigh", scale=1.5), stats.expon(scale=4.5), stats.expon(scale=2.25)),
    (Nakagami(law="nakagami", scale=1.0, shape=3.0), stats.gamma(3, scale=2 / 3), stats.gamma(2.5, scale=2 / 2.5)),
    (Rician(law="rician", scale=1.0, k_factor=4.0), stats.ncx2(2, 8.0, scale=0.2), stats.ncx2(2, 6.0, scale=0.25)),
]


@pytest.mark.parametrize(("law", "truth", "mutant"), CASES, ids=["rayleigh", "nakagami", "rician"])
def test_power_gain_follows_its_law(law, truth, mutant):
    gain = draw(law).fading_gain
    assert truth.mean() == pytest.approx(law.mean_power)
    assert stats.kstest(gain, truth.cdf).pvalue > ALARM
    assert stats.kstest(gain, mutant.cdf).pvalue < ALARM


def test_no_fading_is_one():
    assert (draw(NoFading(law="none")).fading_gain == 1.0).all()


def test_every_law_has_a_sampler():
    assert [FADING[name] for name in FADING.builtin_names()] == [NoFading, Rayleigh, Rician, Nakagami]


def test_draws_are_addressed_not_consumed():
    law, root = Rayleigh(law="rayleigh", scale=1.0), run_key(0)
    again = [float(draw_channel(law, 0.0, root, jnp.asarray(37), jnp.asarray(2)).fading_gain) for _ in range(2)]
    assert again[0] == again[1]
    gains = {
        float(draw_channel(law, 0.0, run_key(seed), jnp.asarray(m), jnp.asarray(k)).fading_gain)
        for seed in (0, 1)
        for m in range(4)
        for k in range(4)
    }
    assert len(gains) == 32


def test_streams_do_not_share_keys():
    keys = {tuple(jax.random.key_data(device_key(run_key(0), 1, stream, 2)).tolist()) for stream in Stream}
    assert len(keys) == len(Stream)


def test_an_estimate_with_error_leaves_the_rayleigh_law_unchanged():
    channel = draw(Rayleigh(law="rayleigh", scale=1.0), error_std=0.6)
    assert stats.kstest(channel.fading_gain, stats.expon(scale=2.0).cdf).pvalue > ALARM
    assert stats.kstest(channel.estimated_gain, stats.expon(scale=2.0 - 2 * 0.36).cdf).pvalue > ALARM
    assert stats.kstest(channel.estimated_gain, stats.expon(scale=2.0).cdf).pvalue < ALARM


@pytest.mark.parametrize("error_std", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("probability", [1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.4, 0.9])
def test_the_planned_gain_is_the_quantile(error_std, probability):
    """By scipy, the true amplitude is Rice distributed around the estimate; the planned one is its quantile."""
    amplitude = np.concatenate([[0.0], np.geomspace(1e-6, 20.0, 200)])
    planned = np.asarray(safe_gain(jnp.asarray(amplitude**2), error_std, probability))
    chance = stats.ncx2.cdf(planned / error_std**2, 2, (amplitude / error_std) ** 2)
    np.testing.assert_allclose(chance, probability, rtol=1e-8 if probability >= 1e-3 else 2e-6)


def test_strong_channels_are_planned_with_the_normal_quantile():
    """Where scipy's own law has lost its digits: far from the origin the amplitude is normal, around a shifted mean."""
    for ratio in (1e4, 1e6, 1e8):
        planned = float(jnp.sqrt(safe_gain(jnp.asarray(ratio**2), 1.0, 0.01)))
        assert planned - ratio == pytest.approx(stats.norm.ppf(0.01) + 0.5 / ratio, abs=max(1e-7, 4e-16 * ratio))


LAWS = {
    "none": NoFading(law="none"),
    "rayleigh": Rayleigh(law="rayleigh", scale=1.0),
    "rician": Rician(law="rician", scale=1.0, k_factor=4.0),
    "nakagami": Nakagami(law="nakagami", scale=1.0, shape=0.7),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("probability", [0.1, 0.01, 0.001])
def test_uploads_fail_as_often_as_they_may(name, probability):
    """A million draws of the channel and its estimate: the share of failures is the target, up to three standard errors
    (false alarm 0.3 %, with a fixed key); a back-off by the projection of the error alone is rejected."""
    draws, error_std = 1_000_000, 0.25

    def failed(number):
        channel = draw_channel(LAWS[name], error_std, run_key(5), number, jnp.asarray(0))
        estimate = channel.estimated_gain
        along = jnp.maximum(jnp.sqrt(estimate) + error_std * stats.norm.ppf(probability), 0.0) ** 2
        truth = channel.fading_gain
        return truth < safe_gain(estimate, error_std, probability), truth < along

    ours, mutant = (float(jnp.mean(each)) for each in jax.vmap(failed)(jnp.arange(draws)))
    error = np.sqrt(probability * (1 - probability) / draws)
    assert abs(ours - probability) < 3 * error
    assert abs(mutant - probability) > 3 * error


def test_without_a_back_off_the_target_is_missed():
    """The mutant: planning with the estimate itself fails about half of the time."""
    assert stats.rice.cdf(1.0 / 0.1, 1.0 / 0.1) > 0.4


def test_perfect_knowledge_needs_no_back_off():
    assert float(safe_gain(jnp.asarray(0.3), 0.0, 0.01)) == 0.3


def distances(*overrides: str) -> np.ndarray:
    scenario = load_scenario("paper", overrides)
    return distances_m(scenario, DeviceValues(scenario))


def test_linspace_and_list():
    np.testing.assert_allclose(distances(), np.linspace(50, 200, 10))
    listed = distances("cell.num_devices=2", "cell.placement={law='list', distance_m=[10, '0.5 km']}")
    assert listed.tolist() == [10.0, 500.0]


def test_disc_is_uniform_in_area():
    ring = distances(f"cell.num_devices={SAMPLES}", "cell.placement={law='disc', radius_m=300, min_distance_m=30}")
    share = (ring**2 - 30**2) / (300**2 - 30**2)
    assert stats.kstest(share, "uniform").pvalue > ALARM
    assert stats.kstest((ring - 30) / 270, "uniform").pvalue < ALARM
    with jax.enable_x64(False):
        again = distances(f"cell.num_devices={SAMPLES}", "cell.placement={law='disc', radius_m=300, min_distance_m=30}")
    assert (ring == again).all()


def test_path_gain_falls_with_the_fourth_power_and_with_walls():
    scenario = load_scenario("paper", ["cell.excess_loss='10 dB'"])
    plain = load_scenario("paper")
    built = [np.asarray(physical_devices(s, DeviceValues(s)).path_gain) for s in (plain, scenario)]
    assert built[0][0] / built[0][-1] == pytest.approx(4**4)
    np.testing.assert_allclose(built[0] / built[1], 10.0)
