"""A run's privacy account: per scheme and audience what the ledger proves, and what the paper's rules would quote."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp

from fairwave.privacy.accounting import basic_composition, epsilon_of, strong_composition
from fairwave.privacy.exposure import Exposure, exposures
from fairwave.privacy.gaussian import noise_multiplier
from fairwave.privacy.ledger import Ledger, Ledgers, rounds_of
from fairwave.privacy.nominal import nominal
from fairwave.privacy.spending import Account, Spending
from fairwave.report.privacy_words import claims
from fairwave.scenario.parameters import Scenario

MOST_DEVICES = 20
"""Devices that are listed one by one."""


@dataclasses.dataclass(frozen=True)
class SchemeAccount:
    """Of one scheme, for the seed that costs most."""

    scheme: str
    seed: int
    rounds: int
    exposures: list[Exposure]
    noisy: bool
    """Its copies have noise."""
    devices: dict[int, Account]
    """What each device sent; those that spent most, if there are many. Empty where nothing is proved about it."""


@dataclasses.dataclass(frozen=True)
class RunAccount:
    """Of a run."""

    scenario: Scenario
    rounds: int
    schemes: list[SchemeAccount]
    claims: list[str]

    @property
    def delta(self) -> float:
        """At which all is told."""
        return self.scenario.privacy.delta

    def quoted(self) -> list[str]:
        """What the paper's own rules would make of it, line by line."""
        if self.scenario.privacy.mode == "paper":
            return _nominal(self.scenario, self.rounds) if any(one.noisy for one in self.schemes) else []
        proved = [one for each in self.schemes for one in each.exposures if one.account.releases]
        worst = max(proved, key=lambda one: one.epsilon, default=None)
        return [] if worst is None else _composed(worst.account, self.delta)


def run_account(scenario: Scenario, ledgers: Ledgers, coalition: int | None = None) -> RunAccount:
    """From the ledgers of all schemes and seeds; a coalition of so many devices, or of all."""
    accounts = [_account(scenario, *which, ledger, coalition) for which, ledger in ledgers.items() if ledger]
    by_scheme: dict[str, list[SchemeAccount]] = {}
    for one in accounts:
        by_scheme.setdefault(one.scheme, []).append(one)
    worst = [
        max(of_seeds, key=lambda one: max((each.epsilon for each in one.exposures), default=0.0))
        for of_seeds in by_scheme.values()
    ]
    return RunAccount(scenario, max((one.rounds for one in accounts), default=0), worst, claims(scenario))


def _account(scenario: Scenario, scheme: str, seed: int, ledger: Ledger, coalition: int | None) -> SchemeAccount:
    events = [event for _, event in ledger]
    privacy = scenario.privacy
    devices: dict[int, Account] = {}
    if privacy.mode == "provable":
        accounts = Spending().add(event for event in events if event.sender == "device").accounts()
        devices = dict(sorted(accounts.items(), key=lambda item: -item[1].steps)[:MOST_DEVICES])
    return SchemeAccount(
        scheme=scheme,
        seed=seed,
        rounds=rounds_of(ledger),
        exposures=exposures(events, privacy.delta, coalition),
        noisy=any(event.content == "model" and event.noise_std.any() for event in events),
        devices=dict(sorted(devices.items())),
    )


def cost(epsilon: float) -> str:
    """An epsilon as it is printed."""
    return "infinite" if math.isinf(epsilon) else f"{epsilon:.3f}"


def _composed(account: Account, delta: float) -> list[str]:
    steps, share = account.steps, 0.5 * delta / account.steps
    largest = max(epsilon_of({kind: 1}, share) for kind in account.releases)
    basic, _ = basic_composition(largest, share, steps)
    strong, _ = strong_composition(largest, share, steps, 0.5 * delta)
    worse = ", which is worse than basic where one release costs this much" if strong > basic else ""
    return [
        f"The composition rules that the paper quotes would add up these {steps} releases, each of exact epsilon "
        f"{largest:.2f} at its share of delta, to epsilon {basic:.1f} (basic) or {strong:.1f} (strong{worse})."
    ]


def _nominal(scenario: Scenario, rounds: int) -> list[str]:
    """What the paper's numbers would add up to."""
    budget, copies = scenario.privacy, scenario.cell.num_devices
    multiplier = float(noise_multiplier(budget.calibration, jnp.asarray(budget.epsilon), budget.delta))
    total = nominal(
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
        f"If {budget.sensitivity:g} were a true bound, {rounds} rounds at nominal epsilon {budget.epsilon:g} would be, "
        "for a device that never deviates:",
        f"  nominal epsilon {alone} for its own copies (exact composition)",
        f"  nominal epsilon {pooled} if all {copies} devices pool their copies ({budget.copies})",
        f"  nominal epsilon {basic} by basic composition, as the paper quotes",
        f"  nominal epsilon {strong} by strong composition with the term that the paper leaves out",
    ]
