"""The report's page on privacy: what is proved, against whom, and how well a simple attack does."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from fairwave.report.privacy_account import RunAccount, SchemeAccount, cost
from fairwave.report.statistics import at_round, evaluated, labelled, milestones
from fairwave.report.style import with_interval
from fairwave.report.tables import Piece, Sheet

if TYPE_CHECKING:
    import xarray as xr

    from fairwave.privacy.exposure import Exposure

ATTACK = (
    "Membership inference by loss measures how often a training sample has a smaller loss under the "
    "access point's model than a test sample. 0.5 is guessing. This is only an indication: a weak attack "
    "that fails proves nothing."
)


def privacy_section(account: RunAccount, results: xr.Dataset) -> list[Piece]:
    """Sentences and tables."""
    sentences = "".join(f"<p>{html.escape(line)}</p>" for line in (*account.claims, *account.quoted()))
    heads = (
        "scheme",
        "audience",
        "about",
        f"epsilon at delta {account.delta:g}, infinite where nothing is proved",
        "looser bound, by Renyi divergences",
        "why",
    )
    rows = [row for scheme in account.schemes for row in _rows(_named(scheme, results), scheme, account.delta)]
    if account.together is not None:
        why = f"{account.together_note}; {account.together.reason}".rstrip("; ")
        rows.append(("all", *_row(account.together, account.delta), why))
    devices = [row for scheme in account.schemes for row in _device_rows(scheme, account.delta)]
    audiences = "The table shows what each audience has seen of a device's data, for the seed that costs most."
    return [
        f"<p>Mode '{html.escape(account.scenario.privacy.mode)}'.</p>",
        sentences,
        Sheet("exposures", "Who could learn what", audiences, heads, rows),
        *(f"<p>{html.escape(line)}.</p>" for line in account.unfinished),
        *([Sheet("exposures-by-device", "Device by device", "", _DEVICE_HEADS, devices)] if devices else []),
        *_attack(results),
    ]


def _named(scheme: SchemeAccount, results: xr.Dataset) -> str:
    known = scheme.scheme in results["scheme"].values
    return labelled(results, scheme.scheme) if known else scheme.scheme


_DEVICE_HEADS = ("scheme", "device", "steps", "record in a step", "noise multiplier", "epsilon")


def _rows(name: str, scheme: SchemeAccount, delta: float) -> list[tuple[str, ...]]:
    whys = ["no more than the access point" if one.derived else one.reason for one in scheme.exposures]
    return [(name, *_row(one, delta), why) for one, why in zip(scheme.exposures, whys, strict=True)]


def _row(one: Exposure, delta: float) -> tuple[str, ...]:
    renyi = "" if one.derived or one.reason else cost(one.account.epsilon(delta, "renyi"))
    whom = "every device" if one.about is None else f"device {one.about}"
    return one.audience, whom, cost(one.epsilon), renyi


def _device_rows(scheme: SchemeAccount, delta: float) -> list[tuple[str, ...]]:
    return [
        (scheme.scheme, str(device), str(steps), f"{sampling:.5f}", f"{multiplier:g}", cost(account.epsilon(delta)))
        for device, account in scheme.devices.items()
        for (multiplier, sampling), steps in account.releases.items()
    ]


def _attack(results: xr.Dataset) -> list[Piece]:
    """Nothing where nobody has the training data to try it with, as in a federation."""
    rounds, auc = milestones(results), evaluated(results, "membership_auc")
    if not bool(auc.notnull().any()):
        return []
    rows = [
        (labelled(results, name), *(with_interval(at_round(auc, name, number), 4) for number in rounds))
        for name in map(str, results["scheme"].values)
    ]
    heads = ("scheme", *(f"AUC, round {number}" for number in rounds))
    return [Sheet("membership", "Membership inference", ATTACK, heads, rows)]
