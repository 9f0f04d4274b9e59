"""Time and energy that one device spends in a round."""

from __future__ import annotations

from fairwave.types import Scalar
from fairwave.wireless.physical_device import Device
from fairwave.wireless.rate import uplink_rate_bps, upload_time_s


def seconds_per_bit(
    *, instructions_per_word: float, clocks_per_instruction: float, clock_hz: float, register_bits: float
) -> float:
    """Processing time per bit of a processor.

    Paper: Eq. (12).
    """
    return instructions_per_word * clocks_per_instruction / clock_hz / register_bits


def compute_time_s(device: Device, iterations: Scalar) -> Scalar:
    """Time of local training.

    Paper: Eq. (11).
    """
    return iterations * device.bits_per_iteration * device.seconds_per_bit


def radio_power_w(device: Device, transmit_power_w: Scalar) -> Scalar:
    """Power drawn while transmitting: amplifier input plus circuits.

    Paper: Eq. (16).
    """
    return transmit_power_w / device.amplifier_efficiency + device.circuit_power_w


def round_energy_j(device: Device, *, compute_s: Scalar, upload_s: Scalar, radio_w: Scalar) -> Scalar:
    """Energy of computing and uploading for given times.

    Paper: Eq. (23).
    """
    return compute_s * device.compute_power_w + upload_s * radio_w


def energy_of_choice_j(device: Device, iterations: Scalar, transmit_power_w: Scalar, fading_gain: Scalar) -> Scalar:
    """Energy of a round as a function of what the device chooses.

    Paper: Eq. (24).
    """
    return round_energy_j(
        device,
        compute_s=compute_time_s(device, iterations),
        upload_s=upload_time_s(device, uplink_rate_bps(device, transmit_power_w, fading_gain)),
        radio_w=radio_power_w(device, transmit_power_w),
    )
