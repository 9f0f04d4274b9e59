"""Rules by which one device chooses its iterations and power. A new rule is one small file and one name here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fairwave.policy.effort import Effort
from fairwave.policy.preferences import Preferences
from fairwave.policy.problem import Choice, DeviceProblem
from fairwave.policy.rules.amplifier_cap import amplifier_cap
from fairwave.policy.rules.energy_and_delay import energy_and_delay
from fairwave.policy.rules.equal_energy import equal_energy
from fairwave.policy.rules.least_energy import least_energy
from fairwave.policy.rules.max_power import max_power
from fairwave.policy.rules.priced import priced
from fairwave.policy.rules.proposed import maximise_utility

Rule: TypeAlias = Callable[[DeviceProblem, Preferences, Effort], Choice]

ALL: dict[str, Rule] = {
    "proposed": maximise_utility,
    "max_power": max_power,
    "amplifier_cap": amplifier_cap,
    "priced": priced,
    "equal_energy": equal_energy,
    "least_energy": least_energy,
    "fedl": energy_and_delay,
}
