"""Rate, times and energies, worked by hand."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from fairwave.policy.problem import min_transmit_power_w, pose
from fairwave.wireless.energy import (
    compute_time_s,
    energy_of_choice_j,
    radio_power_w,
    round_energy_j,
    seconds_per_bit,
)
from fairwave.wireless.path_loss import path_loss_constant
from fairwave.wireless.physical_device import Device
from fairwave.wireless.rate import (
    gain_per_watt,
    power_of_log_snr_w,
    rate_of_log_snr_bps,
    received_snr,
    uplink_rate_bps,
    upload_time_s,
)


@pytest.fixture
def device() -> Device:
    """SNR 12 per watt, gap 4, 1 MHz: at 1 W the rate is 2 Mbit/s."""
    numbers = {
        "path_gain": 12e-6,
        "bandwidth_hz": 1e6,
        "noise_psd_w_per_hz": 1e-12,
        "modulation_gap": 4.0,
        "max_transmit_power_w": 1.0,
        "amplifier_efficiency": 0.5,
        "circuit_power_w": 0.1,
        "payload_bits": 4e6,
        "compute_power_w": 0.3,
        "seconds_per_bit": 1e-7,
        "bits_per_iteration": 1e6,
        "min_iterations": 1.0,
        "max_iterations": float("inf"),
        "deadline_s": 5.0,
    }
    return Device(**{name: jnp.asarray(value) for name, value in numbers.items()})


ONE = jnp.ones(())


def test_snr_3_over_1_mhz_is_2_mbit(device):
    assert received_snr(device, ONE, ONE) == pytest.approx(12.0)
    assert gain_per_watt(device, ONE) == pytest.approx(3.0)
    assert uplink_rate_bps(device, ONE, ONE) == pytest.approx(2e6)
    assert uplink_rate_bps(device, 0.5 * ONE, 2 * ONE) == pytest.approx(2e6)


def test_rate_and_power_of_a_log_snr_invert_each_other(device):
    log_snr = jnp.log(4.0)
    assert rate_of_log_snr_bps(device, log_snr) == pytest.approx(2e6)
    assert power_of_log_snr_w(log_snr, gain_per_watt(device, ONE)) == pytest.approx(1.0)


def test_times_and_energies(device):
    """3 iterations take 0.3 s at 0.3 W; 4 Mbit at 2 Mbit/s take 2 s at 1/0.5 + 0.1 W: 0.09 + 4.2 J."""
    assert compute_time_s(device, 3 * ONE) == pytest.approx(0.3)
    assert upload_time_s(device, 2e6 * ONE) == pytest.approx(2.0)
    assert radio_power_w(device, ONE) == pytest.approx(2.1)
    assert round_energy_j(device, compute_s=0.3 * ONE, upload_s=2 * ONE, radio_w=2.1 * ONE) == pytest.approx(4.29)
    assert energy_of_choice_j(device, 3 * ONE, ONE, ONE) == pytest.approx(4.29)


def test_processor_time_per_bit():
    """320 instructions per 32-bit word at one clock each, 100 MHz: 3.2 us per word, 100 ns per bit."""
    assert seconds_per_bit(
        instructions_per_word=320, clocks_per_instruction=1, clock_hz=1e8, register_bits=32
    ) == pytest.approx(1e-7)


def test_path_loss_constant_of_the_paper():
    """(3e8 / (4 pi 32e6))^2 = 0.5566 with the rounded speed of light; 0.14 % less with the exact one."""
    assert path_loss_constant(32e6) == pytest.approx(0.5566, rel=2e-3)


def test_least_power_uploads_in_the_time_that_the_fewest_iterations_leave(device):
    """1 iteration takes 0.1 s; 4 Mbit in the other 4.9 s over 1 MHz need 2^(4/4.9) - 1 at a gain of 3 per watt."""
    assert float(min_transmit_power_w(pose(device, ONE))) == pytest.approx((2 ** (4 / 4.9) - 1) / 3)
