"""A run's privacy account: per scheme and audience what the ledger proves, and what the paper's rules would quote."""

from __future__ import annotations

import dataclasses
import math

from fairwave.extensions import SCHEMES
from fairwave.privacy.exposure import Exposure, exposures
from fairwave.privacy.ledger import Ledger, Ledgers, rounds_of, with_unfinished
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.nominal_totals import RealisedNominal, realised_nominal
from fairwave.privacy.publication import published_together
from fairwave.privacy.spending import Account, Spending
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.privacy_parameters import Privacy

MOST_DEVICES = 20
"""Devices that are listed one by one."""
ONE_SEED = "all schemes added up device by device"
SEVERAL_SEEDS = (
    "an upper bound: the most that each seed reveals about any device is added up, because seeds may "
    "split the data differently; it is about data that lie on one device in every seed"
)


@dataclasses.dataclass(frozen=True)
class SchemeAccount:
    """The account of one scheme, for the seed that costs most."""

    scheme: str
    seed: int
    rounds: int
    exposures: list[Exposure]
    nominal: RealisedNominal | None
    """Totals that are no guarantee, where nothing is proved and copies have noise."""
    devices: dict[int, Account]
    """What each device sent; those that spent most, if there are many. Empty where nothing is proved about it."""


@dataclasses.dataclass(frozen=True)
class RunAccount:
    """The account of a run."""

    scenario: Scenario
    rounds: int
    schemes: list[SchemeAccount]
    together: Exposure | None
    """All schemes and seeds, published together; None if nothing was told."""
    together_note: str
    """How that was added up."""
    unfinished: list[str]
    """A sentence for every round that devices were asked in and that was not concluded."""
    claims: list[str]

    @property
    def delta(self) -> float:
        """The delta at which every epsilon is given."""
        return self.scenario.privacy.delta

    def quoted(self) -> list[str]:
        """What the paper's own rules would make of it, line by line."""
        proved = [one.account for each in self.schemes for one in each.exposures if one.account.releases]
        nominal = {one.scheme: one.nominal for one in self.schemes if one.nominal is not None}
        return mode_of(self.scenario.privacy).quoted(self.scenario, self.rounds, nominal, proved)


def run_account(
    scenario: Scenario, ledgers: Ledgers, unfinished: Ledgers | None = None, coalition: int | None = None
) -> RunAccount:
    """From the ledgers of all schemes and seeds, and what was asked for beyond them.

    A coalition has so many devices, or all.
    """
    asked = unfinished or {}
    whole = {track: ledger for track, ledger in with_unfinished(ledgers, asked).items() if ledger}
    accounts = [_account(scenario, track, ledger, asked.get(track, ()), coalition) for track, ledger in whole.items()]
    by_scheme: dict[str, list[SchemeAccount]] = {}
    for one in accounts:
        by_scheme.setdefault(one.scheme, []).append(one)
    worst = [max(of_seeds, key=_cost_of) for of_seeds in by_scheme.values()]
    mode = mode_of(scenario.privacy)
    return RunAccount(
        scenario=scenario,
        rounds=max((one.rounds for one in accounts), default=0),
        schemes=worst,
        together=published_together(whole, scenario.privacy.delta, trusted=mode.trusts_access_point),
        together_note=ONE_SEED if len({seed for _, seed in whole}) == 1 else SEVERAL_SEEDS,
        unfinished=[
            f"{scheme} with seed {seed}: asked in round {number + 1}, not concluded: counted at its worst"
            for (scheme, seed), tries in asked.items()
            for number in sorted({number for number, _ in tries})
        ],
        claims=mode.claims(scenario),
    )


def _cost_of(account: SchemeAccount) -> tuple[float, float]:
    proved = max((each.epsilon for each in account.exposures), default=0.0)
    return proved, 0.0 if account.nominal is None else account.nominal.together


def _account(
    scenario: Scenario, track: tuple[str, int], ledger: Ledger, asked: Ledger, coalition: int | None
) -> SchemeAccount:
    """The account of one track, from a ledger that ends with what was asked for and not concluded."""
    (scheme, seed), privacy = track, scenario.privacy
    events = [event for _, event in ledger]
    devices: dict[int, Account] = {}
    if mode_of(privacy).counts_steps:
        accounts = Spending().add(event for event in events if event.sender == "device").accounts()
        devices = dict(sorted(accounts.items(), key=lambda item: -item[1].steps)[:MOST_DEVICES])
    return SchemeAccount(
        scheme=scheme,
        seed=seed,
        rounds=rounds_of(ledger[: len(ledger) - len(asked)]),
        exposures=exposures(events, privacy.delta, coalition),
        nominal=nominal_of(privacy, scheme, ledger),
        devices=dict(sorted(devices.items())),
    )


def nominal_of(privacy: Privacy, scheme: str, ledger: Ledger) -> RealisedNominal | None:
    """Nominal totals of a scheme's copies; None where something is proved, or where copies have no noise."""
    if mode_of(privacy).proves:
        return None
    return realised_nominal(
        ledger, privacy.sensitivity, privacy.delta, least_noisy=pools_to_least_noisy(privacy, scheme)
    )


def pools_to_least_noisy(privacy: Privacy, scheme: str) -> bool:
    """Whether pooled copies of a round tell what the least noisy tells: they are nested, or all are one copy.

    All are one copy if it is broadcast, or if the access point sends its own noisy model and adds nothing.

    A plugin's scheme that is not loaded is taken to send independent copies, which costs more.
    """
    same_level = scheme in SCHEMES and SCHEMES[scheme].same_noise_for_all
    return privacy.copies == "nested" or (same_level and (privacy.broadcast or privacy.overwrite_model))


def cost(epsilon: float) -> str:
    """An epsilon as it is printed."""
    return "infinite" if math.isinf(epsilon) else f"{epsilon:.3f}"
