"""Signal-to-noise ratio, rate and upload time of one device's uplink.

`log_snr` is the paper's Z = ln(1 + gap-adjusted SNR): rate is linear in it, power exponential.
"""

from __future__ import annotations

import jax.numpy as jnp

from fairwave.types import Scalar
from fairwave.wireless.physical_device import Device

LN2 = 0.6931471805599453
BITS_PER_NAT = 1.4426950408889634


def received_snr(device: Device, transmit_power_w: Scalar, fading_gain: Scalar) -> Scalar:
    """Signal-to-noise ratio at the access point.

    Paper: Eq. (15).
    """
    noise_power_w = device.noise_psd_w_per_hz * device.bandwidth_hz
    return transmit_power_w * fading_gain * device.path_gain / noise_power_w


def gain_per_watt(device: Device, fading_gain: Scalar) -> Scalar:
    """Gap-adjusted signal-to-noise ratio per transmitted watt."""
    return received_snr(device, jnp.ones_like(fading_gain), fading_gain) / device.modulation_gap


def uplink_rate_bps(device: Device, transmit_power_w: Scalar, fading_gain: Scalar) -> Scalar:
    """Rate that practical modulation reaches, a gap below Shannon's.

    Paper: Eq. (14).
    """
    snr = received_snr(device, transmit_power_w, fading_gain) / device.modulation_gap
    return device.bandwidth_hz * jnp.log1p(snr) * BITS_PER_NAT


def upload_time_s(device: Device, rate_bps: Scalar) -> Scalar:
    """Time to upload one update.

    Paper: Eq. (13).
    """
    return device.payload_bits / rate_bps


def rate_of_log_snr_bps(device: Device, log_snr: Scalar) -> Scalar:
    """Rate as a function of log-SNR, where the optimum is found.

    Paper: Eq. (36).
    """
    return device.bandwidth_hz * log_snr * BITS_PER_NAT


def power_of_log_snr_w(log_snr: Scalar, gain: Scalar) -> Scalar:
    """Transmit power that gives a log-SNR over a channel of that gain per watt.

    Paper: Eq. (37).
    """
    return jnp.expm1(log_snr) / gain
