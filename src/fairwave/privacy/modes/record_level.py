"""Mode 'provable': every record is protected by noise that its device adds in every local step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.privacy.accounting import Kind
from fairwave.privacy.budget import most_releases
from fairwave.privacy.ledger import ReleaseEvent, RoundMessages, event
from fairwave.privacy.modes.enforcement import Enforcement
from fairwave.privacy.modes.mode import PrivacyMode, SchemeTraits, Trust
from fairwave.privacy.modes.wording import (
    CONCLUSION,
    NOT_COVERED,
    about_budget,
    about_noise_source,
    about_rounding,
    composed_as_in_the_paper,
    missing_parts,
)
from fairwave.privacy.noise import floating_point_delta
from fairwave.privacy.nominal_totals import RealisedNominal
from fairwave.privacy.protection import Protection
from fairwave.privacy.sampling import overflow_probability, sampling_probability, sufficient_capacity
from fairwave.privacy.spending import Account
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.privacy_parameters import Privacy

LADDER = 1.05
"""Budgets are worked out for holdings on a geometric ladder with this ratio, each device's rounded down to a rung."""


class RecordLevel(PrivacyMode):
    """DP-SGD on every device: all that leaves it is computed from clipped and noised sums."""

    name: ClassVar[str] = "provable"
    summary: ClassVar[str] = "Noise on the devices protects each record."
    proves: ClassVar[bool] = True
    unit: ClassVar[str] = "a record"
    counts_steps: ClassVar[bool] = True
    access_point: ClassVar[Trust | None] = "malicious"
    adversary: ClassVar[str] = (
        "Access point: may be malicious as far as messages are concerned. Whatever copy it sends, a device "
        "clips each record's gradient, adds its own noise and counts its own steps, or refuses. In a "
        "deployment the access point also delivers the app that devices run. A malicious app could omit "
        "clipping or noise, so whoever supplies the code is trusted."
    )

    def obstacles(self, scenario: Scenario) -> Iterator[str]:
        """What would leave a device without noise, or without being counted."""
        yield from missing_parts(scenario)
        privacy, learning = scenario.privacy, scenario.learning
        if learning.gradient_exchange and privacy.exchange_noise_multiplier is None:
            yield (
                "learning.gradient_exchange sends gradients without noise, so that privacy.mode 'provable' would prove "
                "nothing; set it to false, or give privacy.exchange_noise_multiplier"
            )
        if learning.gradient_exchange and privacy.max_epsilon is not None:
            yield (
                "privacy.max_epsilon is kept by counting local steps, and learning.gradient_exchange spends beside "
                "them; set it to false, or set privacy.max_epsilon=unset and read 'fairwave privacy' afterwards"
            )

    def refuses_scheme(self, scheme: SchemeTraits) -> str | None:
        """Schemes in which anything leaves a device without noise."""
        what = None
        if not scheme.noisy_updates:
            what = "trains"
        elif scheme.reports_losses:
            what = "has devices report losses on their data"
        elif scheme.trains_beside:
            what = "trains a model beside"
        if what is None:
            return None
        return (
            f"'{scheme.name}' {what} without noise, so that privacy.mode 'provable' would prove nothing; leave it out, "
            "or set privacy.mode=paper"
        )

    def refuses_behaviour(self, name: str, *, changes_sampling: bool) -> str | None:
        """Behaviours that change how records are sampled."""
        if not changes_sampling:
            return None
        return (
            f"'{name}' changes how records are sampled, which the ledger of privacy.mode 'provable' could not account "
            "for; leave it out, or set privacy.mode=paper"
        )

    def enforcement(self, scenario: Scenario, counts: np.ndarray, num_parameters: int) -> Enforcement:
        """Clipping, Poisson batches and noise in every step, and a budget of steps for every device."""
        privacy, learning = scenario.privacy, scenario.learning
        capacity = max(sufficient_capacity(learning.batch_size, int(count), privacy.delta) for count in set(counts))
        sampling = np.asarray(sampling_probability(learning.batch_size, jnp.asarray(counts)))
        rounding = floating_point_delta(privacy.noise_source, num_parameters)
        lost = np.full(counts.shape, rounding) + [
            overflow_probability(int(count), float(share), capacity)
            for count, share in zip(counts, sampling, strict=True)
        ]
        protection = Protection(
            clip_norm=privacy.clip_norm or 0.0,
            noise_multiplier=privacy.noise_multiplier or 0.0,
            exchange_noise_multiplier=privacy.exchange_noise_multiplier if learning.gradient_exchange else None,
            capacity=capacity,
            source=privacy.noise_source,
        )
        return Enforcement(
            clip_norm=protection.clip_norm,
            noise_multiplier=protection.noise_multiplier,
            exchange_noise_multiplier=privacy.exchange_noise_multiplier or 0.0,
            rounding_delta=rounding,
            sampling=sampling,
            lost_delta=lost,
            protection=protection,
            work_out_budget=lambda: _steps(privacy, learning.batch_size, counts, float(lost.max())),
        )

    def events(self, enforced: Enforcement, messages: RoundMessages) -> list[ReleaseEvent]:
        """What devices sent, step by step; all that the access point sends is computed from that."""
        sent = np.union1d(messages.sent, np.flatnonzero(messages.steps))
        if messages.gradients is not None:
            sent = np.union1d(sent, np.flatnonzero(messages.gradients))
        steps = messages.steps[sent]
        private = [
            event(
                "update",
                "device",
                sent,
                enforced.noise_multiplier * enforced.clip_norm,
                enforced.clip_norm,
                steps=steps,
                sampling=enforced.sampling[sent],
                lost_delta=steps * enforced.lost_delta[sent],
            )
        ]
        if messages.exchanged_gradients:
            std, lost = enforced.exchange_noise_multiplier * enforced.clip_norm, enforced.rounding_delta
            count = np.ones(sent.shape, int) if messages.gradients is None else messages.gradients[sent]
            exchanged = event("gradient", "device", sent, std, enforced.clip_norm, steps=count, lost_delta=count * lost)
            private.insert(0, exchanged)
            private.append(event("gradient", "access point", messages.invited, basis="messages", subjects=sent))
        return [
            *private,
            event(
                "model",
                "access point",
                messages.served,
                messages.copy_std,
                basis="messages",
                subjects=messages.delivered,
            ),
            event("deviation", "access point", messages.delivered, basis="messages"),
        ]

    def claims(self, scenario: Scenario) -> list[str]:
        """Record-level privacy, against everybody."""
        privacy = scenario.privacy
        exchanged = (
            f" The exchanged gradient is a sum over all records with noise of {privacy.exchange_noise_multiplier:g} "
            "times the clip length."
            if scenario.learning.gradient_exchange
            else ""
        )
        return [
            "Protected: each training record of each device, over the whole run, against the access point, every "
            "device, any coalition of them, and the public.",
            self.adversary,
            "Adjacent: a record is there, or its place is empty (one is added or removed, and how many a device "
            "holds is public). Replacing one record by another is two such changes.",
            "How: in every local step a record enters the batch with the stated probability, independently of all "
            f"others. Its gradient is clipped to {privacy.clip_norm:g}, and noise of {privacy.noise_multiplier:g} "
            f"times that is added to the sum. Everything else is computed from such sums.{exchanged}",
            "Steps are counted per device, and a device that computes more spends more. Records are disjoint, so "
            "the run costs what its most exposed device spends.",
            about_budget(privacy, "How many steps a device makes follows from its channels and from earlier messages"),
            about_noise_source(privacy),
            *about_rounding(
                scenario,
                "The rounding and its step size depend on noised values and on separate random numbers, and on "
                "records in no other way. It is post-processing, which costs nothing.",
            ),
            NOT_COVERED,
        ]

    def conclusion(self) -> str:
        """Where to read what is proved."""
        return CONCLUSION

    def quoted(
        self, scenario: Scenario, rounds: int, nominal: Mapping[str, RealisedNominal], proved: Sequence[Account]
    ) -> list[str]:
        """The paper's composition rules, applied to the exact cost of one release."""
        return composed_as_in_the_paper(proved, scenario.privacy.delta)


@double_precision()
def _steps(privacy: Privacy, batch_size: int, counts: np.ndarray, lost: float) -> np.ndarray | None:
    """The local steps that each device may make, from how many samples it holds; None without a limit."""
    if privacy.max_epsilon is None:
        return None
    # Fewer samples mean a larger share of them in every batch, and so fewer steps: rounding down is safe.
    rungs = np.maximum(1, np.floor(LADDER ** np.floor(np.log(counts) / np.log(LADDER)))).astype(int)
    if len(set(counts)) == 1:
        rungs = counts
    allowed = {
        rung: most_releases(_kind(privacy, batch_size, rung), privacy.max_epsilon, privacy.delta, lost)
        for rung in set(rungs)
    }
    return np.array([allowed[rung] for rung in rungs])


def _kind(privacy: Privacy, batch_size: int, count: int) -> Kind:
    return privacy.noise_multiplier or 0.0, float(sampling_probability(batch_size, jnp.asarray(count)))


record_level = RecordLevel()
