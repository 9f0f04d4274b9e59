"""What the paper's numbers would mean if its assumptions held. Nominal: nothing here is a guarantee."""

from __future__ import annotations

import dataclasses
import math

from fairwave.privacy.accounting import gaussian_epsilon
from fairwave.privacy.ledger import Ledger, ReleaseEvent

SENTENCE = (
    "This is nominal and not a guarantee: the sensitivity is assumed, noise levels depend on raw data, "
    "and nothing bounds how much one device or record changes the model."
)
SEEDED = (
    "In a simulation all noise comes from a seeded generator and protects nobody, because anyone who "
    "knows the seed can remove it."
)


@dataclasses.dataclass(frozen=True)
class RealisedNominal:
    """Totals over all rounds of the noise that copies really had, if the assumed sensitivity were a true bound."""

    device: int
    """The device whose copies have the least noise in all."""
    single: float
    """Its own copies."""
    together: float
    """All devices that pool their copies over all rounds; no coalition knows more."""


def realised_nominal(ledger: Ledger, sensitivity: float, delta: float, *, least_noisy: bool) -> RealisedNominal | None:
    """From the noise levels of copies on the ledger; None if no copy has noise.

    What pooled copies of a round tell: the least noisy of them (nested copies, or one copy for all), or their average
    (independent copies). Over rounds both add up, whoever was least noisy when: members may take turns.
    """
    copies = [event for _, event in ledger if event.content == "model" and event.devices.size]
    if not any(event.noise_std.any() for event in copies):
        return None
    of_devices: dict[int, list[float]] = {}
    pooled = []
    for event in copies:
        precisions = _precisions(event, sensitivity)
        pooled.append(max(precisions) if least_noisy else math.fsum(precisions))
        for device, precision in zip(event.devices.tolist(), precisions, strict=True):
            of_devices.setdefault(device, []).append(precision)
    device = max(of_devices, key=lambda each: math.fsum(of_devices[each]))
    return RealisedNominal(device, _epsilon(of_devices[device], delta), _epsilon(pooled, delta))


def _precisions(event: ReleaseEvent, sensitivity: float) -> list[float]:
    return [(sensitivity / std) ** 2 if std > 0.0 else math.inf for std in event.noise_std.tolist()]


def _epsilon(precisions: list[float], delta: float) -> float:
    total = math.fsum(precisions)
    return gaussian_epsilon(1.0 / math.sqrt(total) if total > 0.0 else math.inf, delta)
