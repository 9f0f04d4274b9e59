"""What a privacy mode claims, in plain words: what is protected, against whom, how, and what is not covered."""

from __future__ import annotations

from fairwave.privacy.nominal import SENTENCE
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.privacy_parameters import Privacy

NOT_COVERED = (
    "Not covered: how many records a device holds, when messages are sent and how long computing takes, settings that "
    "were chosen by looking at the same data, who holds which records where that follows from their labels, and the "
    "losses, accuracies and membership inference that a simulation logs. Schemes and seeds are alternatives on the "
    "same data: each costs what is told, and publishing several adds up."
)


def claims(scenario: Scenario) -> list[str]:
    """Sentences that go with every epsilon of a run."""
    match scenario.privacy.mode:
        case "paper":
            return [SENTENCE]
        case "provable":
            return [*_records(scenario), *_source(scenario.privacy), NOT_COVERED]
        case "device":
            return [*_devices(scenario.privacy), *_source(scenario.privacy), NOT_COVERED]


def _records(scenario: Scenario) -> list[str]:
    privacy = scenario.privacy
    exchanged = (
        f" The exchanged gradient is a sum over all records with noise of {privacy.exchange_noise_multiplier:g} times "
        "the clip length."
        if scenario.learning.gradient_exchange
        else ""
    )
    return [
        "Protected: each training record of each device, over the whole run, against the access point, every device, "
        "any coalition of them, and the public.",
        "Adjacent: a record is there, or its place is empty (one is added or removed, and how many a device holds is "
        "public); replacing one by another is two such changes.",
        f"How: in every local step a record enters the batch with the probability told, independently of all others; "
        f"its gradient is clipped to {privacy.clip_norm:g}, and noise of {privacy.noise_multiplier:g} times that is "
        f"added to the sum. All else is computed from such sums.{exchanged}",
        "Steps are counted per device: whoever computes more spends more. Records are disjoint, so that the run costs "
        "what its most exposed device spends.",
        _budget(privacy, "How many steps a device makes follows from its channels and from earlier messages"),
    ]


def _devices(privacy: Privacy) -> list[str]:
    return [
        "Protected: all data of one device, over the whole run, against the other devices, any coalition of them, and "
        "the public. The access point is trusted: it hears every update as it is.",
        "Adjacent: a device's updates are there, or zero; that it takes part is public.",
        f"How: each update is clipped to {privacy.clip_norm:g}, and noise of {privacy.noise_multiplier:g} times what "
        "one update can change of their mean is added to the access point's own model, from which the next round "
        "starts. No deviation is told, and everybody gets the same copy.",
        _budget(privacy, "Rounds in which a device was heard are counted"),
    ]


def _budget(privacy: Privacy, how: str) -> str:
    if privacy.max_epsilon is None:
        return f"{how}; no budget was fixed beforehand, so quote the largest total that it could have reached."
    return (
        f"{how}. What is fixed beforehand, and may be quoted, is the budget: epsilon {privacy.max_epsilon:g} at delta "
        f"{privacy.delta:g}; a device stops before it would exceed it."
    )


def _source(privacy: Privacy) -> list[str]:
    if privacy.noise_source == "simulation":
        return [
            "This run drew its noise in single precision from a seeded generator: the totals are what the same "
            "training proves with privacy.noise_source 'hardened' or 'exact'. A simulation itself protects nobody."
        ]
    return [
        f"Noise and batches came from the source '{privacy.noise_source}'. Rounding inside sums of gradients is not "
        "part of the proof; a margin of 1e-4 of the clip length is kept for it."
    ]
