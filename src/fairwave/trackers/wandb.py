"""Weights & Biases: a run for every scheme and seed, kept on this machine unless WANDB_MODE says otherwise."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fairwave.trackers.callback import Callback, RoundValues, Training
from fairwave.trackers.tracker import Tracker, settings_of

if TYPE_CHECKING:
    from wandb import Run

FOLDER = "wandb"


class WandB(Callback):
    """Runs under a name that stays the same when a run of fairwave goes on; `wandb sync` sends them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._run: Run | None = None

    def on_start(self, training: Training) -> None:
        """Begin a run."""
        # Without an answer to a question about an account, and without reports to its makers.
        os.environ.setdefault("WANDB_MODE", "offline")
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        os.environ.setdefault("WANDB_SILENT", "true")
        import wandb

        name = hashlib.sha256(f"{self._folder} {training.name}".encode()).hexdigest()[:16]
        self._run = wandb.init(
            project="fairwave",
            id=name,
            name=training.name,
            group=self._folder.name,
            dir=str(self._folder),
            resume="allow",
            settings=wandb.Settings(console="off", disable_git=True, disable_code=True),  # values alone leave the run
            config={"scheme": training.scheme, "seed": training.seed}
            | settings_of(training.scenario.model_dump(mode="json")),
        )

    def on_round(self, training: Training, done: RoundValues) -> None:
        """A point of every curve."""
        assert self._run is not None, "started"
        self._run.log(dict(done.values), step=done.number)

    def on_end(self, training: Training, reason: str) -> None:
        """Say how it ended."""
        assert self._run is not None, "started"
        self._run.summary["ended"] = reason
        self._run.finish(exit_code=int(reason == "interrupted"))


wandb = Tracker(
    "wandb",
    f"This tracker writes offline files into {FOLDER} in the run's folder, or does what WANDB_MODE says.",
    "wandb",
    WandB,
)
