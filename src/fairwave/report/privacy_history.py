"""Epsilon over the rounds of a run: of the device that spends most, as its ledger grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairwave.privacy.exposure import exposures
from fairwave.privacy.ledger import Ledger, Ledgers, rounds_of
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.nominal_totals import SENTENCE
from fairwave.report.figure_data import Panel, Series
from fairwave.report.privacy_account import nominal_of
from fairwave.scenario.privacy_parameters import Privacy

MOST_POINTS = 16
"""Rounds at which a total is worked out: each takes a tenth of a second where records are sampled."""


def epsilon_panels(privacy: Privacy, ledgers: Ledgers) -> list[Panel]:
    """One figure with a line per scheme, for the first seed; none if there is nothing to show."""
    series, mode = [], mode_of(privacy)
    first = next((seed for _, seed in ledgers), None)
    for (scheme, seed), ledger in ledgers.items():
        noisy = any(event.content == "model" and event.noise_std.any() for _, event in ledger)
        if seed != first or not noisy:
            continue
        shown = np.unique(np.linspace(1, rounds_of(ledger), MOST_POINTS).round().astype(int))
        totals = (_proved if mode.proves else _nominal)(privacy, scheme, [_until(ledger, number) for number in shown])
        series.append(Series(scheme, shown, np.array(totals)))
    if not series:
        return []
    if not mode.proves:
        nominal = Panel(
            "nominal-epsilon",
            "Nominal epsilon, not a guarantee",
            "communication round",
            "nominal epsilon (no guarantee)",
            f"{SENTENCE} Nominal total of the copies of the device that is most exposed, from the noise that they had.",
            series,
        )
        return [nominal]
    caption = (
        f"What the ledger proves about {mode.unit} of the device that has spent most, at delta {privacy.delta:g}; see "
        "Privacy below for what that means."
    )
    return [Panel("epsilon", "Epsilon", "communication round", "epsilon", caption, series)]


def _until(ledger: Ledger, rounds: int) -> Ledger:
    return [(at, event) for at, event in ledger if at < rounds]


def _nominal(privacy: Privacy, scheme: str, ledgers: Sequence[Ledger]) -> list[float]:
    """The most exposed device's own copies."""
    totals = [nominal_of(privacy, scheme, ledger) for ledger in ledgers]
    return [float("nan") if total is None else total.single for total in totals]


def _proved(privacy: Privacy, scheme: str, ledgers: Sequence[Ledger]) -> list[float]:
    """Against the access point, or against all devices where the access point is trusted."""
    totals = []
    for ledger in ledgers:
        found = exposures([event for _, event in ledger], privacy.delta)
        proved = [one.epsilon for one in found if not one.reason]
        totals.append(max(proved, default=float("nan")))
    return totals
