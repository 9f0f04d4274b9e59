"""From ledger to audiences: what is proved adds up, what is not costs infinity."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from fairwave.privacy.accounting import collapsed, epsilon_of, gaussian_epsilon
from fairwave.privacy.budget import most_releases
from fairwave.privacy.exposure import exposures
from fairwave.privacy.ledger import ReleaseEvent, event
from fairwave.privacy.nominal_totals import realised_nominal
from fairwave.privacy.spending import Account, Spending, received_by
from fairwave.report.privacy_account import pools_to_least_noisy
from fairwave.scenario.loading import load_scenario

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


def test_who_heard_last_is_best_placed_however_little_noise_others_had():
    """Devices 0 and 1 have the clearest copies of round 0 and hear no other; device 2 hears five noisy rounds."""
    early, late = np.array([0, 1, 2]), np.array([2])
    events = [event("model", "access point", early, np.array([1.0, 1.0, 9.0]), 0.5, subjects=np.array([3]))]
    events += [event("model", "access point", late, 9.0, 0.5, subjects=np.array([3]))] * 4
    expected = gaussian_epsilon(collapsed([2.0] + [18.0] * 4), DELTA)
    for one in exposures(events, DELTA, coalition=1):
        assert one.epsilon == pytest.approx(expected), one.audience


def test_a_round_that_nobody_heard_and_that_proves_nothing_spoils_the_next():
    unheard = event("model", "access point", np.array([], int), 1.0, None, subjects=np.array([1]))
    heard = event("model", "access point", DEVICES, 4.0, 1.0, subjects=np.array([1]))
    assert all(math.isinf(one.epsilon) for one in exposures([unheard, heard], DELTA))
    lost = event("model", "access point", np.array([], int), 4.0, 1.0, subjects=np.array([1]))
    assert all(math.isinf(one.epsilon) for one in exposures([lost, heard], DELTA))  # its noise is not on the ledger
    assert exposures([heard, lost], DELTA)[0].epsilon == pytest.approx(gaussian_epsilon(4.0, DELTA))


PAPER = 5.099795013268831


def copies(levels: np.ndarray) -> list[tuple[int, ReleaseEvent]]:
    """A ledger with a copy for every device and round, at a sensitivity of 0.01."""
    devices = np.arange(levels.shape[1])
    return [(at, event("model", "access point", devices, 0.01 * stds)) for at, stds in enumerate(levels)]


def test_nominal_totals_of_the_paper():
    """200 rounds: 15.07 alone, 75.0 if ten independent copies are pooled, 15.07 nested."""
    ledger = copies(np.full((200, 10), PAPER))
    nested, apart = (realised_nominal(ledger, 0.01, DELTA, least_noisy=least) for least in (True, False))
    assert nested is not None and apart is not None
    assert nested.single == apart.single == pytest.approx(15.0692696, rel=1e-7)
    assert nested.together == pytest.approx(15.0692696, rel=1e-7) and apart.together == pytest.approx(75.0, abs=0.05)
    assert realised_nominal(copies(np.zeros((3, 2))), 0.01, DELTA, least_noisy=True) is None
    assert realised_nominal([], 0.01, DELTA, least_noisy=True) is None


def test_copies_of_an_overwritten_model_are_one_where_no_noise_is_added():
    """The benchmark sends the noisy model itself to everybody, so that pooling tells nobody more."""
    printed, paper = (load_scenario(name).privacy for name in ("paper-literal", "paper"))
    overwritten = printed.model_copy(update={"broadcast": False})
    assert pools_to_least_noisy(overwritten, "max_power") and not pools_to_least_noisy(overwritten, "proposed")
    assert not pools_to_least_noisy(paper, "max_power")


def test_members_who_take_turns_know_more_than_each_of_them():
    """Two devices whose nested copies are the less noisy one in every other round: 10.69 each, 15.07 together."""
    levels = np.where((np.arange(200)[:, None] + np.arange(2)) % 2 == 0, PAPER, PAPER / 0.4)
    total = realised_nominal(copies(levels), 0.01, DELTA, least_noisy=True)
    assert total is not None
    assert (round(total.single, 2), round(total.together, 2)) == (10.69, 15.07)


def test_every_coalition_is_bounded_by_all_devices_together():
    """Random levels: for each of the 15 coalitions of four, the least noisy member of each round, added up."""
    levels = np.random.default_rng(0).uniform(4.0, 40.0, (30, 4))
    total = realised_nominal(copies(levels), 0.01, DELTA, least_noisy=True)
    assert total is not None
    for size in range(1, 5):
        for members in itertools.combinations(range(4), size):
            known = gaussian_epsilon(collapsed(levels[:, list(members)].min(axis=1)), DELTA)
            assert known <= total.together * (1 + 1e-12)
            assert size > 1 or known <= total.single * (1 + 1e-12)


def test_what_is_on_the_ledger_cannot_be_changed():
    (_, event) = copies(np.ones((1, 3)))[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.noise_std = np.full(3, 1e9)  # type: ignore[misc]
