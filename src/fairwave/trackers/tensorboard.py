"""TensorBoard: event files in the run's folder, by tensorboardX, which needs neither PyTorch nor TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fairwave.trackers.callback import Callback, RoundValues, Training
from fairwave.trackers.tracker import Tracker

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

FOLDER = "tensorboard"


class TensorBoard(Callback):
    """A folder of event files for every scheme and seed, to which a run that goes on adds a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._writer: SummaryWriter | None = None

    def on_start(self, training: Training) -> None:
        """Open a file; rounds of it that were told and never stored are dropped by TensorBoard."""
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(self._folder / training.name), purge_step=training.done + 1)
        if not training.done:
            scenario = json.dumps(training.scenario.model_dump(mode="json"), indent=1)
            self._writer.add_text("scenario", f"```\n{scenario}\n```")

    def on_round(self, training: Training, done: RoundValues) -> None:
        """A point of every curve."""
        assert self._writer is not None, "started"
        for name, value in done.values.items():
            self._writer.add_scalar(name, value, done.number)
        self._writer.flush()

    def on_end(self, training: Training, reason: str) -> None:
        """Close the file."""
        assert self._writer is not None, "started"
        self._writer.add_text("ended", reason, training.rounds)
        self._writer.close()


tensorboard = Tracker(
    "tensorboard", f"This tracker writes event files into {FOLDER} in the run's folder.", "tensorboardX", TensorBoard
)
