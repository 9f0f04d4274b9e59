"""Write the run file that shows the present format; see README.md beside it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from fairwave.cli.main import main

SETTINGS = [
    "cell.num_devices=3",
    "data.samples_per_device=60",
    "learning.model=softmax",
    "learning.layer_sizes=[12, 4]",
    "learning.batch_size=8",
    "learning.learning_rate=0.05",
    "compute.bits_per_iteration=802816",
    "privacy.sensitivity=1e-6",
    "run.target_accuracy=0.4",
    "run.seed=7",
    'defences.use=["validation"]',
    'cheating.adversaries=[{ behaviour = "zero_update", devices = [1] }]',
]


def write(target: Path) -> None:
    """Run the scenario in a folder of its own, and keep the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw = np.random.default_rng(1)
        labels = draw.integers(0, 4, 500).astype(np.int32)
        inputs = (40 * labels[:, None] + draw.integers(0, 60, (500, 12))).astype(np.uint8)
        parts = {"train_images": inputs[:400], "train_labels": labels[:400]}
        np.savez(folder / "data.npz", **parts, test_images=inputs[400:], test_labels=labels[400:])
        options = [part for each in (*SETTINGS, f"data.source={folder / 'data.npz'}") for part in ("--set", each)]
        sys.argv = ["fairwave", "run", "small", "--rounds", "5", "--schemes", "proposed", *options]
        sys.argv += ["--out", str(folder / "run")]
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, stop.code
        shutil.copy(folder / "run" / "run.sqlite", target)


if __name__ == "__main__":
    write(Path(__file__).parent / sys.argv[1])
