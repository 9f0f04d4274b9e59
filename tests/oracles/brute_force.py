"""Device problem by exhaustive search, in plain NumPy and from the paper's text alone."""

from __future__ import annotations

import numpy as np

Devices = dict[str, np.ndarray]


def utility(d: Devices, iterations: np.ndarray, log_snr: np.ndarray) -> np.ndarray:
    """Utility of (devices, ...) arrays of choices."""
    d = {name: value.reshape(value.shape + (1,) * (iterations.ndim - 1)) for name, value in d.items()}
    compute_j = iterations * d["bits_per_iteration"] * d["seconds_per_bit"] * d["compute_power_w"]
    power_w = np.expm1(log_snr) / d["gain"]
    upload_s = d["payload_bits"] * np.log(2.0) / (d["bandwidth_hz"] * log_snr)
    energy_j = compute_j + upload_s * (power_w / d["amplifier_efficiency"] + d["circuit_power_w"])
    gain = d["effort_scale"] * -np.expm1(-compute_j / d["effort_decay_j"])
    return gain - energy_j**2 + d["energy_reference_j"] * energy_j


def magnitude(d: Devices, iterations: np.ndarray, log_snr: np.ndarray) -> np.ndarray:
    """Size of the largest term of the utility, against which a difference is relative."""
    compute_j = iterations * d["bits_per_iteration"] * d["seconds_per_bit"] * d["compute_power_w"]
    upload_s = d["payload_bits"] * np.log(2.0) / (d["bandwidth_hz"] * log_snr)
    power_w = np.expm1(log_snr) / d["gain"]
    energy_j = compute_j + upload_s * (power_w / d["amplifier_efficiency"] + d["circuit_power_w"])
    return np.maximum.reduce([d["effort_scale"], energy_j**2, d["energy_reference_j"] * energy_j])


def feasible_box(d: Devices) -> tuple[np.ndarray, np.ndarray]:
    """Most iterations and largest log-SNR."""
    max_log_snr = np.log1p(d["max_transmit_power_w"] * d["gain"])
    upload_s = d["payload_bits"] * np.log(2.0) / (d["bandwidth_hz"] * max_log_snr)
    allowed = (d["deadline_s"] - upload_s) / (d["bits_per_iteration"] * d["seconds_per_bit"])
    return np.minimum(allowed, d["max_iterations"]), max_log_snr


def best_utility(d: Devices, points: int = 64, zooms: int = 2) -> np.ndarray:
    """Best utility over a grid of feasible (iterations, log-SNR) that zooms in on its best point."""
    most, max_log_snr = feasible_box(d)
    low, high = np.zeros((2, most.size)), np.ones((2, most.size))
    best = np.full(most.size, -np.inf)
    for _ in range(1 + zooms):
        share = np.linspace(0.0, 1.0, points)
        u = low[0][:, None] + (high[0] - low[0])[:, None] * share
        v = low[1][:, None] + (high[1] - low[1])[:, None] * share
        iterations = d["min_iterations"][:, None] + (most - d["min_iterations"])[:, None] * u
        left_s = d["deadline_s"][:, None] - iterations * (d["bits_per_iteration"] * d["seconds_per_bit"])[:, None]
        slowest = (d["payload_bits"] * np.log(2.0) / d["bandwidth_hz"])[:, None] / left_s
        slowest = np.minimum(slowest, max_log_snr[:, None])[:, :, None]
        log_snr = slowest * (max_log_snr[:, None, None] / slowest) ** v[:, None, :]
        value = utility(d, np.broadcast_to(iterations[:, :, None], log_snr.shape), log_snr)
        flat = value.reshape(most.size, -1).argmax(axis=1)
        best = np.maximum(best, value.reshape(most.size, -1)[np.arange(most.size), flat])
        centre = np.stack([u[np.arange(most.size), flat // points], v[np.arange(most.size), flat % points]])
        reach = 2.0 * (high - low) / points
        low, high = np.clip(centre - reach, 0.0, 1.0), np.clip(centre + reach, 0.0, 1.0)
    return best
