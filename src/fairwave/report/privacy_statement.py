"""A run's privacy statement: all that others need to recompute every epsilon, as one document.

Totals stand beside the events that they follow from, so that nobody has to believe them: examples/verify_statement.py
derives each of them from the events alone.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import importlib.metadata
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fairwave.privacy.accounting import GRID, HOPELESS, MANY, epsilon_of
from fairwave.privacy.exposure import ACCESS_POINT, exposures
from fairwave.privacy.ledger import Ledger, Ledgers, rounds_of, with_unfinished
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.publication import published_together
from fairwave.privacy.spending import Spending
from fairwave.report.allowances import allowances
from fairwave.report.privacy_account import (
    ONE_SEED,
    SEVERAL_SEEDS,
    nominal_of,
    pools_to_least_noisy,
)
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.signing import canonical

VERSION = 1

Document = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class StatedRun:
    """What a statement is made from."""

    scenario: Scenario
    ledgers: Ledgers
    unfinished: Ledgers
    """What devices were asked for in rounds that were not concluded."""
    counts: Mapping[int, np.ndarray]
    """How many samples each device holds, by seed."""
    digests: Document
    """Digests by which the run's own file can be recognised."""
    caveats: tuple[str, ...] = ()
    """What else has to be known about this run, sentence by sentence."""


def statement(run: StatedRun, coalition: int | None = None) -> Document:
    """The statement about all that a run has stored, and what devices were asked for beyond it."""
    scenario, privacy, whole = run.scenario, run.scenario.privacy, with_unfinished(run.ledgers, run.unfinished)
    mode = mode_of(privacy)
    together = published_together(whole, privacy.delta, trusted=mode.trusts_access_point)
    allowed = allowances(scenario, run.counts)
    totals = [row for track in whole for row in _totals(privacy, track, whole[track], coalition)]
    totals.append(_total("all", "all", "everything together", 0.0 if together is None else together.epsilon))
    totals += [] if allowed is None else _filter_totals(allowed)
    return {
        "statement": "fairwave privacy",
        "version": VERSION,
        "fairwave": importlib.metadata.version("fairwave"),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "mode": mode.name,
        "proves": mode.proves,
        "unit": mode.unit,
        "adversary": {"access_point": mode.access_point, "in_words": mode.adversary},
        "adjacency": {"name": mode.adjacency.name, "in_words": mode.adjacency.value},
        "claims": [*mode.claims(scenario), *run.caveats],
        "noise_source": privacy.noise_source,
        "delta": privacy.delta,
        "accountant": _accountant(),
        "nominal_sensitivity": None if mode.proves else privacy.sensitivity,
        "tracks": [
            _track(privacy, track, run.ledgers.get(track, ()), run.unfinished.get(track, ()), coalition)
            for track in whole
        ],
        "everything_together": ONE_SEED if len({seed for _, seed in whole}) == 1 else SEVERAL_SEEDS,
        "filter": allowed,
        "totals": totals,
        "not_private": mode.not_private(),
        "digests": run.digests,
    }


def _accountant() -> Document:
    return {
        "library": "dp-accounting",
        "version": importlib.metadata.version("dp-accounting"),
        "unsampled": "exact Gaussian composition",
        "sampled": "privacy loss distributions",
        "value_discretization_interval": GRID,
        "renyi_above_epsilon": HOPELESS,
        "renyi_above_releases": MANY,
    }


def _track(privacy: Privacy, track: tuple[str, int], stored: Ledger, asked: Ledger, coalition: int | None) -> Document:
    """One scheme with one seed: its events, and what is to be known about them."""
    events = [event for _, event in (*stored, *asked)]
    told = exposures(events, privacy.delta, coalition)
    return {
        "scheme": track[0],
        "seed": track[1],
        "rounds": rounds_of(stored),
        "events": _events(stored),
        "ledger_sha256": hashlib.sha256(canonical({"events": _events(stored)})).hexdigest(),
        "unfinished": _events(asked),
        "listeners": [one.audience for one in told if one.audience != ACCESS_POINT],
        "pooled": "least noisy" if pools_to_least_noisy(privacy, track[0]) else "all",
        "most_exposed": {one.audience: one.about for one in told},
        "why_infinite": {one.audience: one.reason for one in told if one.reason},
    }


def _totals(privacy: Privacy, track: tuple[str, int], ledger: Ledger, coalition: int | None) -> Iterator[Document]:
    """Every epsilon of one scheme with one seed."""
    events = [event for _, event in ledger]
    accounts = Spending().add(event for event in events if event.sender == "device").accounts()
    for device, account in accounts.items():
        yield _total(*track, f"device {device}", account.epsilon(privacy.delta), account.lost_delta)
    for one in exposures(events, privacy.delta, coalition):
        yield _total(*track, one.audience, one.epsilon, one.account.lost_delta)
    nominal = nominal_of(privacy, track[0], ledger)
    if nominal is not None:
        yield _total(*track, "nominal: most exposed device", nominal.single)
        yield _total(*track, "nominal: all devices", nominal.together)


def _filter_totals(allowed: Document) -> Iterator[Document]:
    """What each device would have spent, had it made all releases that the filter allows."""
    for row in allowed["allowed"]:
        kind, most = (row["noise_multiplier"], row["sampling"]), row["most_releases"]
        lost = most * row["lost_delta"]
        spent = epsilon_of({kind: most}, allowed["delta"] - lost) if most else 0.0
        yield _total("all", row["seed"], f"filter of devices {row['devices']}", spent, lost)


def _total(scheme: str, seed: int | str, about: str, epsilon: float, lost_delta: float = 0.0) -> Document:
    """An epsilon at the statement's delta, of which what is lost to overflow and rounding is taken first."""
    stated = "infinite" if math.isinf(epsilon) else epsilon
    return {"scheme": scheme, "seed": seed, "about": about, "epsilon": stated, "lost_delta": lost_delta}


def _events(ledger: Ledger) -> list[Document]:
    return [{"round": at, **_plain(dataclasses.asdict(event))} for at, event in ledger]


def _plain(event: Mapping[str, Any]) -> Document:
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in event.items()}
