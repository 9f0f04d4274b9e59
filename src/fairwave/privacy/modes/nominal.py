"""Mode 'paper': the paper's noise with the paper's assumed sensitivity. Nothing is proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from fairwave.privacy.accounting import basic_composition, printed_strong_composition, strong_composition
from fairwave.privacy.disclosure import Source
from fairwave.privacy.ledger import ReleaseEvent, RoundMessages, event
from fairwave.privacy.modes.enforcement import Enforcement
from fairwave.privacy.modes.mode import PrivacyMode
from fairwave.privacy.nominal_totals import SEEDED, SENTENCE, RealisedNominal
from fairwave.privacy.sampling import sampling_probability
from fairwave.privacy.spending import Account
from fairwave.scenario.parameters import Scenario


class Nominal(PrivacyMode):
    """Noise levels as printed in the paper, and no guarantee."""

    name: ClassVar[str] = "paper"
    summary: ClassVar[str] = "The noise is the paper's, which proves nothing."
    proves: ClassVar[bool] = False
    unit: ClassVar[str] = "nothing"
    adversary: ClassVar[str] = (
        "Access point: nothing is proved against it or anybody else. Even a curious access point receives "
        "exchanged gradients without noise, and updates whose sensitivity nothing bounds."
    )
    uncovered: ClassVar[frozenset[Source]] = frozenset(Source) - {Source.SCENARIO}

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
        return [SENTENCE, self.adversary, SEEDED]

    def conclusion(self) -> str:
        """That no guarantee may be quoted."""
        return (
            "You may not quote a privacy guarantee for privacy.mode 'paper'. The noise follows the paper's "
            "nominal sensitivity, which nothing in training enforces. Gradients, if they are exchanged, reach the "
            "access point without noise."
        )

    def quoted(
        self, scenario: Scenario, rounds: int, nominal: Mapping[str, RealisedNominal], proved: Sequence[Account]
    ) -> list[str]:
        """What the noise on the ledger and the paper's numbers would add up to if its assumptions held."""
        if not nominal:
            return []
        budget = scenario.privacy
        at = f"at delta {budget.delta:g}"
        lines = [
            f"If {budget.sensitivity:g} were a true bound, the noise in the copies would add up to the following "
            "over all rounds:"
        ]
        for scheme, total in nominal.items():
            lines += [
                f"  {scheme}: nominal epsilon {total.single:.2f} {at} for the own copies of device {total.device}, the "
                "most exposed (exact composition)",
                f"  {scheme}: nominal epsilon {total.together:.2f} {at} for all devices together over time "
                f"({budget.copies} copies), which bounds every coalition",
            ]
        basic, printed, strong = (
            f"{epsilon:.1f} at delta {delta:.2g}"
            for epsilon, delta in (
                basic_composition(budget.epsilon, budget.delta, rounds),
                printed_strong_composition(budget.epsilon, budget.delta, rounds),
                strong_composition(budget.epsilon, budget.delta, rounds, budget.delta),
            )
        )
        return [
            *lines,
            f"  nominal epsilon {basic} by basic composition of {rounds} rounds at {budget.epsilon:g}, as the paper "
            "quotes",
            f"  nominal epsilon {printed} by strong composition as the paper prints it, which is no theorem: it lacks "
            "a factor sqrt(2), a second term and a share of delta",
            f"  nominal epsilon {strong} by strong composition as it is proved",
        ]


nominal = Nominal()
