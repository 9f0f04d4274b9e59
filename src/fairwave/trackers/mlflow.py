"""MLflow: a run for every scheme and seed, in a local store unless MLFLOW_TRACKING_URI names a server."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fairwave.trackers.callback import Callback, RoundValues, Training
from fairwave.trackers.tracker import Tracker, settings_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

STORE = "mlflow.db"
NAME_TAG = "fairwave.training"
_LONGEST = 500
"""Characters of a setting that every store of MLflow takes."""


class MLflow(Callback):
    """An experiment for the folder, in which a run that goes on is found again by its tag."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._client: MlflowClient | None = None
        self._run = ""

    def on_start(self, training: Training) -> None:
        """Begin a run, or find the one that goes on."""
        # MLflow would report its own use to its makers.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        from mlflow import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.WARNING)  # how it lays out its tables concerns nobody
        place = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self._folder / STORE}"
        self._client = MlflowClient(tracking_uri=place)
        known = self._client.get_experiment_by_name(str(self._folder))
        experiment = known.experiment_id if known else self._client.create_experiment(str(self._folder))
        found = (
            self._client.search_runs([experiment], f"tags.`{NAME_TAG}` = '{training.name}'") if training.done else []
        )
        if found:
            self._run = found[0].info.run_id
            self._client.update_run(self._run, status="RUNNING")
            return
        tags = {NAME_TAG: training.name}
        self._run = self._client.create_run(experiment, tags=tags, run_name=training.name).info.run_id
        settings = {"scheme": training.scheme, "seed": training.seed, "rounds": training.rounds}
        settings |= settings_of(training.scenario.model_dump(mode="json"))
        for name, value in settings.items():
            self._client.log_param(self._run, name, str(value)[:_LONGEST])

    def on_round(self, training: Training, done: RoundValues) -> None:
        """A point of every curve."""
        assert self._client is not None, "started"
        for name, value in done.values.items():
            self._client.log_metric(self._run, name, value, step=done.number)

    def on_end(self, training: Training, reason: str) -> None:
        """Say how it ended."""
        assert self._client is not None, "started"
        self._client.set_tag(self._run, "fairwave.ended", reason)
        self._client.set_terminated(self._run, "KILLED" if reason == "interrupted" else "FINISHED")


mlflow = Tracker(
    "mlflow",
    f"This tracker writes into the store {STORE} in the run's folder, or to MLFLOW_TRACKING_URI if that is set.",
    "mlflow",
    MLflow,
)
