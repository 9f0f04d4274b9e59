"""Fading that is correlated over time. Statistical tests have fixed keys and must reject a mutant.

The Kolmogorov-Smirnov test uses 20,000 devices and p > 1e-6: a right sampler fails one key in a million. Means are of
as many devices or times, within six standard errors: false alarm below 1e-8 each.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from fairwave.errors import ScenarioError
from fairwave.keys import Stream, device_key, run_key
from fairwave.scenario.loading import load_scenario
from fairwave.wireless import clarke
from fairwave.wireless.fading import Rayleigh, Rician, draw_channel

SAMPLES = 20_000
ALARM = 1e-6
SIX_ERRORS = 6 / np.sqrt(SAMPLES)
RAYLEIGH = Rayleigh(law="rayleigh", scale=1.5)

pytestmark = pytest.mark.statistical


def gains(law, cycles: float, devices: int = SAMPLES) -> np.ndarray:
    def one(device):
        return draw_channel(
            law, 0.0, run_key(3), jnp.asarray(5), device, doppler_cycles=jnp.asarray(cycles)
        ).fading_gain

    return np.asarray(jax.vmap(one)(jnp.arange(devices)))


def field(cycles: float) -> np.ndarray:
    """Complex, of mean power 1, of many devices at one time."""

    def one(device):
        return clarke.scattered_field(device_key(run_key(3), 0, Stream.SCATTERING, device), jnp.asarray(cycles))

    parts = np.asarray(jax.vmap(one)(jnp.arange(SAMPLES)))
    return (parts[:, 0] + 1j * parts[:, 1]) / np.sqrt(2)


@pytest.mark.parametrize("cycles", [0.0, 3.7, 1e4])
def test_the_power_gain_is_exponential_at_any_time(cycles, monkeypatch):
    truth = stats.expon(scale=RAYLEIGH.mean_power)
    assert stats.kstest(gains(RAYLEIGH, cycles), truth.cdf).pvalue > ALARM
    monkeypatch.setattr(clarke, "NUM_WAVES", 4)  # the mutant: too few waves to be a Gaussian field
    assert stats.kstest(gains(RAYLEIGH, cycles), truth.cdf).pvalue < ALARM


def test_the_autocorrelation_is_that_of_clarke():
    start, lags = field(2.0), np.array([0.0, 0.1, 0.25, 0.38, 0.6, 1.1, 2.5, 7.0])
    seen = np.array([np.mean(np.conj(start) * field(2.0 + lag)) for lag in lags])
    assert np.abs(seen - special.j0(2 * np.pi * lags)).max() < SIX_ERRORS
    for mutant in (special.j0(np.pi * lags), np.exp(-((2 * np.pi * lags) ** 2) / 4), np.cos(2 * np.pi * lags)):
        assert np.abs(seen - mutant).max() > 2 * SIX_ERRORS


@pytest.mark.parametrize("k_factor", [0.0, 1.0, 10.0])
def test_a_line_of_sight_keeps_the_mean_power(k_factor):
    """The gain's relative std is sqrt(1 + 2 K) / (1 + K)."""
    law = Rician(law="rician", scale=1.5, k_factor=k_factor)
    mean, error = gains(law, 4.2).mean() / law.mean_power, SIX_ERRORS * np.sqrt(1 + 2 * k_factor) / (1 + k_factor)
    assert abs(mean - 1) < error
    assert abs(mean * (1 + k_factor) - 1) > error or k_factor == 0  # the mutant: the scattered part is not weakened


def test_over_time_every_device_has_the_same_mean_power():
    """At random times far apart, which are as good as independent."""
    times = np.random.default_rng(0).uniform(0, 1e6, SAMPLES)
    for device in range(4):
        key = device_key(run_key(3), 0, Stream.SCATTERING, device)
        parts = np.asarray(jax.vmap(lambda cycles, key=key: clarke.scattered_field(key, cycles))(jnp.asarray(times)))
        assert abs(np.mean(np.sum(parts**2, axis=1) / 2) - 1) < SIX_ERRORS


def test_no_time_no_change_and_estimates_go_along():
    np.testing.assert_allclose(gains(RAYLEIGH, 1.0, 50), gains(RAYLEIGH, 1.0 + 1e-9, 50), rtol=1e-5)
    channel = draw_channel(RAYLEIGH, 0.3, run_key(3), jnp.asarray(5), jnp.asarray(0), doppler_cycles=jnp.asarray(1.0))
    assert float(channel.estimated_gain) == pytest.approx(gains(RAYLEIGH, 1.0, 1)[0] * (1 - 2 * 0.3**2 / 4.5))


@pytest.mark.parametrize("fading", ["{ law='none' }", "{ law='nakagami', scale=1, shape=2 }"])
def test_other_laws_have_no_correlation(fading):
    with pytest.raises(ScenarioError, match="choose rayleigh or rician, or leave doppler_hz out"):
        load_scenario("paper", [f"radio.fading={fading}", "radio.doppler_hz='5 Hz'"])
