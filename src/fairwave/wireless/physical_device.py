"""One device as the physics sees it."""

from __future__ import annotations

import equinox as eqx

from fairwave.types import Scalar


class Device(eqx.Module):
    """Hardware, link and limits of one device.

    A fleet is the same record with a leading axis on the fields that differ between devices.
    """

    path_gain: Scalar
    """Share of the transmitted power that arrives before fading: kappa / r^alpha, less excess loss."""
    bandwidth_hz: Scalar
    noise_psd_w_per_hz: Scalar
    modulation_gap: Scalar
    max_transmit_power_w: Scalar
    amplifier_efficiency: Scalar
    circuit_power_w: Scalar
    payload_bits: Scalar
    compute_power_w: Scalar
    seconds_per_bit: Scalar
    bits_per_iteration: Scalar
    min_iterations: Scalar
    max_iterations: Scalar
    """The device's own cap; infinite where it has none."""
    deadline_s: Scalar
