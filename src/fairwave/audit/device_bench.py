"""Devices under audit: the clients that federate, with records and copies of the model of the auditor's choice."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import numpy as np

from fairwave.errors import AuditError
from fairwave.extensions import SCHEMES
from fairwave.federate.client import DeviceClient
from fairwave.federate.client_data import OwnSamples
from fairwave.federate.device_account import DeviceAccount
from fairwave.federate.device_charges import SIMULATED
from fairwave.federate.protocol import Answer, Phase, Status, Task
from fairwave.federate.settings import Settings
from fairwave.learning.models import model_of
from fairwave.learning.named_arrays import NamedArrays, flattened, leaves_by_name
from fairwave.privacy.accounting import Releases
from fairwave.scenario.parameters import Scenario

SCHEME = "proposed"
REPEATABLE = Settings(noise="simulation")
"""Noise and batches follow from the audit's seed where the scenario's source is a simulation."""
SECRET = Settings()
"""Noise and batches follow from the device's own secret, as they do in a deployment."""


@dataclasses.dataclass(frozen=True)
class Records:
    """What a device holds: inputs, one row per record, and their classes."""

    inputs: np.ndarray
    labels: np.ndarray


@dataclasses.dataclass(frozen=True)
class Release:
    """What one answer of a device shows."""

    values: np.ndarray
    """All leaves in a row: sums of clipped gradients plus noise, in multiples of the clip length."""
    gradient: np.ndarray | None
    """The same of the exchanged gradient; None where none is exchanged."""
    answer: Answer


class AuditedDevice:
    """One client, asked round by round."""

    def __init__(
        self,
        scenario: Scenario,
        index: int,
        records: Records,
        counts: np.ndarray,
        folder: Path,
        settings: Settings = REPEATABLE,
    ) -> None:
        self._scenario, self._index = scenario, index
        self._count = int(counts[index])
        model = model_of(scenario.learning)
        shapes = leaves_by_name(jax.eval_shape(model.init, jax.random.key(0)))
        self._layout = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in shapes}
        samples = OwnSamples(index, records.inputs, records.labels, counts, refreshed=0)
        own = folder / f"device-{index}"
        account = own / "account"
        self._account = account / SIMULATED if settings.noise == "simulation" else account
        self._client = DeviceClient(
            scenario, SCHEMES[SCHEME], model, samples, settings, own / "own.state", account=account
        )
        self._unit = (scenario.privacy.clip_norm or 1.0) / min(scenario.learning.batch_size, self._count)

    def ask(self, number: int, copy: NamedArrays, steps_left: int = -1) -> tuple[Answer, Answer | None]:
        """The answers to one round's tasks: the update, and the gradient where one is exchanged."""
        about = ("audit", SCHEME, self._scenario.run.seed, self._client.agreement, number)
        said, given = (0.0, -1, steps_left), flattened(copy, self._layout)
        if not self._scenario.learning.gradient_exchange:
            return self._client.answer(Task(*about, Phase.UPDATE, *said, given, None)), None
        gradient = self._client.answer(Task(*about, Phase.GRADIENT, *said, given, None))
        return self._client.answer(Task(*about, Phase.UPDATE, *said, None, None)), gradient

    def charged(self) -> Releases:
        """What the device has charged to the account of its records."""
        return DeviceAccount(self._account).entries().releases

    def release(self, number: int, copy: NamedArrays) -> Release:
        """What a round of local training shows to whoever receives its update."""
        update, gradient = self.ask(number, copy)
        if update.status is not Status.SENT or update.values is None:
            raise AuditError(
                f"audit: device {self._index} answered '{update.status}' in round {number + 1}, so that there is "
                "nothing to look at; the audit's cell lets every device send, so that its code has a fault"
            )
        rate = -self._scenario.learning.learning_rate * self._unit
        exchanged = None if gradient is None else gradient.values
        clip = self._scenario.privacy.clip_norm or 1.0
        return Release(
            values=update.values.astype(np.float64) / rate,
            gradient=None if exchanged is None else exchanged.astype(np.float64) * self._count / clip,
            answer=update,
        )
