"""A device through any history: questions and answers that are lost, crashes, backups, copies on second machines.

It counts what really leaves all machines together. The device is `DeviceClient` reduced to what the ledger is about:
one write per answer, which holds both the release and the count of the question.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from fairwave.federate.protocol import Answer, Phase, Status
from fairwave.federate.step_charges import PerTry, StepCharges

LEAST, MOST = 80, 120
PER_TRY = PerTry(np.array([LEAST]), np.array([MOST]), gradients=1)


@dataclasses.dataclass
class Machine:
    """One machine's state file."""

    name: int
    ask: int = 0
    spent: int = 0
    gradients: int = 0
    update_asks: int = 0
    gradient_asks: int = 0
    gradient_of: int = -1
    """The round whose gradient is kept."""
    question: object = None
    """The question whose update is kept."""


@dataclasses.dataclass(frozen=True)
class Message:
    """How one question fares."""

    before: str
    """What happens to the device before it comes: nothing, backup, restore, clone, lose."""
    which: int
    """Which backup, and which of the machines gets the question."""
    fate: str
    """What becomes of it; a backup may also be made while the device computes."""
    steps: int


def messages(*, faults: bool) -> st.SearchStrategy[Message]:
    """Without faults, devices still rest and rounds are still repeated."""
    happens = ["nothing", "backup", "restore", "clone", "lose"] if faults else ["nothing"]
    fates = ["arrives", "answer lost", "question lost", "delivered twice", "crash", "backup", "rests"]
    return st.builds(
        Message,
        st.sampled_from(happens),
        st.integers(0, 3),
        st.sampled_from(fates if faults else ["arrives", "rests", "delivered twice"]),
        st.integers(LEAST, MOST),
    )


@dataclasses.dataclass(frozen=True)
class Try:
    """One try of a round."""

    gradient: Message
    update: Message
    mean: int
    """The mean gradient that came out: another one is another question."""
    heard: bool
    """Whether the access point lives to use the answers, if this is the round's last try."""


def histories(*, faults: bool = True) -> st.SearchStrategy[list[list[Try]]]:
    """Rounds, each of one or more tries; without faults, every last try is heard."""
    each = messages(faults=faults)
    one = st.builds(Try, each, each, st.integers(0, 1), st.booleans() if faults else st.just(True))
    return st.lists(st.lists(one, min_size=1, max_size=3), min_size=1, max_size=8)


class World:
    """All machines of one device, and what has left them."""

    def __init__(self, *, counts_first: bool = False) -> None:
        """A device that `counts_first` writes down that it has answered before it computes: a fault, for the tests."""
        self._counts_first = counts_first
        self._names, self._asks = itertools.count(1), itertools.count(1)
        self.machines, self._backups = [Machine(next(self._names))], list[Machine]()
        self.released = np.zeros(2, np.int64)

    def ask(self, message: Message, phase: Phase, question: object, number: int) -> Answer | None:
        """What the access point receives in reply to one question."""
        self._live(message)
        machine = self.machines[message.which % len(self.machines)]
        if message.fate == "question lost" or (phase is Phase.UPDATE and machine.gradient_of != number):
            return None  # a machine that does not know of the round answers 'stale', which is no report
        ask, answer = next(self._asks), None
        for _ in range(2 if message.fate == "delivered twice" else 1):
            answer = self._handled(machine, message, phase, question, number, ask)
        return None if message.fate in ("answer lost", "crash") else answer

    def _live(self, message: Message) -> None:
        which, there = message.which, self.machines[message.which % len(self.machines)]
        if message.before == "backup":
            self._backups.append(copy.copy(there))
        elif message.before == "restore" and self._backups:
            self.machines[which % len(self.machines)] = copy.copy(self._backups[which % len(self._backups)])
        elif message.before == "clone" and len(self.machines) < 3:
            self.machines.append(copy.copy(there))
        elif message.before == "lose":
            self.machines[which % len(self.machines)] = Machine(next(self._names))

    def _handled(
        self, machine: Machine, message: Message, phase: Phase, question: object, number: int, ask: int
    ) -> Answer | None:
        if message.fate == "crash":
            return None
        rests = message.fate == "rests"
        if self._counts_first:
            _count(machine, phase, ask)
        if message.fate == "backup":
            self._backups.append(copy.copy(machine))
        if phase is Phase.GRADIENT and machine.gradient_of != number and not rests:
            machine.gradient_of, machine.gradients = number, machine.gradients + 1
            self.released += (0, 1)
        if phase is Phase.UPDATE and machine.question != question and not rests:
            machine.question, machine.spent = question, machine.spent + message.steps
            self.released += (message.steps, 0)
        _count(machine, phase, ask)
        return Answer(
            number,
            Status.RESTING if rests else Status.SENT,
            spent=machine.spent,
            gradients=machine.gradients,
            state_name=machine.name,
            update_asks=machine.update_asks,
            gradient_asks=machine.gradient_asks,
        )


def _count(machine: Machine, phase: Phase, ask: int) -> None:
    if ask != machine.ask:
        machine.ask = ask
        machine.update_asks += phase is Phase.UPDATE
        machine.gradient_asks += phase is Phase.GRADIENT


def live_through(
    rounds: Sequence[Sequence[Try]],
    world: World,
    rule: Callable[..., StepCharges],
    check: Callable[[np.ndarray, np.ndarray], bool],
) -> None:
    """Charge a device for a history by a rule; after every round, ledger and truth must pass the check."""
    charges, charged = rule(1), np.zeros(2, np.int64)
    for number, tries in enumerate(rounds):
        asked: dict[str, dict[int, int]] = {Phase.GRADIENT: {0: 0}, Phase.UPDATE: {0: 0}}
        answer: Answer | None = None
        for one in tries:
            asked[Phase.GRADIENT][0] += 1
            answer = world.ask(one.gradient, Phase.GRADIENT, None, number)
            if answer is not None and answer.status is Status.SENT:
                asked[Phase.UPDATE][0] += 1
                answer = world.ask(one.update, Phase.UPDATE, (number, one.mean), number)
        if answer is not None:
            assert not charges.implausible(0, answer, asked, PER_TRY), "an honest device is not taken at its word"
        heard = answer is not None and tries[-1].heard
        charge = charges.charge({0: answer} if heard else {}, asked, PER_TRY)
        charged += (charge.steps[0], charge.gradients[0])
        assert check(charged, world.released), f"round {number}: charged {charged}, released {world.released}"
        charges = rule(1, [charges.arrays()])  # as after a restart
