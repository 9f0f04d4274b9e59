"""Canaries on devices: known records, of which a random half is there, and how well that shows in the updates."""

from __future__ import annotations

import numpy as np

from fairwave.audit.audit_setting import DEVICES, AuditSetting
from fairwave.audit.audited_cell import Change
from fairwave.audit.canary_tests import one_run, separation
from fairwave.audit.claim import Claim, coin_flips
from fairwave.audit.device_bench import Records
from fairwave.audit.finding import Verdict

EPSILON, ROUNDS = 1.0, 4
"""What the audited releases claim in all, and their number: noise is set to match, so that the claim can be refuted."""
HOLDERS = (3, 4)
"""Devices with canaries."""


def canaries(setting: AuditSetting) -> Verdict:
    """A verdict on two devices with canaries of their own, all of which enter every batch."""
    claim = Claim.of_total(EPSILON, ROUNDS)
    # So few that those that are in fit into one batch, but for one time in 100,000, when flips are drawn again.
    each = 3 * setting.batch // 2
    scores, present = [], []
    for turn, index in enumerate(HOLDERS):
        flips = _flips(setting, each, turn)
        scores.append(_scores(setting, claim, index, np.arange(turn * each, (turn + 1) * each), flips))
        present.append(flips)
    every, who = np.concatenate(scores), np.concatenate(present)
    return Verdict("canaries on devices", [separation(every, who, claim), one_run(every, who, claim)])


def _flips(setting: AuditSetting, count: int, turn: int) -> np.ndarray:
    for attempt in range(100):
        flips = coin_flips(count, 1_000 * setting.seed + 100 * turn + attempt)
        if 1 <= flips.sum() <= setting.batch:
            return flips
    return np.arange(count) < setting.batch


def _scores(setting: AuditSetting, claim: Claim, index: int, mine: np.ndarray, flips: np.ndarray) -> np.ndarray:
    """How strongly each of a device's canaries shows in all of its rounds together."""
    known = setting.known()
    # Those that are in stand first; the others lie behind, where the device holds nothing.
    order = np.concatenate([mine[flips], mine[~flips], np.setdiff1d(np.arange(known.gram.shape[0]), mine)])
    counts = np.full(DEVICES, setting.batch, np.int32)
    counts[index] = int(flips.sum())
    records = Records(known.records.inputs[order], known.records.labels[order])
    device = setting.device("canaries", index, records, Change(noise_multiplier=claim.multiplier), counts=counts)
    total = np.sum([device.release(number, known.copy).values for number in range(claim.rounds)], axis=0)
    rows = known.rows[mine].astype(np.float64)
    return np.asarray(np.linalg.solve(known.gram[np.ix_(mine, mine)], rows @ total))
