"""What to run: a scenario, the schemes and seeds to compare, and for how many rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairwave import adversaries, defences
from fairwave import schemes as registry
from fairwave.errors import ArgumentError, ScenarioError, did_you_mean
from fairwave.privacy.exact_noise import check_installed
from fairwave.scenario.parameters import Scenario
from fairwave.schemes.scheme import Scheme

DEFAULT_SCHEMES = ("proposed", "max_power")


class Track(NamedTuple):
    """One scheme with one seed: what is run from the first round to the last."""

    scheme: str
    seed: int


@dataclasses.dataclass(frozen=True)
class Order:
    """Checked on construction."""

    scenario: Scenario
    schemes: tuple[str, ...] = DEFAULT_SCHEMES
    seeds: tuple[int, ...] = (0,)
    rounds: int = 1

    def __post_init__(self) -> None:
        for name in self.schemes:
            if name not in registry.ALL:
                raise ArgumentError(f"schemes: unknown scheme '{name}'; {did_you_mean(name, registry.ALL)}")
        if not self.schemes or not self.seeds or _twice(self.schemes) or _twice(self.seeds):
            raise ArgumentError("schemes and seeds: give at least one of each, and none twice")
        for seed in self.seeds:
            if not 0 <= seed <= 2**53:
                raise ArgumentError(f"seeds: {seed} is out of range; give whole numbers from 0 to 2^53")
        if self.rounds < 1:
            raise ArgumentError(f"rounds: {self.rounds} is too few; run at least one")
        for name in self.schemes:
            broken = objection(self.scenario, registry.ALL[name])
            if broken:
                raise ScenarioError(f"schemes: {broken}")
        for entry in self.scenario.cheating.adversaries:
            _check_behaviour(self.scenario, entry.behaviour)
        for name in self.scenario.defences.use:
            _check_defence(self.scenario, name)
        if self.scenario.privacy.noise_source == "exact":
            check_installed()

    def tracks(self) -> Iterator[Track]:
        """Seed by seed, so that all schemes can be compared as soon as one seed is done."""
        for seed in self.seeds:
            for scheme in self.schemes:
                yield Track(scheme, seed)

    def seeded(self, seed: int) -> Scenario:
        """The scenario with that seed."""
        return self.scenario.model_copy(update={"run": self.scenario.run.model_copy(update={"seed": seed})})


def _twice(values: Sequence[object]) -> bool:
    return len(set(values)) < len(values)


def _check_behaviour(scenario: Scenario, name: str) -> None:
    if name not in adversaries.ALL:
        raise ScenarioError(f"cheating.adversaries: unknown behaviour '{name}'; {did_you_mean(name, adversaries.ALL)}")
    if scenario.privacy.mode == "provable" and adversaries.ALL[name].share_of_data is not None:
        raise ScenarioError(
            f"cheating.adversaries: '{name}' changes how records are sampled, which the ledger of privacy.mode "
            "'provable' could not account for; leave it out, or set privacy.mode=paper"
        )


def _check_defence(scenario: Scenario, name: str) -> None:
    if name not in defences.ALL:
        raise ScenarioError(f"defences.use: unknown defence '{name}'; {did_you_mean(name, defences.ALL)}")
    if scenario.privacy.mode == "device":
        raise ScenarioError(
            f"defences.use: '{name}' judges one device's update by others', for which privacy.mode 'device' has no "
            "proof; it clips updates and drops what is not finite anyway: set defences.use=[]"
        )


def objection(scenario: Scenario, scheme: Scheme) -> str | None:
    """Why a scheme does not fit the scenario, or would break what its privacy mode proves; None if it does."""
    mode, cell = scenario.privacy.mode, scenario.cell
    if scheme.needs_all and (
        cell.participants not in (None, cell.num_devices) or cell.arrival_round or cell.departure_round
    ):
        return (
            f"'{scheme.name}' judges devices by every round, and cell.participants, arrival_round or departure_round "
            "leaves some out; leave the scheme out, or ask all"
        )
    if mode == "provable" and not scheme.noisy_updates:
        return (
            f"'{scheme.name}' trains without noise, so that privacy.mode 'provable' would prove nothing; leave it "
            "out, or set privacy.mode=paper"
        )
    if mode == "provable" and (scheme.told_losses or scheme.personal):
        what = "has devices tell losses on their data" if scheme.told_losses else "trains a model beside"
        return (
            f"'{scheme.name}' {what} without noise, so that privacy.mode 'provable' would prove nothing; leave it out, "
            "or set privacy.mode=paper"
        )
    if mode == "device" and not (scheme.same_for_all and scheme.noisy_updates):
        others = ", ".join(name for name, each in registry.ALL.items() if each.same_for_all and each.noisy_updates)
        return (
            f"'{scheme.name}' sends copies whose noise depends on the device, or has none, so that privacy.mode "
            f"'device' would prove nothing; choose among {others} (--schemes)"
        )
    if mode == "device" and (scheme.combine is not None or scheme.personal):
        return (
            f"'{scheme.name}' does more than take the mean of updates, and privacy.mode 'device' has a proof for that "
            "alone; choose another scheme"
        )
    return None
