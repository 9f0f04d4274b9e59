"""Noise alone: devices whose records have no gradient, in single steps and in whole rounds."""

from __future__ import annotations

import numpy as np

from fairwave.audit.audit_setting import OWN_NOISE, WHOLE_ROUNDS, AuditSetting
from fairwave.audit.audited_cell import HOLDINGS, Change
from fairwave.audit.dependence_tests import lags, leaf_pairs, release_pairs
from fairwave.audit.device_bench import REPEATABLE, SECRET, Release
from fairwave.audit.finding import Verdict
from fairwave.audit.known_records import blank_records, silent_copy
from fairwave.audit.noise_law import NoiseLaw
from fairwave.audit.noise_tests import leaf_scales, leaf_shapes, release_scales, value_scales

ROUNDS = (0, 1, 2, 3, 4, 5, 8, 16, 64)
"""Rounds that are looked at: any period up to eight repeats among them, and the powers of two."""
WITH_SECRETS = (0, 1)
"""The same for devices whose noise follows from secrets of their own."""
SEEDED, SECRETIVE, LONG = (3, 4, 5), (6, 7), 0
"""Numbers of the devices: with the audit's seed, with secrets, and with whole rounds."""
LONG_ROUNDS = (0, 1, 2)
"""Whole rounds that are looked at."""


def noise_in_steps(setting: AuditSetting) -> list[Verdict]:
    """Verdicts on the noise of single steps, and on that of exchanged gradients where there are any."""
    releases, labels = _single_steps(setting)
    values = np.stack([release.values for release in releases])
    verdicts = [noise_verdict("noise of single steps", values, setting.law(OWN_NOISE), setting, labels)]
    gradients = [release.gradient for release in releases if release.gradient is not None]
    if gradients:
        privacy = setting.scenario.privacy
        law = NoiseLaw.claimed(privacy.noise_source, privacy.exchange_noise_multiplier or 0.0, setting.clip_norm)
        verdicts.append(noise_verdict("noise of exchanged gradients", np.stack(gradients), law, setting, labels))
    return verdicts


def noise_verdict(name: str, values: np.ndarray, law: NoiseLaw, setting: AuditSetting, labels: list[str]) -> Verdict:
    """Every test of releases that should be noise alone."""
    return Verdict(
        name,
        [
            leaf_scales(values, law, setting.leaves),
            release_scales(values, law),
            value_scales(values, law),
            leaf_shapes(values, law, setting.leaves),
            leaf_pairs(values, law, setting.leaves),
            lags(values, law),
            release_pairs(values, law, labels),
        ],
    )


def _single_steps(setting: AuditSetting) -> tuple[list[Release], list[str]]:
    """Releases of several devices in several rounds, and what to call each."""
    copy = silent_copy(setting.model, setting.scenario.learning)
    dark = blank_records(setting.scenario.learning, HOLDINGS * setting.batch)
    releases, labels = [], []
    for index in (*SEEDED, *SECRETIVE):
        settings, rounds = (REPEATABLE, ROUNDS) if index in SEEDED else (SECRET, WITH_SECRETS)
        device = setting.device("steps", index, dark, OWN_NOISE, settings=settings)
        releases += [device.release(number, copy) for number in rounds]
        labels += [f"device {index} in round {number + 1}" for number in rounds]
    return releases, labels


def noise_in_rounds(setting: AuditSetting) -> list[Verdict]:
    """Verdicts on rounds of a few steps and of many."""
    return [_noise_in_rounds(setting, f"rounds-{number}", change) for number, change in enumerate(WHOLE_ROUNDS)]


def _noise_in_rounds(setting: AuditSetting, part: str, change: Change) -> Verdict:
    """Whether the noise of a whole round is that of as many independent steps as the device charges itself."""
    copy = silent_copy(setting.model, setting.scenario.learning)
    dark = blank_records(setting.scenario.learning, HOLDINGS * setting.batch)
    device = setting.device(part, LONG, dark, change)
    releases = [device.release(number, copy) for number in LONG_ROUNDS]
    values = np.stack([release.values for release in releases])
    steps = np.diff([0, *(release.answer.spent for release in releases)])
    law, each = setting.law(change), np.sqrt(np.maximum(steps, 1))[:, None]
    found = [
        leaf_scales(values, law, setting.leaves, np.maximum(steps, 1)),
        lags(values / each, law),
        release_pairs(values / each, law, [f"round {number + 1}" for number in LONG_ROUNDS]),
    ]
    return Verdict(f"noise of rounds of {', '.join(str(n) for n in steps)} steps", found)
