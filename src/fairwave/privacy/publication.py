"""What all runs of a folder tell together: every scheme with every seed, published at once.

Schemes of one seed train on the same split of the data, so that they add up device by device. Seeds may split the data
anew: a record lies on one device in each of them, and nobody keeps track of which. So an account is taken from each
seed that no device's account exceeds, and these are added up: an upper bound.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from fairwave.privacy.accounting import Kind, collapsed
from fairwave.privacy.exposure import Exposure, worst_account
from fairwave.privacy.ledger import Ledgers, ReleaseEvent
from fairwave.privacy.spending import Account, Spending, received_by

TOGETHER = "everything in this folder, published together"


def published_together(ledgers: Ledgers, delta: float, *, trusted: bool) -> Exposure | None:
    """The cost of all ledgers together about data that lie on one device in every seed; None if nothing was told.

    Everything counts but what a trusted access point keeps to itself. Noise is taken to be drawn anew for every ledger.
    """
    by_seed: dict[int, dict[int, Account]] = {}
    for (_, seed), ledger in ledgers.items():
        held = by_seed.setdefault(seed, {})
        for device, account in _published((event for _, event in ledger), trusted=trusted).items():
            held[device] = held[device].plus(account) if device in held else account
    told = [accounts for accounts in by_seed.values() if accounts]
    if len(told) <= 1:
        return worst_account(TOGETHER, told[0], delta) if told else None
    total = functools.reduce(Account.plus, map(dominating, told))
    return worst_account(TOGETHER, {0: total}, delta)


def _published(events: Iterable[ReleaseEvent], *, trusted: bool) -> dict[int, Account]:
    """What is told about each device: by what devices hear if the access point is trusted, else by what they send."""
    listed = list(events)
    if not trusted:
        return Spending().add(event for event in listed if event.sender == "device").accounts()
    received = [event for event in listed if event.sender == "access point"]
    return received_by(received, np.concatenate([event.devices for event in received])) if received else {}


def dominating(accounts: Mapping[int, Account]) -> Account:
    """An account that costs no less than each of these, also together with whatever else is released.

    Gaussian releases on all records are one with the sum of their 1/z^2, of which the largest is taken. On samples,
    more releases and larger samples at the same noise cost no less: for every noise multiplier the most of both is
    taken.
    """
    messages = max(account.messages for account in accounts.values())
    lost = max(account.lost_delta for account in accounts.values())
    unproven = tuple(dict.fromkeys(name for account in accounts.values() for name in account.unproven))
    least = min(collapsed(_on_all_records(account)) for account in accounts.values())
    releases: dict[Kind, int] = {} if math.isinf(least) else {(least, 1.0): 1}
    counts: dict[float, int] = {}
    shares: dict[float, float] = {}
    for account in accounts.values():
        own: dict[float, int] = {}
        for (multiplier, sampling), count in account.releases.items():
            if sampling < 1.0:
                own[multiplier] = own.get(multiplier, 0) + count
                shares[multiplier] = max(shares.get(multiplier, 0.0), sampling)
        counts |= {multiplier: max(counts.get(multiplier, 0), count) for multiplier, count in own.items()}
    releases |= {(multiplier, shares[multiplier]): count for multiplier, count in counts.items()}
    return Account(messages, releases, lost, unproven)


def _on_all_records(account: Account) -> Iterator[float]:
    """The noise multiplier of every release that has all records in it."""
    for (multiplier, sampling), count in account.releases.items():
        if sampling >= 1.0:
            yield from itertools.repeat(multiplier, count)
