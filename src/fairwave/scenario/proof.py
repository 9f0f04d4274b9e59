"""What a scenario may not contain if it is to prove anything: each obstacle with its reason and remedy."""

from __future__ import annotations

from collections.abc import Iterator

from fairwave.scenario.learning_parameters import Learning
from fairwave.scenario.privacy_parameters import Privacy


def obstacles(privacy: Privacy, learning: Learning, target_loss: float | None) -> Iterator[str]:
    """Everything that breaks the claim of the privacy mode."""
    if privacy.mode == "paper":
        yield from _of_no_claim(privacy)
        return
    mode = f"privacy.mode '{privacy.mode}'"
    for name in ("clip_norm", "noise_multiplier"):
        if getattr(privacy, name) is None:
            yield f"privacy.{name} is unset, and {mode} proves nothing without it; give it"
    if privacy.local_noise:
        yield (f"privacy.local_noise rests on a nominal sensitivity, and {mode} has noise of its own; set it to false")
    if target_loss is not None:
        yield (
            f"run.target_loss stops the run on the devices' own losses, which tells about their data; in {mode} use "
            "run.target_accuracy, which is measured on test data"
        )
    yield from _of_records(privacy, learning) if privacy.mode == "provable" else _of_devices(privacy, learning)


def _of_no_claim(privacy: Privacy) -> Iterator[str]:
    if privacy.max_epsilon is not None:
        yield (
            f"privacy.max_epsilon {privacy.max_epsilon:g} cannot be kept in privacy.mode 'paper', which proves "
            "nothing; leave it out, or choose 'provable'"
        )
    if privacy.noise_source != "simulation":
        yield (
            f"privacy.noise_source '{privacy.noise_source}' guards a proof, and privacy.mode 'paper' has none; set it "
            "to 'simulation'"
        )


def _of_records(privacy: Privacy, learning: Learning) -> Iterator[str]:
    if learning.gradient_exchange and privacy.exchange_noise_multiplier is None:
        yield (
            "learning.gradient_exchange sends gradients without noise, so that privacy.mode 'provable' would prove "
            "nothing; set it to false, or give privacy.exchange_noise_multiplier"
        )
    if learning.gradient_exchange and privacy.max_epsilon is not None:
        yield (
            "privacy.max_epsilon is kept by counting local steps, and learning.gradient_exchange spends beside them; "
            "set it to false, or set privacy.max_epsilon=unset and read 'fairwave privacy' afterwards"
        )


def _of_devices(privacy: Privacy, learning: Learning) -> Iterator[str]:
    if learning.gradient_exchange:
        yield (
            "learning.gradient_exchange tells every device the mean gradient without noise, so that privacy.mode "
            "'device' would prove nothing; set it to false"
        )
    if privacy.copies != "nested":
        yield (
            "privacy.copies 'independent' lets devices average the noise away, so that privacy.mode 'device' would "
            "prove less than it says; set it to 'nested'"
        )
