"""A privacy mode: everything that depends on what is to be proved, in one object.

The rest of fairwave asks the mode and never its name: which scenarios, schemes, behaviours and defences it refuses,
what it enforces on devices, what a round costs, which events go on the ledger, and the words that are printed about it.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from fairwave.extensions import PRIVACY_MODES
from fairwave.privacy.accountants import Adjacency
from fairwave.privacy.disclosure import RESULTS, STORED, Source
from fairwave.privacy.ledger import ReleaseEvent, RoundMessages

if TYPE_CHECKING:
    from jaxtyping import Array, Int

    from fairwave.privacy.central_release import CentralRelease
    from fairwave.privacy.modes.enforcement import Enforcement
    from fairwave.privacy.nominal_totals import RealisedNominal
    from fairwave.privacy.spending import Account
    from fairwave.scenario.parameters import Scenario
    from fairwave.scenario.privacy_parameters import Privacy
    from fairwave.types import FlagPerDevice, Key, Params, UpdatePerDevice


Trust: TypeAlias = Literal["trusted", "curious", "malicious"]
"""What the access point may be at worst."""


class SchemeTraits(Protocol):
    """What a mode looks at to decide whether a scheme would break its proof."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def same_noise_for_all(self) -> bool:
        """The noise level does not depend on the device."""

    @property
    def noisy_updates(self) -> bool:
        """Devices add noise where the scenario asks for it."""

    @property
    def reports_losses(self) -> bool:
        """Devices report losses on their data."""

    @property
    def personal_models(self) -> object | None:
        """Models that devices keep for themselves; None without any."""

    @property
    def trains_beside(self) -> bool:
        """Devices train models of their own beside what they send."""

    @property
    def combine(self) -> object | None:
        """A way of its own to combine updates."""


class PrivacyMode(abc.ABC):
    """What is proved, about what, and how that is kept. Subclasses are final."""

    extends: ClassVar[str] = "privacy_modes"
    name: ClassVar[str]
    summary: ClassVar[str]
    proves: ClassVar[bool]
    """Anything is proved at all."""
    unit: ClassVar[str]
    """What a proof is about, in words."""
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_OR_REMOVE_ONE
    counts_steps: ClassVar[bool] = False
    """Noise is added on the device in every local step, and budgets are counted in these; else in rounds."""
    scores_devices: ClassVar[bool] = True
    """Devices are scored and learn their deviation; a score tells about its device, so that not every mode may."""
    access_point: ClassVar[Trust | None] = None
    """The worst that the access point may be for the claim to hold; None where nothing is proved against anybody.

    A trusted one adds the noise that proves and hears every update as it is; a curious one does as agreed, and reads
    all that it is sent; a malicious one sends whatever it likes.
    """
    adversary: ClassVar[str] = "Access point: this privacy mode does not say what it may be."
    """The same in words, with what a worse one could do."""
    uncovered: ClassVar[frozenset[Source]] = frozenset({Source.HOLDINGS, Source.TRAINING_DATA, Source.TIMING})
    """Origins of stored values for which nothing is proved."""

    @property
    def trusts_access_point(self) -> bool:
        """Whether the noise that proves is the access point's, which hears every update as it is."""
        return self.access_point == "trusted"

    def not_private(self) -> dict[str, str]:
        """Stored and exported fields that no proof covers, each with the reason."""
        known = {**RESULTS, **STORED}
        return {name: source.value for name, source in known.items() if source in self.uncovered}

    @abc.abstractmethod
    def obstacles(self, scenario: Scenario) -> Iterator[str]:
        """Everything in a scenario that would break the claim, each with its reason and remedy."""

    def refuses_scheme(self, scheme: SchemeTraits) -> str | None:
        """Why a scheme would break the claim; None if it does not."""
        return None

    def refuses_behaviour(self, name: str, *, changes_sampling: bool) -> str | None:
        """Why a misbehaviour could not be accounted for; None if it can."""
        return None

    def refuses_defence(self, name: str) -> str | None:
        """Why a defence would break the claim; None if it does not."""
        return None

    @abc.abstractmethod
    def enforcement(self, scenario: Scenario, counts: np.ndarray, num_parameters: int) -> Enforcement:
        """What is enforced in a cell whose devices hold so many samples each."""

    def charge(self, local_iterations: Int[Array, " device"], delivered: FlagPerDevice) -> Array:
        """What a round takes from each device's budget: its local steps, or one round if its update was used."""
        return local_iterations if self.counts_steps else delivered

    def noised_model(
        self, privacy: Privacy, model: Params, rows: UpdatePerDevice, arrived: FlagPerDevice, key: Key
    ) -> CentralRelease:
        """The next model with noise that stays in it, in a mode that trusts the access point with that."""
        raise NotImplementedError

    @abc.abstractmethod
    def events(self, enforced: Enforcement, messages: RoundMessages) -> list[ReleaseEvent]:
        """What one round puts on the ledger."""

    @abc.abstractmethod
    def claims(self, scenario: Scenario) -> list[str]:
        """Sentences that go with every epsilon of a run: what is protected, against whom, and what is not covered."""

    @abc.abstractmethod
    def conclusion(self) -> str:
        """What a report says may be concluded."""

    @abc.abstractmethod
    def quoted(
        self, scenario: Scenario, rounds: int, nominal: Mapping[str, RealisedNominal], proved: Sequence[Account]
    ) -> list[str]:
        """What the paper's own rules would make of a run, line by line.

        `nominal` has the totals of every scheme whose copies have noise, where nothing is proved.
        """


def mode_of(privacy: Privacy) -> PrivacyMode:
    """The mode that a scenario names."""
    mode: PrivacyMode = PRIVACY_MODES.get(privacy.mode, "privacy.mode")
    return mode
