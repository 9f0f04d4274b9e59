"""The access point as a Flower strategy: it carries messages between devices and policies, and stores every round."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fairwave.data import sources
from fairwave.errors import FairwaveError
from fairwave.federate.agreement import Brief
from fairwave.federate.connections import Roll
from fairwave.federate.device_keys import Roster
from fairwave.federate.flower_records import to_arrays
from fairwave.federate.protocol import named_arrays
from fairwave.federate.rounds import Rounds
from fairwave.federate.server_run import Hear, Logbook
from fairwave.federate.setup import Premises


class UtilityFair(Strategy):
    """Runs whole federations; `start` is all that a ServerApp has to call."""

    def __init__(
        self,
        brief: Brief,
        folder: Path,
        command: str = "",
        roster: Roster | None = None,
        hear: Hear = lambda line: None,
    ) -> None:
        self._brief, self._folder, self._command, self._roster, self._hear = brief, folder, command, roster, hear

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | None = None,
        num_rounds: int = 0,
        timeout: float = 0.0,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Run the brief's schemes and seeds, from wherever the run folder says that they are.

        Models start as the scenario says, and rounds and deadlines are the brief's: of Flower's own arguments only the
        grid is used.
        """
        order, settings = self._brief.order, self._brief.settings
        premises = Premises(order, sources.load(order.scenario.data.source))
        result = Result()
        with Logbook(self._folder, self._brief, self._command, self._hear) as logbook:
            roll = Roll(grid, order.scenario.cell.num_devices, self._roster, settings.deadline_s, logbook.tell)
            try:
                for track in order.tracks():
                    secret = None if settings.noise == "simulation" else logbook.secret(track)
                    point = premises.access_point(track, secret)
                    logbook.store.begin(track, premises.fingerprint(point), premises.layout(point))
                    last = Rounds(self._brief, grid, logbook, roll, point, track).run()
                    result.arrays = to_arrays(named_arrays(last.global_params))
            except FairwaveError as error:  # Flower keeps what a ServerApp raises to itself
                logbook.tell("failed", why=str(error))
                raise
        logbook.tell("finished")  # the store is closed: whoever waits for this may read it
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
