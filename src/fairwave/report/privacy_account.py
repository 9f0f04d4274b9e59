"""A run's privacy account: per scheme and audience what the ledger proves, and what the paper's rules would quote."""

from __future__ import annotations

import dataclasses
import math

from fairwave.privacy.exposure import Exposure, exposures
from fairwave.privacy.ledger import Ledger, Ledgers, rounds_of
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.spending import Account, Spending
from fairwave.scenario.parameters import Scenario

MOST_DEVICES = 20
"""Devices that are listed one by one."""


@dataclasses.dataclass(frozen=True)
class SchemeAccount:
    """The account of one scheme, for the seed that costs most."""

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
    """The account of a run."""

    scenario: Scenario
    rounds: int
    schemes: list[SchemeAccount]
    claims: list[str]

    @property
    def delta(self) -> float:
        """The delta at which every epsilon is given."""
        return self.scenario.privacy.delta

    def quoted(self) -> list[str]:
        """What the paper's own rules would make of it, line by line."""
        proved = [one.account for each in self.schemes for one in each.exposures if one.account.releases]
        noisy = any(one.noisy for one in self.schemes)
        return mode_of(self.scenario.privacy).quoted(self.scenario, self.rounds, noisy, proved)


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
    return RunAccount(
        scenario, max((one.rounds for one in accounts), default=0), worst, mode_of(scenario.privacy).claims(scenario)
    )


def _account(scenario: Scenario, scheme: str, seed: int, ledger: Ledger, coalition: int | None) -> SchemeAccount:
    events = [event for _, event in ledger]
    privacy = scenario.privacy
    devices: dict[int, Account] = {}
    if mode_of(privacy).counts_steps:
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
