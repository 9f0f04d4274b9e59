"""What the paper's numbers would mean if its assumptions held. Nominal: nothing here is a guarantee."""

from __future__ import annotations

import dataclasses

from fairwave.privacy.accounting import basic_composition, collapsed, gaussian_epsilon, strong_composition

SENTENCE = (
    "Nominal, not a guarantee: the sensitivity is assumed, noise levels depend on raw data, and the access point's own "
    "model is never noised."
)


@dataclasses.dataclass(frozen=True)
class Nominal:
    """Totals over all rounds for a device that never deviates, if the assumed sensitivity were a true bound."""

    rounds: int
    delta: float
    exact: float
    """One device's copies."""
    coalition: float
    """All devices' copies together."""
    basic: tuple[float, float]
    strong: tuple[float, float]
    """The paper quotes the last two; epsilon and delta."""


def nominal(multiplier: float, *, epsilon: float, delta: float, rounds: int, num_devices: int, nested: bool) -> Nominal:
    """From the noise multiplier and the budget of one release."""
    copies = 1 if nested else num_devices
    return Nominal(
        rounds=rounds,
        delta=delta,
        exact=gaussian_epsilon(collapsed([multiplier] * rounds), delta),
        coalition=gaussian_epsilon(collapsed([multiplier] * (rounds * copies)), delta),
        basic=basic_composition(epsilon, delta, rounds),
        strong=strong_composition(epsilon, delta, rounds, delta),
    )
