"""Everything in a folder, published together: exact for one seed, an upper bound for several."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fairwave.privacy.accounting import collapsed, epsilon_of, gaussian_epsilon
from fairwave.privacy.ledger import Ledger, event
from fairwave.privacy.publication import published_together
from fairwave.privacy.spending import Spending

DELTA = 1e-5
DEVICES = np.arange(3)


def trained(draw: np.random.Generator, *, exchange: bool = False) -> Ledger:
    """A round in which devices with unequal records make unequal numbers of steps."""
    sampling, steps = draw.choice([0.02, 0.05, 1.0], 3), draw.integers(1, 30, 3)
    sent = [event("update", "device", DEVICES, 1.5, 1.0, steps=steps, sampling=sampling, lost_delta=1e-9 * steps)]
    sent += [event("gradient", "device", DEVICES[:2], 6.0, 1.0)] if exchange else []
    return [(0, each) for each in sent]


def test_schemes_of_a_seed_add_up_device_by_device():
    """The device that spends most under one scheme is not the one that spends most under the other."""
    one = event("update", "device", DEVICES, np.array([2.0, 4.0, 8.0]), 1.0)
    two = event("update", "device", DEVICES, np.array([8.0, 2.1, 8.0]), 1.0)
    total = published_together({("a", 0): [(0, one)], ("b", 0): [(0, two)]}, DELTA, trusted=False)
    assert total is not None and total.about == 1
    assert total.epsilon == pytest.approx(gaussian_epsilon(collapsed([4.0, 2.1]), DELTA))


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize("draw", range(3))
def test_no_way_of_splitting_the_data_costs_more_than_the_bound(draw, exchange):
    """A record may be on any device in each seed: all nine choices for two seeds, against one bound."""
    ledgers = {("a", seed): trained(np.random.default_rng([draw, seed]), exchange=exchange) for seed in (0, 1)}
    total = published_together(ledgers, DELTA, trusted=False)
    accounts = [Spending().add(event for _, event in ledger).accounts() for ledger in ledgers.values()]
    costs = []
    for first, second in itertools.product(DEVICES, repeat=2):
        held = accounts[0][first].plus(accounts[1][second])
        costs.append(epsilon_of(held.releases, DELTA - held.lost_delta))
    assert total is not None and max(costs) <= total.epsilon * (1 + 1e-9) < math.inf


def test_where_all_records_are_in_every_release_the_bound_is_met():
    """Device 1 spends most with both seeds, by different numbers of rounds and different noise."""
    ledgers = {
        ("a", seed): [(at, event("model", "access point", DEVICES, z, 1.0, subjects=subjects)) for at in range(rounds)]
        for seed, z, rounds, subjects in ((0, 4.0, 3, np.array([1])), (1, 3.0, 2, np.array([1, 2])))
    }
    total = published_together(ledgers, DELTA, trusted=True)
    assert total is not None
    assert total.epsilon == pytest.approx(gaussian_epsilon(collapsed([4.0] * 3 + [3.0] * 2), DELTA))


def test_one_message_without_a_proof_spoils_everything():
    good, bad = event("update", "device", DEVICES, 4.0, 1.0), event("update", "device", DEVICES[:1], 4.0)
    total = published_together({("a", 0): [(0, good)], ("a", 1): [(0, bad)]}, DELTA, trusted=False)
    assert total is not None and math.isinf(total.epsilon) and "updates" in total.reason


def test_a_trusted_access_point_keeps_to_itself_what_it_hears():
    heard = event("update", "device", DEVICES)
    assert published_together({("a", 0): [(0, heard)]}, DELTA, trusted=True) is None
    assert published_together({}, DELTA, trusted=True) is None
    told = event("model", "access point", DEVICES, 4.0, 1.0)
    total = published_together({("a", 0): [(0, heard), (0, told)]}, DELTA, trusted=True)
    assert total is not None and total.epsilon == pytest.approx(gaussian_epsilon(4.0, DELTA))
