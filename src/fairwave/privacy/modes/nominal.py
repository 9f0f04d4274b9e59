"""Mode 'paper': the paper's noise with the paper's assumed sensitivity. Nothing is proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from fairwave.privacy.gaussian import noise_multiplier
from fairwave.privacy.ledger import ReleaseEvent, RoundMessages, event
from fairwave.privacy.modes.enforcement import Enforcement
from fairwave.privacy.modes.mode import PrivacyMode
from fairwave.privacy.nominal_totals import SENTENCE
from fairwave.privacy.nominal_totals import nominal as nominal_total
from fairwave.privacy.sampling import sampling_probability
from fairwave.privacy.spending import Account
from fairwave.scenario.parameters import Scenario


class Nominal(PrivacyMode):
    """Noise levels as printed in the paper, and no guarantee."""

    name: ClassVar[str] = "paper"
    summary: ClassVar[str] = "the paper's noise, which proves nothing"
    proves: ClassVar[bool] = False
    unit: ClassVar[str] = "nothing"

    def obstacles(self, scenario: Scenario) -> Iterator[str]:
        """Settings that only make sense where something is proved."""
        privacy = scenario.privacy
        if privacy.max_epsilon is not None:
            yield (
                f"privacy.max_epsilon {privacy.max_epsilon:g} cannot be kept in privacy.mode 'paper', which proves "
                "nothing; leave it out, or choose 'provable'"
            )
        if privacy.noise_source != "simulation":
            yield (
                f"privacy.noise_source '{privacy.noise_source}' guards a proof, and privacy.mode 'paper' has none; set "
                "it to 'simulation'"
            )

    def enforcement(self, scenario: Scenario, counts: np.ndarray, num_parameters: int) -> Enforcement:
        """Nothing is enforced."""
        privacy = scenario.privacy
        return Enforcement(
            clip_norm=privacy.clip_norm or 0.0,
            noise_multiplier=privacy.noise_multiplier or 0.0,
            exchange_noise_multiplier=privacy.exchange_noise_multiplier or 0.0,
            rounding_delta=0.0,
            sampling=np.asarray(sampling_probability(scenario.learning.batch_size, jnp.asarray(counts))),
            lost_delta=np.zeros(counts.shape),
            protection=None,
            work_out_budget=lambda: None,
        )

    def events(self, enforced: Enforcement, messages: RoundMessages) -> list[ReleaseEvent]:
        """Every message, none of them with a proven sensitivity."""
        sent, exchanged = messages.sent, []
        if messages.exchanged_gradients:
            exchanged = [
                event("gradient", "device", sent),
                event("gradient", "access point", messages.invited, subjects=sent),
            ]
        return [
            *exchanged,
            *([event("loss", "device", sent)] if messages.reported_losses else []),
            event("update", "device", sent, messages.update_std),
            event("model", "access point", messages.served, messages.copy_std, subjects=messages.delivered),
            event("deviation", "access point", messages.delivered),
        ]

    def claims(self, scenario: Scenario) -> list[str]:
        """That there is no claim."""
        return [SENTENCE]

    def conclusion(self) -> str:
        """That no guarantee may be quoted."""
        return (
            "You may not quote a privacy guarantee for privacy.mode 'paper': the noise follows the paper's nominal "
            "sensitivity, which nothing in training enforces, and gradients, where they are exchanged, reach the "
            "access point without noise."
        )

    def quoted(self, scenario: Scenario, rounds: int, noisy: bool, proved: Sequence[Account]) -> list[str]:
        """What the paper's numbers would add up to if its assumptions held."""
        if not noisy:
            return []
        budget, copies = scenario.privacy, scenario.cell.num_devices
        multiplier = float(noise_multiplier(budget.calibration, jnp.asarray(budget.epsilon), budget.delta))
        total = nominal_total(
            multiplier,
            epsilon=budget.epsilon,
            delta=budget.delta,
            rounds=rounds,
            num_devices=copies,
            nested=budget.copies == "nested",
        )
        alone, pooled = f"{total.exact:.2f} at delta {total.delta:g}", f"{total.coalition:.2f} at delta {total.delta:g}"
        basic, strong = (f"{epsilon:.1f} at delta {delta:.2g}" for epsilon, delta in (total.basic, total.strong))
        return [
            f"If {budget.sensitivity:g} were a true bound, {rounds} rounds at nominal epsilon {budget.epsilon:g} would "
            "be, for a device that never deviates:",
            f"  nominal epsilon {alone} for its own copies (exact composition)",
            f"  nominal epsilon {pooled} if all {copies} devices pool their copies ({budget.copies})",
            f"  nominal epsilon {basic} by basic composition, as the paper quotes",
            f"  nominal epsilon {strong} by strong composition with the term that the paper leaves out",
        ]


nominal = Nominal()
