"""Batches: records that show one by one, so that every step tells who was in its batch."""

from __future__ import annotations

import numpy as np

from fairwave.audit.audit_setting import HALF_HOLDING, LITTLE_NOISE, AuditSetting
from fairwave.audit.batch_tests import batch_findings
from fairwave.audit.contribution_tests import inclusion
from fairwave.audit.finding import Verdict

STEPS = {HALF_HOLDING: 40, 0: 80}
"""Steps that are looked at for devices with half and with all of the largest holding: a record that is never taken, or
always, must be rarer by chance than a false alarm."""


def batches(setting: AuditSetting) -> list[Verdict]:
    """Verdicts on the batches of two devices that hold different numbers of records."""
    return [_batches_of(setting, index, steps) for index, steps in STEPS.items()]


def _batches_of(setting: AuditSetting, index: int, steps: int) -> Verdict:
    known, law = setting.known(), setting.law(LITTLE_NOISE)
    count = int(setting.counts[index])
    device = setting.device("batches", index, known.records, LITTLE_NOISE)
    sums = np.stack([device.release(number, known.copy).values for number in range(steps)])
    shown = known.decoded(sums, count)
    taken = shown > 0.5
    probability = setting.batch / count
    findings = [
        inclusion(shown, taken, law.variance * known.covariance(count)),
        *batch_findings(taken, probability, setting.seed),
    ]
    return Verdict(f"batches of a device with {count} records", findings)
