"""How fast `fairwave.plan` is, against a plain loop over devices with scipy's brentq.

    python benchmarks/plan.py [--devices 1000000] [--repeats 5]

Both plan the paper's cell without fading by the proposed policy and give the same columns. They are timed in turns in
one process, so that a busy machine slows both. The loop is what one would write from the paper: bounds, root of
Eq. (39), the plan's numbers, all in `math`; it does not know the cases that the paper leaves out. It is timed on a
sample and scaled up.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import statistics
import time

import jax
import numpy as np
from scipy.optimize import brentq

import fairwave
from fairwave.double_precision import double_precision
from fairwave.policy.fleet import Fleet, fleet
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues


def brentq_plan(
    gain: float,
    deadline: float,
    bandwidth: float,
    unit: float,
    step: float,
    compute: float,
    circuit: float,
    rho: float,
    power: float,
    fewest: float,
    reference: float,
    scale: float,
    decay: float,
) -> dict[str, float | str]:
    """One device by the paper's Theorem 2, with the columns of a plan."""
    low, high = unit / (deadline - fewest * step), math.log1p(power * gain)
    if low > high:
        return {"case": "outage", "optimal_energy_j": math.nan}

    def energies(z: float) -> tuple[float, float]:
        spent = compute * (deadline - unit / z)
        return spent, spent + unit / z * (math.expm1(z) / gain / rho + circuit)

    def stationarity(z: float) -> float:
        spent, total = energies(z)
        grown = math.exp(z)
        growth = 1.0 + (((z - 1.0) * grown + 1.0) / (gain * rho) - circuit) / compute
        return (2.0 * total - reference) * growth - scale / decay * math.exp(-spent / decay)

    if stationarity(low) >= 0.0:
        z = low
    elif stationarity(high) <= 0.0:
        z = high
    else:
        z = brentq(stationarity, low, high, xtol=1e-13, rtol=1e-14)
    fill, (spent, total) = (deadline - unit / z) / step, energies(z)
    whole = math.floor(fill)
    charged = whole * step * compute
    upload_s = unit / z
    return {
        "case": "min_power" if z == low else "max_power" if z == high else "interior",
        "optimal_iterations": fill,
        "optimal_energy_j": total,
        "optimal_utility": scale - scale * math.exp(-spent / decay) - total * (total - reference),
        "local_iterations": whole,
        "transmit_power_w": math.expm1(z) / gain,
        "uplink_rate_bps": bandwidth * z / math.log(2.0),
        "compute_time_s": whole * step,
        "upload_time_s": upload_s,
        "compute_energy_j": charged,
        "transmit_energy_j": total - spent,
        "energy_j": charged + total - spent,
        "utility": scale
        - scale * math.exp(-charged / decay)
        - (charged + total - spent) * (charged + total - spent - reference),
    }


def sample_of_loop(scenario: Scenario, members: Fleet, gains: np.ndarray) -> tuple[float, np.ndarray]:
    """Seconds per device of the loop, and its energies."""
    device, wishes, effort = members.device, members.preferences, members.effort
    unit = float(device.payload_bits * math.log(2.0) / device.bandwidth_hz)
    step = float(device.bits_per_iteration * device.seconds_per_bit)
    fixed = [
        float(value)
        for value in (
            device.compute_power_w,
            device.circuit_power_w,
            device.amplifier_efficiency,
            device.max_transmit_power_w,
            device.min_iterations,
            wishes.energy_reference_j,
            effort.scale,
            effort.decay_j,
        )
    ]
    start = time.perf_counter()
    deadline, bandwidth = scenario.cell.deadline_s, float(device.bandwidth_hz)
    plans = [brentq_plan(gain, deadline, bandwidth, unit, step, *fixed) for gain in gains.tolist()]
    return (time.perf_counter() - start) / gains.size, np.array([plan["optimal_energy_j"] for plan in plans])


def main() -> None:
    """Print medians, spreads, the ratio, memory, and the cost from 10^3 devices up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--sample", type=int, default=5_000)
    options = parser.parse_args()

    scenario = fairwave.load_scenario("paper", [f"cell.num_devices={options.devices}"])
    with double_precision():
        members = jax.tree.map(np.asarray, fleet(scenario, DeviceValues(scenario)))
    start = time.perf_counter()
    first = fairwave.plan(scenario, ["proposed"], fading=False)
    print(f"first call, compilation included: {time.perf_counter() - start:.2f} s")

    chosen = np.linspace(0, options.devices - 1, options.sample).astype(int)
    device = members.device
    gains = device.path_gain[chosen] / (device.noise_psd_w_per_hz * device.bandwidth_hz * device.modulation_gap)
    ours, loops = [], []
    for _ in range(options.repeats):
        seconds, energies = sample_of_loop(scenario, members, gains)
        loops.append(seconds * options.devices)
        start = time.perf_counter()
        fairwave.plan(scenario, ["proposed"], fading=False)
        ours.append(time.perf_counter() - start)
    apart = np.abs(first["optimal_energy_j"].values[0][chosen] / energies - 1.0).max()
    ratios = [loop / our for loop, our in zip(loops, ours, strict=True)]
    print(f"{options.devices:,} devices, {os.cpu_count()} cores, {jax.default_backend()}")
    print(f"fairwave.plan     {statistics.median(ours):8.2f} s   ({min(ours):.2f} .. {max(ours):.2f})")
    print(f"brentq loop       {statistics.median(loops):8.2f} s   ({min(loops):.2f} .. {max(loops):.2f})")
    print(f"ratio             {statistics.median(ratios):8.0f}     ({min(ratios):.0f} .. {max(ratios):.0f})")
    print(f"largest relative difference of their energies: {apart:.1e}")
    print(f"peak memory       {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:8.2f} GB")
    for count in (1_000, 10_000, 100_000, 1_000_000):
        scenario = fairwave.load_scenario("paper", [f"cell.num_devices={count}"])
        fairwave.plan(scenario, ["proposed"], fading=False)
        times = []
        for _ in range(options.repeats):
            start = time.perf_counter()
            fairwave.plan(scenario, ["proposed"], fading=False)
            times.append(time.perf_counter() - start)
        seconds = statistics.median(times)
        print(f"{count:>9,} devices {seconds * 1e3:9.1f} ms  {seconds / count * 1e6:7.2f} us each")


if __name__ == "__main__":
    main()
