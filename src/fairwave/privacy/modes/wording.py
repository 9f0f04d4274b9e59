"""Sentences that the modes which prove something share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairwave.privacy.accounting import basic_composition, epsilon_of, strong_composition
from fairwave.privacy.spending import Account
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.privacy_parameters import Privacy

NOT_COVERED = (
    "Not covered: how many records a device holds, when messages are sent and how long computing takes, "
    "settings that were chosen by looking at the same data, who holds which records if that follows from "
    "their labels, and the losses, accuracies and membership inference that a simulation logs. Schemes "
    "and seeds are alternatives on the same data. Each costs what is reported for it, and publishing "
    "several adds up to the row for everything in the folder."
)
CONCLUSION = (
    "The section Privacy says what is proved and what is not covered. Membership inference that fails "
    "proves nothing more."
)


def missing_parts(scenario: Scenario) -> Iterator[str]:
    """What every proof needs, as far as the scenario does not have it."""
    privacy, mode = scenario.privacy, f"privacy.mode '{scenario.privacy.mode}'"
    for name in ("clip_norm", "noise_multiplier"):
        if getattr(privacy, name) is None:
            yield f"privacy.{name} is unset, and {mode} proves nothing without it; give it"
    if privacy.local_noise:
        yield f"privacy.local_noise rests on a nominal sensitivity, and {mode} has noise of its own; set it to false"
    if privacy.overwrite_model or privacy.sensitivity_spread:
        which = "overwrite_model" if privacy.overwrite_model else "sensitivity_spread"
        yield (
            f"privacy.{which} is the paper's text to the letter, which {mode} does not follow; leave it out, or use "
            "privacy.mode 'paper'"
        )
    for name in ("target_loss", "global_accuracy"):
        if getattr(scenario.run, name) is None:
            continue
        yield (
            f"run.{name} stops the run on the devices' own losses, which tells about their data; in {mode} use "
            "run.target_accuracy, which is measured on test data"
        )


def about_budget(privacy: Privacy, how: str) -> str:
    """What was fixed beforehand, told apart from what was realised."""
    if privacy.max_epsilon is None:
        return (
            f"Realised (the odometer): the totals in the table. {how}. No budget was fixed in advance (there is no "
            "privacy filter), so quote the largest total that the run could have reached."
        )
    return (
        f"Fixed in advance (the privacy filter), and what may be quoted: epsilon {privacy.max_epsilon:g} at "
        f"delta {privacy.delta:g}. A device stops before it would exceed this. Realised (the odometer): the "
        f"totals in the table. {how}."
    )


def about_noise_source(privacy: Privacy) -> str:
    """Where the noise came from, and what that is worth."""
    if privacy.noise_source == "simulation":
        return (
            "This run drew its noise in single precision from a seeded generator: the totals are what the same "
            "training proves with privacy.noise_source 'hardened' or 'exact'. A simulation itself protects nobody."
        )
    return (
        f"Noise and batches came from the source '{privacy.noise_source}'. Lengths and sums are in double "
        "precision. A margin of 1e-6 of the clip length, a thousand times their rounding, is kept."
    )


def about_rounding(scenario: Scenario, why: str) -> list[str]:
    """Why sending 8 bits changes no number; nothing where values are sent as they were computed."""
    if scenario.learning.update_bits == 32:
        return []
    return [f"Values are rounded at random to {scenario.learning.update_bits} bits before they are sent. {why}"]


def composed_as_in_the_paper(proved: Sequence[Account], delta: float) -> list[str]:
    """What the composition rules that the paper quotes would give for the account that costs most."""
    worst = max(proved, key=lambda account: account.epsilon(delta), default=None)
    if worst is None:
        return []
    steps, share = worst.steps, 0.5 * delta / worst.steps
    largest = max(epsilon_of({kind: 1}, share) for kind in worst.releases)
    basic, _ = basic_composition(largest, share, steps)
    strong, _ = strong_composition(largest, share, steps, 0.5 * delta)
    worse = ", which is worse than basic where one release costs this much" if strong > basic else ""
    return [
        f"The composition rules that the paper quotes would add up these {steps} releases, each of exact epsilon "
        f"{largest:.2f} at its share of delta, to epsilon {basic:.1f} (basic) or {strong:.1f} (strong{worse})."
    ]
