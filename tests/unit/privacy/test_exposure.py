"""From ledger to audiences: what is proved adds up, what is not costs infinity."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairwave.privacy.accounting import collapsed, epsilon_of, gaussian_epsilon
from fairwave.privacy.budget import most_releases
from fairwave.privacy.exposure import exposures
from fairwave.privacy.ledger import event
from fairwave.privacy.nominal_totals import nominal
from fairwave.privacy.spending import Account, Spending, received_by

DELTA = 1e-5
DEVICES = np.arange(3)


def test_what_devices_send_adds_up_per_sender():
    """Device 1 sends with half the noise: its own records are the exposed ones, and nobody else's add to them."""
    (ap,) = exposures([event("update", "device", DEVICES, np.array([4.0, 2.0, 4.0]), 0.5)] * 5, DELTA)
    assert (ap.audience, ap.about, ap.account.messages, ap.reason) == ("access point", 1, 5, "")
    assert ap.epsilon == pytest.approx(gaussian_epsilon(collapsed([4.0] * 5), DELTA))


def test_steps_sampling_and_lost_delta_are_charged_to_the_device_that_made_them():
    each = event(
        "update",
        "device",
        DEVICES,
        1.3,
        1.0,
        steps=np.array([10, 50, 30]),
        sampling=np.array([0.02, 0.02, 0.5]),
        lost_delta=np.array([0.0, 0.0, 1e-6]),
    )
    accounts = Spending().add([each, each]).accounts()
    assert [accounts[k].steps for k in DEVICES] == [20, 100, 60]
    for device, (steps, sampling, lost) in enumerate([(20, 0.02, 0.0), (100, 0.02, 0.0), (60, 0.5, 2e-6)]):
        expected = epsilon_of({(1.3, sampling): steps}, DELTA - lost)
        assert accounts[device].epsilon(DELTA) == pytest.approx(expected, rel=1e-12)
        assert accounts[device].epsilon(DELTA, "renyi") > expected
    told = [
        event("model", "access point", DEVICES, 0.05, basis="messages"),
        event("deviation", "access point", DEVICES, basis="messages"),
    ]
    found = exposures([each, *told], DELTA)
    assert [one.audience for one in found] == [
        "access point",
        "any other device",
        "all other devices together",
        "the public",
    ]
    assert len({one.epsilon for one in found}) == 1 and found[0].about == 2
    assert [one.derived for one in found] == [False, True, True, True]


def test_a_central_release_tells_every_coalition_the_same():
    """Only rounds in which a device was heard tell about it; more noise in some copies helps nobody."""
    first = event("model", "access point", DEVICES, np.array([2.0, 2.0, 6.0]), 0.5, subjects=np.array([0, 1]))
    second = event("model", "access point", DEVICES, 2.0, 0.5, subjects=np.array([1]))
    ap, one, pair, public = exposures([event("update", "device", DEVICES), first, second], DELTA, coalition=1)
    assert math.isinf(ap.epsilon) and "updates (no noise)" in ap.reason
    assert pair.audience == "any 1 other devices together" and public.audience == "the public"
    assert one.epsilon == pair.epsilon == public.epsilon == pytest.approx(gaussian_epsilon(collapsed([4, 4]), DELTA))
    assert one.about == 1


def test_who_missed_a_copy_is_told_of_that_round_by_the_next():
    """Device 0 hears odd rounds only, device 2 contributes to even rounds only: the model carries it over."""
    both, last = np.array([1, 2]), np.array([0, 1, 2])
    events = []
    for number in range(4):
        heard, subject = (last, np.array([1])) if number % 2 else (both, np.array([2]))
        events.append(event("model", "access point", heard, 3.0, 1.0, subjects=subject))
    (told, *_) = [one for one in exposures(events, DELTA, coalition=1) if one.audience.startswith("any 1 other")]
    assert received_by(events, np.array([0]))[2].releases == {(3.0, 1.0): 2}
    assert received_by(events[:3], np.array([0]))[2].releases == {(3.0, 1.0): 1}
    assert told.epsilon == pytest.approx(gaussian_epsilon(collapsed([3.0] * 2), DELTA))


def test_only_devices_that_nobody_outdoes_are_worked_out(monkeypatch):
    """A thousand devices with different samplings and steps: the worst is that of all, found with a few evaluations."""
    draw = np.random.default_rng(0)
    steps, sampling = draw.integers(1, 400, 1_000), draw.choice([0.01, 0.02, 0.03], 1_000)
    sent = event("update", "device", np.arange(1_000), 1.1, 1.0, steps=steps, sampling=sampling)
    asked = []
    real = Account.epsilon
    monkeypatch.setattr(Account, "epsilon", lambda self, delta: asked.append(self) or real(self, delta))
    (worst,) = exposures([sent], DELTA)
    assert len(asked) <= 3
    best = max(epsilon_of({(1.1, q): int(steps[sampling == q].max())}, DELTA) for q in (0.01, 0.02, 0.03))
    assert worst.epsilon == best


def test_one_unproven_message_spoils_it_for_those_who_hear_it():
    events = [event("update", "device", DEVICES, 4.0, 0.5), event("gradient", "device", np.array([2]))]
    (ap,) = exposures(events, DELTA)
    assert ap.epsilon == math.inf and ap.about == 2
    assert ap.reason == "no sensitivity is proved for gradients (no noise)"
    assert exposures(events[:1], DELTA)[0].epsilon < math.inf
    nobody = [event(kind, "access point", np.array([], int)) for kind in ("model", "deviation")]
    assert exposures([event("update", "device", np.array([], int)), *nobody], DELTA) == []
    (lossy,) = exposures([event("update", "device", DEVICES, 4.0, 0.5, lost_delta=1e-5)], DELTA)
    assert math.isinf(lossy.epsilon) and "raise privacy.delta" in lossy.reason
    assert exposures([], DELTA) == []


def test_noise_alone_proves_nothing():
    found = exposures([event("model", "access point", DEVICES, 1e9)], DELTA)
    assert all(one.epsilon == math.inf and one.reason.endswith("models") for one in found) and len(found) == 3


@pytest.mark.parametrize(("kind", "lost"), [((8.489, 1.0), 0.0), ((1.3, 0.0213), 1e-12), ((0.9, 0.05), 1e-9)])
def test_a_budget_is_the_last_step_that_fits(kind, lost):
    most = most_releases(kind, 8.0, DELTA, lost)
    more = int(1.001 * most) + 1
    assert epsilon_of({kind: most}, DELTA - most * lost) <= 8.0 < epsilon_of({kind: more}, DELTA - more * lost)
    assert most_releases((0.01, 1.0), 1.0, DELTA, 0.0) == 0


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
