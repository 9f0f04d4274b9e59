"""What is on the ledger about each device, added up."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from fairwave.extensions import ACCOUNTANTS
from fairwave.privacy.accounting import Kind
from fairwave.privacy.ledger import ReleaseEvent


@dataclasses.dataclass(frozen=True)
class Account:
    """What messages tell about one device, added up."""

    messages: int
    releases: dict[Kind, int]
    lost_delta: float
    unproven: tuple[str, ...]
    """Kinds of message for which no sensitivity is proved."""

    def epsilon(self, delta: float, accountant: str = "tight") -> float:
        """Epsilon at a total delta, of which what is lost to overflow and rounding is taken first."""
        if self.unproven:
            return float("inf")
        return float(ACCOUNTANTS[accountant]().compose(self.releases).epsilon(delta - self.lost_delta))

    @property
    def steps(self) -> int:
        """Releases in all."""
        return sum(self.releases.values())

    def plus(self, other: Account) -> Account:
        """What both tell together, if they tell about the same device."""
        releases = dict(self.releases)
        for kind, count in other.releases.items():
            releases[kind] = releases.get(kind, 0) + count
        unproven = tuple(dict.fromkeys((*self.unproven, *other.unproven)))
        return Account(self.messages + other.messages, releases, self.lost_delta + other.lost_delta, unproven)


class Spending:
    """Adds up the messages that each device sent."""

    def __init__(self) -> None:
        self._messages: dict[int, int] = {}
        self._releases: dict[int, dict[Kind, int]] = {}
        self._lost: dict[int, float] = {}
        self._unproven: dict[int, dict[str, None]] = {}

    def add(self, events: Iterable[ReleaseEvent]) -> Spending:
        """Charge what devices sent; itself."""
        for event in events:
            each = zip(
                event.devices.tolist(),
                event.noise_std.tolist(),
                event.steps.tolist(),
                event.sampling.tolist(),
                event.lost_delta.tolist(),
                strict=True,
            )
            for device, std, steps, sampling, lost in each:
                self._messages[device] = self._messages.get(device, 0) + 1
                self._lost[device] = self._lost.get(device, 0.0) + lost
                releases = self._releases.setdefault(device, {})
                unproven = self._unproven.setdefault(device, {})
                if event.proven_sensitivity is None:
                    unproven[described(event)] = None
                elif steps:
                    kind = (std / event.proven_sensitivity, sampling)
                    releases[kind] = releases.get(kind, 0) + steps
        return self

    def accounts(self) -> dict[int, Account]:
        """The account of every device that has sent anything."""
        return {
            device: Account(
                messages=self._messages[device],
                releases=dict(self._releases[device]),
                lost_delta=self._lost[device],
                unproven=tuple(self._unproven[device]),
            )
            for device in sorted(self._messages)
        }


def described(event: ReleaseEvent) -> str:
    """A kind of message in words."""
    many = "losses" if event.content == "loss" else f"{event.content}s"
    plain = many if event.content != "gradient" or event.sender == "device" else "mean gradients"
    return plain if event.noise_std.any() else f"{plain} (no noise)"


def received_by(events: Iterable[ReleaseEvent], members: np.ndarray) -> dict[int, Account]:
    """What some devices, pooling all they hear, are told about each device.

    Copies of one round are nested: together they tell what the least noisy of them tells. A model holds what all rounds
    before it have added: whoever hears one is told of the rounds that it missed as well. Every round is counted at the
    least noise that anybody's copy has, so that members who take turns at being least noisy are counted in full.
    """
    totals: dict[int, dict[Kind, int]] = {}
    messages: dict[int, int] = {}
    lost: dict[int, float] = {}
    unproven: dict[str, None] = {}
    missed: list[ReleaseEvent] = []
    for event in events:
        heard = np.isin(event.devices, members)
        if event.basis == "messages":
            continue
        missed.append(event)
        if not heard.any():
            continue
        for subject in event.subjects.tolist():
            messages[subject] = messages.get(subject, 0) + int(heard.sum())
        for one in missed:
            if one.proven_sensitivity is None:
                unproven[described(one)] = None
            for subject in one.subjects.tolist():
                messages.setdefault(subject, 0)
                releases = totals.setdefault(subject, {})
                lost[subject] = lost.get(subject, 0.0) + float(one.lost_delta.max(initial=0.0))
                if one.proven_sensitivity is not None:
                    # A round that nobody heard has no level on the ledger: the next model then proves nothing.
                    kind = (
                        float(one.noise_std.min(initial=math.inf if one.devices.size else 0.0))
                        / one.proven_sensitivity,
                        1.0,
                    )
                    releases[kind] = releases.get(kind, 0) + 1
        missed.clear()
    return {
        subject: Account(messages[subject], totals[subject], lost[subject], tuple(unproven))
        for subject in sorted(messages)
    }
