"""What is proved about a scheme's privacy in one number: the worst over everybody that the proof is against."""

from __future__ import annotations

import dataclasses
import math

from fairwave.privacy.exposure import ACCESS_POINT
from fairwave.privacy.modes.mode import mode_of
from fairwave.report.privacy_account import RunAccount, cost

NOT_ENFORCED = "the noise assumes a sensitivity that nothing enforces, so it is no guarantee"
REPEATABLE = "this run's own noise is made from its seed, and protects nobody"


@dataclasses.dataclass(frozen=True)
class ProvedEpsilon:
    """An epsilon that is proved, or that none is."""

    epsilon: float | None
    """None where nothing is proved."""
    delta: float
    unit: str
    """What it is about."""
    noisy: bool
    """Where nothing is proved: copies had noise all the same."""
    seeded: bool
    """The noise was made from the run's seed, as in any simulation that does not ask for other noise."""

    def brief(self) -> str:
        """As a cell of a table has it."""
        return "none proved" if self.epsilon is None else cost(self.epsilon)

    def clause(self) -> str:
        """As a part of a sentence."""
        if self.epsilon is not None:
            number = f"epsilon {cost(self.epsilon)} at delta {self.delta:g} is proved for {self.unit}"
            return (
                f"with noise for deployment {number}, but this run's own noise protects nobody"
                if self.seeded
                else number
            )
        if self.noisy:
            return "no privacy guarantee is proved, since its noise assumes a sensitivity that nothing enforces"
        return "no privacy guarantee is proved"

    def notes(self) -> list[str]:
        """What a reader has to know about the number."""
        if self.epsilon is None:
            return [NOT_ENFORCED if self.noisy else "nothing bounds what updates tell"]
        seeded = [REPEATABLE] if self.seeded else []
        return [f"delta {self.delta:g}, for {self.unit}", *seeded]


def proved_epsilon(account: RunAccount, scheme: str) -> ProvedEpsilon:
    """The number of one scheme, for the seed that costs most."""
    privacy = account.scenario.privacy
    mode = mode_of(privacy)
    own = next((each for each in account.schemes if each.scheme == scheme), None)
    told = [] if own is None or not mode.proves else own.exposures
    costs = [one.epsilon for one in told if not (mode.trusts_access_point and one.audience == ACCESS_POINT)]
    worst = max(costs, default=math.inf)
    return ProvedEpsilon(
        epsilon=worst if math.isfinite(worst) else None,
        delta=privacy.delta,
        unit=f"{mode.unit} of a device",
        noisy=own is not None and own.nominal is not None,
        seeded=privacy.noise_source == "simulation",
    )
