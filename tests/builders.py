"""Small scenarios, data sets, cells and updates that tests build on. Each is small in one way only: it runs quickly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fairwave
from fairwave.data.sources import DataSet
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.device_map import BEST_HERE, Execution
from fairwave.engine.round_record import RoundRecord
from fairwave.engine.state import State
from fairwave.extensions import SCHEMES
from fairwave.learning.models import model_of
from fairwave.policy.updates import ServerKnowledge, Updates
from fairwave.runs.experiment import run_rounds
from fairwave.scenario.cheating_parameters import Adversary, Cheating
from fairwave.scenario.parameters import Scenario

FEW_SAMPLES = ("cell.num_devices=3", "data.samples_per_device=60", "learning.batch_size=16")
LIKE_THE_PAPER = "compute.bits_per_iteration=802816"
"""Iterations take as long as with batches of 128, so that plans are the paper's."""
SMALL_MNIST = (*FEW_SAMPLES, LIKE_THE_PAPER)
"""Overrides for a few records of MNIST and the scenario's own model."""
SOFTMAX_MNIST = (
    "cell.num_devices=3",
    "data.samples_per_device=40",
    "learning.batch_size=8",
    "learning.model=softmax",
    "learning.layer_sizes=[784, 10]",
    LIKE_THE_PAPER,
)
"""Overrides for a few records of MNIST and softmax regression: the quickest that runs from a command."""
WEATHER = (
    "cell.num_devices=3",
    "data.target=number",
    "learning.model=regression",
    "learning.layer_sizes=[2, 1]",
    "learning.batch_size=8",
    "learning.learning_rate=0.05",
    "radio.payload_bits=unset",
    LIKE_THE_PAPER,
)
"""Overrides for linear regression on what `weather_folder` writes."""


def weather_folder(folder: Path, seed: int = 0) -> Path:
    """CSV files of temperatures that are linear in two measurements, but for noise of std 0.2."""
    folder.mkdir()
    draw = np.random.default_rng(seed)
    for name, count in (("train.csv", 240), ("test.csv", 100)):
        inputs = draw.normal(size=(count, 2))
        labels = 20.0 + inputs @ [3.0, -1.5] + draw.normal(0.0, 0.2, count)
        rows = [f"{label},{first},{second}" for label, (first, second) in zip(labels, inputs, strict=True)]
        (folder / name).write_text("\n".join(["label,humidity,wind", *rows]) + "\n")
    return folder


def as_options(overrides: Iterable[str]) -> list[str]:
    """Overrides as the options of a command."""
    return [part for override in overrides for part in ("--set", override)]


def clusters() -> DataSet:
    """Three noisy clusters of bytes."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 3, 400).astype(np.int32)
    inputs = np.clip(draw.integers(0, 256, (3, 30))[labels] + draw.normal(0, 40, (400, 30)), 0, 255).astype(np.uint8)
    return DataSet(inputs[:300], labels[:300], inputs[300:], labels[300:])


def clusters_scenario(
    *overrides: str, devices: int = 5, cheats: tuple[Adversary, ...] = (), rate: float = 0.05
) -> Scenario:
    """The clean paper's scenario, with a model for clusters."""
    scenario = fairwave.load_scenario(
        "paper-clean",
        [
            f"cell.num_devices={devices}",
            "learning.layer_sizes=[30, 8, 3]",
            "learning.batch_size=16",
            f"learning.learning_rate={rate}",
            LIKE_THE_PAPER,
            *overrides,
        ],
    )
    return scenario.model_copy(update={"cheating": Cheating(adversaries=cheats)})


def clusters_cell(
    scheme: str,
    *overrides: str,
    devices: int = 5,
    cheats: tuple[Adversary, ...] = (),
    rate: float = 0.05,
    execution: Execution = BEST_HERE,
) -> SimulatedCell:
    """A cell whose devices hold clusters."""
    scenario = clusters_scenario(*overrides, devices=devices, cheats=cheats, rate=rate)
    return SimulatedCell(scenario, SCHEMES[scheme], model_of(scenario.learning), clusters(), execution)


def rounds_of(
    cell: SimulatedCell, count: int, state: State | None = None, first: int = 0
) -> list[tuple[State, RoundRecord]]:
    """State and record of every round."""
    return [(done.state, done.record) for done in run_rounds(cell, count, state, first)]


def leaves(tree: Any) -> list[np.ndarray]:
    """The leaves of a tree as NumPy arrays."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def updates_of(rows: np.ndarray | jax.Array, arrived: np.ndarray | None = None, **changes: Any) -> Updates:
    """Updates of devices 0, 1, ... that reported nothing."""
    rows = jnp.asarray(rows)
    count = rows.shape[0]
    each = jnp.zeros(count)
    given: dict[str, Any] = {
        "devices": jnp.arange(count),
        "arrived": jnp.ones(count, bool) if arrived is None else jnp.asarray(arrived),
        "rows": rows,
        "reported_noise_std": each,
        "reported_loss": each,
        "num_samples": each,
        "gain": each,
        "accuracy": each,
    }
    return Updates(**{**given, **changes})


def knowledge_of(model: np.ndarray, copy_noise: np.ndarray, copy_change: np.ndarray, sketches: Any) -> ServerKnowledge:
    """What the access point knows beside the updates."""
    return ServerKnowledge(jnp.asarray(model), jnp.asarray(copy_noise), jnp.asarray(copy_change), sketches)
