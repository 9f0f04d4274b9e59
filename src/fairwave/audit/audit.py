"""The whole audit of what a scenario claims."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from fairwave.audit.central_canaries import CentralSubject
from fairwave.audit.copies_coalition import CopiesSubject
from fairwave.audit.exchange_canaries import ExchangeSubject
from fairwave.audit.hypothesis_tests import Finding, canary_findings, noise_findings, sampling_finding
from fairwave.audit.training_canaries import TrainingSubject
from fairwave.audit.transcript import Claim, Subject
from fairwave.errors import ScenarioError
from fairwave.extensions import PRIVACY_MODES, SCHEMES
from fairwave.privacy.modes.mode import mode_of
from fairwave.scenario.parameters import Scenario

ALARM = 1e-4
"""Probability of a false alarm in one test."""
CANARIES = 1_000
RELEASES = 20
SAMPLING = 0.1
"""Probability with which canaries enter batches, where that is tested."""
EPSILON = 2.0
"""What the audited releases claim in all: small enough for canaries to refute it."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the tests say about one part of the code."""

    subject: str
    findings: list[Finding]

    @property
    def flagged(self) -> bool:
        """Whether any test refutes the claim."""
        return any(finding.flagged for finding in self.findings)


def verdict_on(subject: Subject, claim: Claim, num_canaries: int, seed: int) -> Verdict:
    """Run a mechanism once and test what it showed."""
    transcript = subject.run(claim, num_canaries, seed)
    findings = [*noise_findings(transcript, claim, ALARM), *canary_findings(transcript, claim, ALARM)]
    return Verdict(subject.name, findings)


def check_claims(scenario: Scenario) -> None:
    """Refuse a scenario that claims nothing."""
    if not mode_of(scenario.privacy).proves:
        proving = " or ".join(f"'{name}'" for name, mode in PRIVACY_MODES.items() if mode.proves)
        raise ScenarioError(
            f"privacy.mode: '{scenario.privacy.mode}' claims nothing, so that there is nothing to audit; choose "
            f"{proving}, such as in the preset 'fair'"
        )


def audit(
    scenario: Scenario, num_canaries: int = CANARIES, epsilon: float = EPSILON, seed: int = 0
) -> Iterator[Verdict]:
    """A verdict on each part of the code that the scenario's claims rest on, one after the other."""
    privacy = scenario.privacy
    claim = Claim.of_total(epsilon, RELEASES, privacy.delta)
    if mode_of(privacy).trusts_access_point:
        yield verdict_on(CentralSubject(SCHEMES["max_power"], privacy), claim, num_canaries, seed)
        return
    by_layer = scenario.learning.model != "cnn"
    training = TrainingSubject(privacy.clip_norm or 1.0, privacy.noise_source, by_layer)
    yield verdict_on(training, claim, num_canaries, seed)
    yield batches_verdict(training, claim, num_canaries, seed)
    if scenario.learning.gradient_exchange:
        exchange = ExchangeSubject(privacy.clip_norm or 1.0, privacy.noise_source)
        yield verdict_on(exchange, claim, num_canaries, seed)
    yield copies_verdict(CopiesSubject(SCHEMES["proposed"], privacy), seed)


def batches_verdict(training: TrainingSubject, claim: Claim, num_canaries: int, seed: int) -> Verdict:
    """On how batches are drawn, with noise of a tenth so that it shows."""
    quiet = Claim(claim.rounds, 0.1 * claim.multiplier, claim.delta)
    sampled = dataclasses.replace(training, sampling=SAMPLING)
    transcript = sampled.run(quiet, num_canaries, seed)
    return Verdict("batches on a device", [sampling_finding(transcript, quiet, SAMPLING, ALARM)])


def copies_verdict(subject: CopiesSubject, seed: int) -> Verdict:
    """On what a coalition can make of its copies."""
    return Verdict(subject.name, subject.findings(seed, ALARM))
