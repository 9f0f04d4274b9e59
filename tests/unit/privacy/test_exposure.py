"""From ledger to audiences: what is proved adds up, what is not costs infinity."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairwave.privacy.accounting import collapsed, gaussian_epsilon
from fairwave.privacy.exposure import exposures
from fairwave.privacy.ledger import ReleaseEvent
from fairwave.privacy.nominal import nominal

DELTA = 1e-5
DEVICES = np.arange(3)


def event(content, sender, std, proven, devices=DEVICES) -> ReleaseEvent:
    audience = "access point" if sender == "device" else "device"
    return ReleaseEvent(
        content, sender, audience, devices, np.broadcast_to(np.asarray(std, float), devices.shape), proven
    )


def test_proven_releases_add_up_per_sender_and_over_a_coalition():
    """Device 1 sends with half the noise: its own records are the exposed ones, and nobody else's add to them."""
    events = [event("update", "device", [4.0, 2.0, 4.0], 0.5)] * 5 + [event("model", "access point", 3.0, 1.0)] * 5
    ap, one, all_three = exposures(events, DELTA)
    assert ap.audience == "access point, about device 1" and ap.messages == 5
    assert ap.epsilon == pytest.approx(gaussian_epsilon(collapsed([4.0] * 5), DELTA))
    assert one.epsilon == pytest.approx(gaussian_epsilon(collapsed([3.0] * 5), DELTA)) and one.messages == 5
    assert all_three.epsilon == pytest.approx(gaussian_epsilon(collapsed([3.0] * 15), DELTA))
    assert not (ap.reason or one.reason or all_three.reason)


def test_one_unproven_message_spoils_it_for_those_who_hear_it():
    events = [event("update", "device", 4.0, 0.5), event("gradient", "device", 0.0, None, np.array([2]))]
    (ap,) = exposures(events, DELTA)
    assert ap.epsilon == math.inf and ap.audience.endswith("device 2")
    assert ap.reason == "no sensitivity is proved for gradients (no noise)"
    assert exposures(events[:1], DELTA)[0].epsilon < math.inf
    assert exposures([], DELTA) == []


def test_noise_alone_proves_nothing():
    (one, everyone) = exposures([event("model", "access point", 1e9, None)], DELTA)
    assert one.epsilon == everyone.epsilon == math.inf and one.reason.endswith("models")


def test_nominal_totals_of_the_paper():
    """200 rounds: 15.07 alone, 75.0 if ten independent copies are pooled, 15.07 nested; 190 and 365.75 as quoted."""
    z = 5.099795013268831
    told = {
        nested: nominal(z, epsilon=0.95, delta=DELTA, rounds=200, num_devices=10, nested=nested)
        for nested in (True, False)
    }
    assert told[False].exact == told[True].exact == told[True].coalition == pytest.approx(15.0692696, rel=1e-7)
    assert told[False].coalition == pytest.approx(75.0, abs=0.05)
    assert told[True].basic[0] == pytest.approx(190.0) and told[True].strong[0] == pytest.approx(365.753169, rel=1e-8)
