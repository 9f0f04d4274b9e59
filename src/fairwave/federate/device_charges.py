"""What a device charges to the account of its records before it computes anything that will leave it."""

from __future__ import annotations

from pathlib import Path

from fairwave.federate.client_data import OwnSamples
from fairwave.federate.device_account import DeviceAccount
from fairwave.privacy.modes.enforcement import Enforcement
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.privacy_filter import Budget
from fairwave.scenario.privacy_parameters import Privacy

SIMULATED = "simulated"
"""Folder, among a device's accounts, for noise that follows from a seed: it is counted, and protects nobody."""


class DeviceCharges:
    """The account of one device's records, charged as the privacy mode of one federation has it."""

    def __init__(
        self,
        folder: Path,
        samples: OwnSamples,
        privacy: Privacy,
        enforced: Enforcement,
        *,
        seeded_noise: bool,
        own_budget: Budget | None,
    ) -> None:
        """`own_budget` is the device owner's, which holds beside that of the scenario."""
        counted, own = mode_of(privacy).counts_steps, () if own_budget is None else (own_budget,)
        agreed = own
        if counted and privacy.max_epsilon is not None:
            agreed = (*own, Budget(privacy.max_epsilon, privacy.delta))
        self._unproven = DeviceAccount(folder, own) if seeded_noise or not counted else None
        self._proved: DeviceAccount | None = None
        if counted:
            self._proved = DeviceAccount(folder / SIMULATED if seeded_noise else folder, agreed)
        self._step = (enforced.noise_multiplier, float(enforced.sampling[samples.index]))
        self._lost_in_step = float(enforced.lost_delta[samples.index])
        self._gradient = (enforced.exchange_noise_multiplier, 1.0)
        self._lost_in_gradient = enforced.rounding_delta

    def steps_left(self) -> int | None:
        """Local steps that the account allows; None without a limit."""
        return None if self._proved is None else self._proved.allowance(self._step, self._lost_in_step)

    def take_steps(self, count: int) -> bool:
        """Charge local steps; false if a budget does not allow them."""
        if self._unproven is not None and not self._unproven.charge_unproven():
            return False
        return self._proved is None or self._proved.charge(self._step, count, self._lost_in_step)

    def take_gradient(self) -> bool:
        """Charge one gradient over all records; false if a budget does not allow it."""
        if self._unproven is not None and not self._unproven.charge_unproven():
            return False
        return self._proved is None or self._proved.charge(self._gradient, 1, self._lost_in_gradient)
