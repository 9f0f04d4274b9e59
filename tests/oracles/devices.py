"""Random devices over several decades, steered into every corner that the device problem has."""

from __future__ import annotations

import numpy as np

FIELDS = (
    "gain",
    "deadline_s",
    "bandwidth_hz",
    "payload_bits",
    "bits_per_iteration",
    "seconds_per_bit",
    "min_iterations",
    "max_iterations",
    "max_transmit_power_w",
    "amplifier_efficiency",
    "circuit_power_w",
    "compute_power_w",
    "energy_reference_j",
    "effort_scale",
    "effort_decay_j",
)


def random_devices(count: int, seed: int) -> dict[str, np.ndarray]:
    """Parameters drawn log-uniformly; one device in six has beta1 = 0, one in three caps its iterations."""
    draw = np.random.default_rng(seed)

    def log_uniform(low: float, high: float) -> np.ndarray:
        return np.exp(draw.uniform(np.log(low), np.log(high), count))

    deadline_s = log_uniform(0.05, 20.0)
    min_iterations = np.floor(log_uniform(1.0, 50.0))
    bits_per_iteration = log_uniform(1e4, 1e7)
    # Share of the deadline that the fewest iterations take: from most of it to a billionth.
    least_share = np.where(draw.uniform(size=count) < 0.7, draw.uniform(0.001, 0.95, count), log_uniform(1e-9, 1e-3))
    seconds_per_bit = least_share * deadline_s / (min_iterations * bits_per_iteration)
    bandwidth_hz = log_uniform(1e4, 1e7)
    # From a trickle to a payload that needs log-SNR 30, so that outage and both power bounds occur.
    payload_bits = log_uniform(1e-2, 30.0) * (1.0 - least_share) * deadline_s * bandwidth_hz / np.log(2.0)
    compute_power_w = log_uniform(1e-3, 10.0)
    capped = draw.uniform(size=count) < 1 / 3
    uncapped = np.where(min_iterations / least_share > 1e9, 1e9, np.inf)  # what a scenario can count
    scale = log_uniform(1e-3, 30.0)
    return {
        "gain": log_uniform(1e-1, 1e9),
        "deadline_s": deadline_s,
        "bandwidth_hz": bandwidth_hz,
        "payload_bits": payload_bits,
        "bits_per_iteration": bits_per_iteration,
        "seconds_per_bit": seconds_per_bit,
        "min_iterations": min_iterations,
        "max_iterations": np.where(capped, np.floor(min_iterations * log_uniform(1.0, 30.0)), uncapped),
        "max_transmit_power_w": log_uniform(1e-3, 30.0),
        "amplifier_efficiency": draw.uniform(0.02, 1.0, count),
        "circuit_power_w": log_uniform(1e-4, 30.0),
        "compute_power_w": compute_power_w,
        "energy_reference_j": compute_power_w * deadline_s * log_uniform(1e-2, 1e2),
        "effort_scale": np.where(draw.uniform(size=count) < 1 / 6, 0.0, scale),
        "effort_decay_j": compute_power_w * deadline_s * log_uniform(1e-3, 1e3),
    }
