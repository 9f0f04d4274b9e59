"""Answers to the last question of a round that come after its deadline: who is waited for, and what came.

A device that is waited for is not asked anything else. Its answer is used in the round in which it is found, if that is
at most `learning.late_rounds` after the one that it was asked in. Waiting ends with the program: an access point that
starts again asks everybody anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from fairwave.federate.messaging import Exchanges, Reply
from fairwave.federate.protocol import Answer, Status
from fairwave.runs.faults import Fault


class _Asked(NamedTuple):
    node: int
    round: int


@dataclasses.dataclass(frozen=True)
class Late:
    """What there is to conclude about late answers in a round."""

    answers: Mapping[int, Answer] = dataclasses.field(default_factory=dict)
    """By device: good answers to questions of earlier rounds that were found in this one."""
    ages: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """By device: how many rounds ago each of them was asked for."""
    dropped: frozenset[int] = frozenset()
    """Devices whose answer is not waited for any longer."""
    waited_for: frozenset[int] = frozenset()
    """Devices that were asked in this round, and whose answer may still come."""

    @property
    def used(self) -> dict[int, int]:
        """Age of every late update, by device."""
        return {device: self.ages[device] for device, answer in self.answers.items() if answer.status is Status.SENT}


ReadAnswer = Callable[[int, int, Reply], tuple[Answer | None, Fault]]
"""From a device, the round that it was asked in, and its reply, to the answer or what is wrong with it."""


class LateAnswers:
    """The devices whose answer is late, over the rounds of one scheme and seed."""

    def __init__(self, exchanges: Exchanges, late_rounds: int) -> None:
        """Without any rounds to wait for, nobody ever is."""
        self._exchanges, self._late_rounds = exchanges, late_rounds
        self._asked: dict[int, _Asked] = {}
        self._replies: dict[int, tuple[int, Reply]] = {}
        """By device: the round that it was asked in, and its reply."""

    @property
    def is_used(self) -> bool:
        """Whether late answers are used at all."""
        return self._late_rounds > 0

    def late_s(self, deadline_s: float, wait_s: float) -> float:
        """How long after its deadline a question is of use: a round has two exchanges, and waits for devices."""
        return self._late_rounds * (2.0 * deadline_s + wait_s)

    def note(self, device: int, node: int, number: int) -> bool:
        """A device has not answered by the deadline: whether it is waited for."""
        if self.is_used and self._exchanges.awaits(node):
            self._asked[device] = _Asked(node, number)
            return True
        return False

    def update(self, nodes: Mapping[int, int] | None = None) -> None:
        """Take what has come; a device that came back under another node will not answer as the old one."""
        came = self._exchanges.late_replies()
        for device, asked in list(self._asked.items()):
            if asked.node in came:
                self._replies[device] = (asked.round, came[asked.node])
                del self._asked[device]
            elif (nodes is not None and nodes.get(device, asked.node) != asked.node) or not self._exchanges.awaits(
                asked.node
            ):
                self._exchanges.give_up([asked.node])
                del self._asked[device]

    def busy(self, num_devices: int, number: int) -> np.ndarray:
        """A mask of the devices that are waited for since an earlier round than this."""
        waited = [device for device, asked in self._asked.items() if asked.round < number]
        return np.isin(np.arange(num_devices), waited)

    def wait(self, number: int, end: float, *, for_others: bool) -> None:
        """Until everybody who was asked in an earlier try of the round has answered, or until that time.

        `for_others` is for a round in which there is nobody to ask: then until anybody has answered.
        """
        of_this_round = [asked.node for asked in self._asked.values() if asked.round == number]
        if of_this_round:
            self._exchanges.wait_for_late(of_this_round, len(of_this_round), end)
        elif for_others and self._asked:
            self._exchanges.wait_for_late([asked.node for asked in self._asked.values()], 1, end)

    def asked_in(self, number: int) -> list[int]:
        """Devices that were asked in this round and are late, in hand or not."""
        waited = [device for device, asked in self._asked.items() if asked.round == number]
        return sorted({*waited, *(device for device, (asked, _) in self._replies.items() if asked == number)})

    def of_this_round(self, number: int) -> dict[int, Reply]:
        """What came to questions of this very round, which is tried again: it is in time."""
        own = {device: reply for device, (asked, reply) in self._replies.items() if asked == number}
        self._replies = {device: held for device, held in self._replies.items() if device not in own}
        return own

    def conclude(self, number: int, read: ReadAnswer, faults: np.ndarray) -> Late:
        """What a round makes use of, and whom it gives up; whatever is wrong with an answer goes to the faults."""
        self.update()
        answers, ages = {}, {}
        in_hand = {device: held for device, held in self._replies.items() if held[0] == number}  # for the next round
        for device, (asked_in, reply) in self._replies.items():
            if device in in_hand:
                continue
            answer, fault = read(device, asked_in, reply)
            if answer is None:
                faults[device] = fault
            elif number - asked_in <= self._late_rounds:
                answers[device], ages[device] = answer, number - asked_in
        self._replies = in_hand
        too_old = {k: asked for k, asked in self._asked.items() if number - asked.round >= self._late_rounds}
        self._exchanges.give_up([asked.node for asked in too_old.values()])
        self._asked = {device: asked for device, asked in self._asked.items() if device not in too_old}
        return Late(answers, ages, frozenset(too_old), frozenset(self.asked_in(number)))

    def end(self) -> None:
        """Nobody is waited for any longer."""
        self._exchanges.give_up([asked.node for asked in self._asked.values()])
        self._asked, self._replies = {}, {}
