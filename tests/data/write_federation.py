"""Write the federation that shows the present formats; see README.md beside it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.in_process import federate_in_process
from fairwave.federate.settings import Settings
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario

SETTINGS = Settings(energy="model", deadline_s=30.0, quorum=0.3, patience=1)
SCENARIO = [
    "cell.num_devices=3",
    "data.samples_per_device=60",
    "learning.model=softmax",
    "learning.layer_sizes=[12, 4]",
    "learning.batch_size=8",
    "privacy.noise_source=hardened",
    "privacy.max_epsilon=unset",
    "compute.bits_per_iteration=800e3",
    "defences.use=[]",
]


def scenario(source: str) -> Scenario:
    """What the federation is about, on some data."""
    return load_scenario("fair-mlp", [*SCENARIO, f"data.source={source}"])


def write(target: Path) -> None:
    """Two rounds, in a folder of its own, with the devices' states and accounts."""
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        draw = np.random.default_rng(1)
        labels = draw.integers(0, 4, 500).astype(np.int32)
        inputs = (40 * labels[:, None] + draw.integers(0, 60, (500, 12))).astype(np.uint8)
        parts = {"train_images": inputs[:400], "train_labels": labels[:400]}
        np.savez("data.npz", **parts, test_images=inputs[400:], test_labels=labels[400:])
        agreed = Agreement(Order.checked(scenario("data.npz"), ("proposed",), (0,), 2), SETTINGS)
        federate_in_process(agreed, Path("run"), "test", app=app_of(lambda: agreed, Path("run/devices")))
        shutil.copytree(name, target, ignore=shutil.ignore_patterns("*lock", "*.log", "compiled"))


if __name__ == "__main__":
    write((Path(__file__).parent / sys.argv[1]).absolute())
