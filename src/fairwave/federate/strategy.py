"""The access point as a Flower strategy: it carries messages between devices and policies, and stores every round."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fairwave.errors import FairwaveError
from fairwave.federate.agreement import Agreement
from fairwave.federate.connections import Connections
from fairwave.federate.device_keys import KnownKeys
from fairwave.federate.messaging import Exchanges
from fairwave.federate.rounds import Rounds
from fairwave.federate.server_run import OnLogLine, ServerRun
from fairwave.federate.setup import access_point, fingerprint, layout
from fairwave.learning.named_arrays import named_arrays
from fairwave.runs.experiment import Experiment


class UtilityFair(Strategy):
    """Runs whole federations; `start` is all that a ServerApp has to call."""

    def __init__(
        self,
        agreement: Agreement,
        folder: Path,
        command: str = "",
        known_keys: KnownKeys | None = None,
        on_line: OnLogLine = lambda line: None,
    ) -> None:
        self._agreement, self._folder, self._command = agreement, folder, command
        self._known_keys, self._on_line = known_keys, on_line

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | None = None,
        num_rounds: int = 0,
        *rest: Any,
        **options: Any,
    ) -> Result:
        """Run the agreement's schemes and seeds, from wherever the run folder says that they are.

        Models start as the scenario says, and rounds and deadlines are the agreement's: of Flower's own arguments only
        the grid is used.
        """
        order, settings = self._agreement.order, self._agreement.settings
        experiment = Experiment(order)
        result = Result()
        with ServerRun(self._folder, self._agreement, self._command, self._on_line) as server_run:
            exchanges = Exchanges(grid)
            connections = Connections(
                exchanges, order.scenario.cell.num_devices, self._known_keys, settings.deadline_s, server_run.log
            )
            server_run.log("started")
            try:
                for track in order.tracks():
                    secret = None if settings.noise == "simulation" else server_run.secret(track)
                    point = access_point(experiment, track, secret)
                    server_run.store.begin(track, fingerprint(experiment, point), layout(point))
                    last = Rounds(self._agreement, exchanges, server_run, connections, point, track).run()
                    model = named_arrays(last.global_params)
                    result.arrays = ArrayRecord({name: Array(array) for name, array in model.items()})
            except FairwaveError as error:  # Flower keeps what a ServerApp raises to itself
                server_run.log("failed", why=str(error), exit_code=error.exit_code)
                raise
        server_run.log("finished")  # the store is closed: whoever waits for this may read it
        return result

    def summary(self) -> None:
        """Flower's hook for logging a configuration; ours is in the run store."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Not used: a round has two exchanges, so `start` runs it whole."""
        raise NotImplementedError

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Not used either."""
        raise NotImplementedError

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Nothing is evaluated on devices: it would be one more release."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Nothing to aggregate."""
        return None
