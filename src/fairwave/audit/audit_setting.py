"""What all parts of one audit share: the scenario, the seed, and who holds how many records."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from fairwave.audit.audited_cell import HOLDINGS, QUIET, Change, audited, batch_size
from fairwave.audit.device_bench import REPEATABLE, AuditedDevice, Records
from fairwave.audit.known_records import KnownRecords, known_records, leaves_of
from fairwave.audit.noise_law import NoiseLaw
from fairwave.federate.settings import Settings
from fairwave.learning.model import Model
from fairwave.learning.models import model_of
from fairwave.scenario.parameters import Scenario

DEVICES = 8
HALF_HOLDING, ONE_BATCH = 1, 2
"""Devices that hold half as much as the others, and a single batch, so that all of it is in every step."""


@dataclasses.dataclass(frozen=True)
class AuditSetting:
    """One audit of one scenario."""

    scenario: Scenario
    seed: int
    folder: Path
    """Where devices keep their states."""

    @property
    def model(self) -> Model:
        """The scenario's own network."""
        return model_of(self.scenario.learning.model_copy(update={"l2": 0.0}))

    @property
    def leaves(self) -> dict[str, slice]:
        """Which part of a release belongs to which leaf."""
        return leaves_of(self.model)

    @property
    def clip_norm(self) -> float:
        """The scenario's clip length."""
        return self.scenario.privacy.clip_norm or 1.0

    @property
    def batch(self) -> int:
        """The expected batch size."""
        return batch_size(self.scenario)

    @property
    def counts(self) -> np.ndarray:
        """Records that each device holds: they differ, so that places without a record are looked at too."""
        counts = np.full(DEVICES, HOLDINGS * self.batch, np.int32)
        counts[HALF_HOLDING], counts[ONE_BATCH] = 2 * self.batch, self.batch
        return counts

    def law(self, change: Change) -> NoiseLaw:
        """The claimed law of the noise of one step."""
        privacy = self.scenario.privacy
        multiplier = change.noise_multiplier or privacy.noise_multiplier or 0.0
        return NoiseLaw.claimed(privacy.noise_source, multiplier, self.clip_norm)

    def known(self) -> KnownRecords:
        """Records that show one by one, as many as the largest holding."""
        learning = self.scenario.learning.model_copy(update={"l2": 0.0})
        return known_records(self.model, learning, self.clip_norm, HOLDINGS * self.batch)

    def device(
        self,
        part: str,
        index: int,
        records: Records,
        change: Change,
        *,
        counts: np.ndarray | None = None,
        settings: Settings = REPEATABLE,
    ) -> AuditedDevice:
        """A device; each part of the audit has a folder of its own for its states."""
        scenario = audited(self.scenario, self.seed, change)
        held = self.counts if counts is None else counts
        return AuditedDevice(scenario, index, records, held, self.folder / part, settings)


OWN_NOISE = Change()
"""Single steps with the scenario's own noise."""
WHOLE_ROUNDS = (Change(steps=5), Change(steps=None))
"""Rounds of a few steps, in which a single one that is not counted shows, and of as many as are planned."""
LITTLE_NOISE = Change(noise_multiplier=QUIET)
"""Single steps with so little noise that records show."""
