"""What the ledger of a proof is charged for each device: what it reports, or the most that it can have done.

Answers report how many local steps and how many gradients have left a device so far, by its own state. The charge of
all rounds together is never below what has really left an honest device: silence, repeated tries and lost states are
taken at their worst.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairwave.engine.round_record import Arrays
from fairwave.federate.protocol import Answer, Status

STATE = "client_state"


@dataclasses.dataclass(frozen=True)
class PerTry:
    """What one try of a round can take of each device."""

    least_steps: np.ndarray
    most_steps: np.ndarray
    gradients: int
    """1 where gradients are exchanged."""


class Charge(NamedTuple):
    """What a round takes of each device."""

    steps: np.ndarray
    gradients: np.ndarray


class StepCharges:
    """Which state each device was last known by, what had been charged before that began, and what was since."""

    def __init__(self, num_devices: int, records: Sequence[Arrays] = ()) -> None:
        """As it stands after the rounds that are stored."""
        held, nothing = records[-1] if records else {}, np.zeros(num_devices, np.int64)
        self._state = held.get(STATE, nothing).copy()
        self._base = {name: held.get(_base(name), nothing).copy() for name in ("steps", "gradients")}
        self._charged = {name: held.get(_charged(name), nothing).copy() for name in ("steps", "gradients")}

    def charge(self, answers: Mapping[int, Answer], tries: Mapping[int, int], per_try: PerTry) -> Charge:
        """What to charge each device for a round; `tries` is how often each was asked in it."""
        before = {name: charged.copy() for name, charged in self._charged.items()}
        for device, asked in tries.items():
            answer = answers.get(device)
            most = {"steps": int(per_try.most_steps[device]), "gradients": per_try.gradients}
            if answer is None:
                for name, each in most.items():
                    self._charged[name][device] += asked * each
                continue
            if answer.state_name != self._state[device]:
                # An old state, if there was one, is gone, and with it what that would have told of earlier tries.
                self._state[device] = answer.state_name
                for name, each in most.items():
                    self._base[name][device] = self._charged[name][device] + (asked - 1) * each
            did = answer.status in (Status.SENT, Status.LOST)
            least = {"steps": int(per_try.least_steps[device]), "gradients": per_try.gradients}
            for name, reported in (("steps", answer.spent), ("gradients", answer.gradients)):
                new = self._base[name][device] + reported - self._charged[name][device]
                self._charged[name][device] += max(new, least[name] if did else 0, 0)
        return Charge(**{name: self._charged[name] - old for name, old in before.items()})

    def answered_late(self, device: int, answer: Answer) -> None:
        """A late answer of an earlier round, whose tries were charged at their worst: what it reports is in that.

        Only a state that was not known changes anything: what it reports would be charged again with its next answer.
        """
        if answer.state_name != self._state[device]:
            self._state[device] = answer.state_name
            for name, reported in (("steps", answer.spent), ("gradients", answer.gradients)):
                self._base[name][device] = self._charged[name][device] - reported

    def arrays(self) -> Arrays:
        """The present standing, to be stored with the round."""
        held = {_base(name): value.copy() for name, value in self._base.items()}
        held |= {_charged(name): value.copy() for name, value in self._charged.items()}
        return {STATE: self._state.copy(), **held}


def at_worst(tries: Mapping[int, int], per_try: PerTry) -> Charge:
    """What a round can have taken of each device if nothing is known of how its tries ended."""
    asked = np.zeros(per_try.most_steps.size, np.int64)
    asked[list(tries)] = list(tries.values())
    return Charge(asked * per_try.most_steps, asked * per_try.gradients)


def _base(name: str) -> str:
    return f"{STATE}_base_{name}"


def _charged(name: str) -> str:
    return f"charged_{name}"
