"""What a round costs, in time and memory, against the number of devices.

    python benchmarks/scale.py [--devices 10,100,1000] [--rounds 5] [--precision float32] [--out FILE.json]

Every size runs in a process of its own. A round is timed whole (channel, plans, training, noise, release, metrics; no
store), then again with the exchange of full-data gradients, then local training alone. The first round of each
compiles and is left out. `--plot` draws a file that was written before.
"""

from __future__ import annotations

import argparse
import datetime
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARM_UP = 1
LABELS = {"round": "whole round", "with_exchange": "with gradient exchange", "training": "training alone"}


def one_size(devices: int, rounds: int, precision: str) -> dict[str, Any]:
    """Seconds per round and bytes, of one size, in this process."""
    import jax

    from fairwave.data import sources
    from fairwave.engine.cell import SimulatedCell
    from fairwave.engine.cell_group import CellGroup
    from fairwave.extensions import SCHEMES
    from fairwave.learning.models import model_of
    from fairwave.scenario.loading import load_scenario

    data = sources.load("mnist")
    found: dict[str, Any] = {"devices": devices, "precision": precision, "backend": jax.devices()[0].device_kind}
    for name, exchange in (("round", "false"), ("with_exchange", "true")):
        settings = [f"cell.num_devices={devices}", f"learning.precision={precision}"]
        scenario = load_scenario("paper", [*settings, f"learning.gradient_exchange={exchange}"])
        cell = SimulatedCell(scenario, SCHEMES["proposed"], model_of(scenario.learning), data)
        group, state, seconds = CellGroup([cell]), cell.start(), []
        group.compile_ahead([state])
        for number in range(WARM_UP + rounds):
            began = time.perf_counter()
            ((state, record),) = group.round([state], number)
            jax.block_until_ready((state, record))
            seconds.append(time.perf_counter() - began)
        found[name] = seconds[WARM_UP:]
        found["iterations"] = float(record.plan.local_iterations.mean())
        found["test_accuracy"] = float(record.test_accuracy)
    found["training"] = _timed(_training(cell, state), rounds)
    memory = jax.local_devices()[0].memory_stats() or {}
    found["peak_bytes"] = memory.get("peak_bytes_in_use", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    return found


def _training(cell: Any, state: Any) -> Callable[[], object]:
    """Local training of all devices, 90 iterations each: job (a) where there are ten."""
    import jax
    import jax.numpy as jnp

    from fairwave.double_precision import double_precision
    from fairwave.engine.device_programs import training_program
    from fairwave.engine.device_side import HeldSamples, SharedInputs, TrainingInputs, local_training

    access_point, devices, copies = cell.access_point, cell.honest_devices, state.server.copies
    scheme, protection = access_point.rules.scheme, access_point.enforced.protection
    program = training_program(local_training(cell.scenario, scheme, access_point.model, protection))
    with double_precision():
        first, indices = jnp.asarray(0), access_point.devices
        shared = SharedInputs(
            access_point.root, first, *devices.samples, models=copies.shared_models, make_copy=copies.make_copy
        )
        own = TrainingInputs(
            copy=copies.of_devices,
            own_gradient=None,
            held=HeldSamples(devices.held(first), access_point.counts),
            trained_count=access_point.counts,
            flipped=jnp.zeros(indices.shape, bool),
            iterations=jnp.full(indices.shape, 90),
            index=indices,
        )

    def train() -> None:
        with double_precision():
            jax.block_until_ready(program(shared, own))

    return train


def _timed(call: Callable[[], object], rounds: int) -> list[float]:
    seconds = []
    for _ in range(WARM_UP + rounds):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return seconds[WARM_UP:]


def plot(found: list[dict[str, Any]], path: Path) -> None:
    """Seconds and memory against the number of devices, with the lines that fit them best."""
    import matplotlib.pyplot as plt

    sizes = [each["devices"] for each in found]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, label in LABELS.items():
        left.loglog(sizes, [statistics.median(each[name]) for each in found], "o-", label=label)
    fixed, each_device = fit(sizes, [statistics.median(each["round"]) for each in found])
    fitted = f"{fixed * 1e3:.3g} ms + {each_device * 1e3:.3g} ms per device"
    left.loglog(sizes, [fixed + each_device * size for size in sizes], "k:", linewidth=1, label=fitted)
    left.set(xlabel="devices", ylabel="seconds per round", title=found[0]["backend"])
    left.legend(frameon=False, fontsize=8)
    memory = [each["peak_bytes"] / 2**30 for each in found]
    fixed, each_device = fit(sizes, memory)
    right.loglog(sizes, memory, "o-", color="C3")
    fitted = f"{fixed:.2g} GiB + {each_device * 2**10:.2g} MiB per device"
    right.loglog(sizes, [fixed + each_device * size for size in sizes], "k:", linewidth=1, label=fitted)
    right.legend(frameon=False, fontsize=8)
    right.set(xlabel="devices", ylabel="peak memory (GiB)", title=f"precision {found[0]['precision']}")
    figure.savefig(path)


def fit(sizes: list[int], values: list[float]) -> tuple[float, float]:
    """The line whose relative errors have the least squares: what is fixed, and what each device adds."""
    import numpy as np

    columns = np.stack([np.ones(len(sizes)), np.asarray(sizes, float)], axis=1) / np.asarray(values)[:, None]
    fixed, each_device = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)[0]
    return float(fixed), float(each_device)


def main() -> None:
    """Measure each size, or draw what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="10,100,1000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path, nargs=2, metavar=("FILE.json", "FIGURE.svg"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_size(options.one, options.rounds, options.precision)))
        return
    if options.plot:
        plot(json.loads(options.plot[0].read_text())["sizes"], options.plot[1])
        return
    found = []
    for size in map(int, options.devices.split(",")):
        command = [sys.executable, __file__, "--one", str(size), "--rounds", str(options.rounds)]
        done = subprocess.run([*command, "--precision", options.precision], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        each = json.loads(done.stdout.splitlines()[-1])
        found.append(each)
        times = "  ".join(f"{label} {statistics.median(each[name]) * 1e3:9.2f} ms" for name, label in LABELS.items())
        where = f"{each['backend']}, {each['precision']}"
        print(f"K = {size:6d}  {times}  {each['peak_bytes'] / 2**30:6.2f} GiB  ({where})", flush=True)
    if options.out:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        asked = ["--devices", options.devices, "--rounds", str(options.rounds), "--precision", options.precision]
        options.out.write_text(json.dumps({"date": today, "command": asked, "sizes": found}, indent=1))


if __name__ == "__main__":
    main()
