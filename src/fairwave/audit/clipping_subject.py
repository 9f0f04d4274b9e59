"""Clipping: sums of all of a device's records, compared with clipped gradients that were worked out independently."""

from __future__ import annotations

import numpy as np

from fairwave.audit.audit_setting import LITTLE_NOISE, ONE_BATCH, AuditSetting
from fairwave.audit.audited_cell import HOLDINGS
from fairwave.audit.contribution_tests import agreement, leftovers
from fairwave.audit.device_bench import Records
from fairwave.audit.finding import Verdict
from fairwave.audit.known_records import clipped_gradients, ordinary_copy, surprising
from fairwave.learning.named_arrays import NamedArrays

GAIN = 30.0
"""Factor by which a leaf of a copy is enlarged, so that another part of the gradient dominates."""
ROUNDING, UNSTABLE = 1e-6, 0.5
"""Relative error of single precision in a sum of products, and the change of a sum, in stds, that is too much."""
Probe = tuple[NamedArrays, Records]


def clipping(setting: AuditSetting) -> Verdict:
    """A verdict on the sums of a device that takes all of its records in every step."""
    law, released, expected = setting.law(LITTLE_NOISE), dict[str, np.ndarray](), dict[str, np.ndarray]()
    for number, (name, (copy, records)) in enumerate(_probes(setting).items()):
        total = _expected(setting, copy, records)
        if not _is_stable(setting, copy, records, total, law.std):
            continue
        device = setting.device(f"clipping-{number}", ONE_BATCH, _padded(records, setting), LITTLE_NOISE)
        released[name] = device.release(number, copy).values
        expected[name] = total
    findings = [agreement(released, expected, law, setting.leaves), leftovers(released, expected, law)]
    return Verdict(f"clipping of {setting.batch} records", findings)


def _expected(setting: AuditSetting, copy: NamedArrays, records: Records) -> np.ndarray:
    """The sum of the records' clipped gradients, in multiples of the clip length."""
    equal = (records.inputs == records.inputs[0]).all() and (records.labels == records.labels[0]).all()
    times = len(records.labels) if equal else 1
    summed = Records(records.inputs[:1], records.labels[:1]) if equal else records
    chunks = clipped_gradients(setting.model, copy, summed, setting.clip_norm)
    return np.asarray(times * sum(rows.sum(axis=0) for rows in chunks))


def _is_stable(setting: AuditSetting, copy: NamedArrays, records: Records, total: np.ndarray, std: float) -> bool:
    """Whether rounding on the device cannot change the sum by more than a fraction of the noise.

    Where a unit is at the edge of its ReLU, or two classes tie, single precision may decide otherwise than double.
    """
    draw = np.random.default_rng(setting.seed)
    moved = {name: leaf * (1.0 + ROUNDING * draw.standard_normal(leaf.shape)) for name, leaf in copy.items()}
    other = _expected(setting, moved, records)
    return bool(np.linalg.norm(other - total) < UNSTABLE * std)


def _probes(setting: AuditSetting) -> dict[str, Probe]:
    """Copies and records that put different parts of a gradient to the test."""
    learning, count = setting.scenario.learning, setting.batch
    draw, copy = np.random.default_rng(setting.seed), ordinary_copy(setting.model, setting.seed)
    pixels, classes = learning.layer_sizes[0], learning.layer_sizes[-1]
    labels = draw.integers(0, classes, count).astype(np.int32)
    faint = draw.random((count, pixels)).astype(np.float32)
    loud = faint * np.float32(100.0 * max(1.0, setting.clip_norm))
    broken = loud.copy()
    broken[::3], broken[1::3, 0] = np.nan, np.inf
    same, nothing = np.repeat(loud[:1], count, axis=0), np.zeros_like(faint)
    mixed = np.where(np.arange(count)[:, None] % 2, loud, np.float32(0.01) * faint)
    probes: dict[str, Probe] = {
        "loud and faint records": (copy, Records(mixed, labels)),
        "equal records": (copy, surprising(setting.model, copy, same)),
        "dark records": (copy, surprising(setting.model, copy, nothing)),
        "records that are not finite": (copy, Records(broken, labels)),
    }
    for name in copy:
        louder = {**copy, name: copy[name] * np.float32(GAIN)}
        fainter = surprising(setting.model, louder, np.float32(0.1) * same)
        probes[f"equal records, large {name}"] = (louder, fainter)
        probes[f"dark records, large {name}"] = (louder, surprising(setting.model, louder, nothing))
    return probes


def _padded(records: Records, setting: AuditSetting) -> Records:
    """The same records with others behind them that the device does not hold, in an array of the usual size."""
    spare = HOLDINGS * setting.batch - len(records.labels)
    held = np.concatenate([records.inputs, np.repeat(records.inputs[:1], spare, axis=0)])
    return Records(held, np.concatenate([records.labels, np.zeros(spare, np.int32)]))
