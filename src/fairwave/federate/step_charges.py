"""What the ledger of a proof is charged for each device: never less than what has left an honest one.

The bound. Every local step and every gradient leaves a device in reply to one question of the access point, one
question costs `most` at most, and a question is handled by one state. A state counts the questions that it has answered
and what it released for them, in one write. So whatever a state reports, `answered` questions cost exactly `released`,
and all the others cost at most `most` each:

    truth  <=  most * asked - sum over states of (most * answered - released)

The sum runs over states with different names, which have answered different questions. What a report proves to be saved
stays proved, so that the largest difference of each name counts. Nothing here asks in which order reports come. A state
that was brought back from a backup, or a copy of it on a second machine, reports fewer answers than were heard of
before, saves nothing until it has more, and whatever it sends meanwhile is charged at its worst. Questions that nobody
is known to have answered are charged at their worst for good: a copy of the device may have.

A report that cannot be true (more answers than questions, more released than `most` for each) is refused, so that no
device is ever charged more than the worst of all questions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairwave.engine.round_record import Arrays
from fairwave.federate.protocol import Answer, Phase, Status

STATE = "client_state"
STATES = 8
"""States per device whose reports are remembered; of those heard of longest ago, nothing counts as saved any more."""
KINDS = {"steps": Phase.UPDATE, "gradients": Phase.GRADIENT}
"""What is counted, and the exchange that it leaves a device in."""
RESTORED = "state_restored"

Asked = Mapping[str, Mapping[int, int]]
"""By exchange and device: how many questions were sent in a round."""


@dataclasses.dataclass(frozen=True)
class PerTry:
    """What one question can take of each device."""

    least_steps: np.ndarray
    most_steps: np.ndarray
    gradients: int
    """1 where gradients are exchanged."""

    def most(self, device: int) -> dict[str, int]:
        """At most, of each kind."""
        return {"steps": int(self.most_steps[device]), "gradients": self.gradients}

    def least(self, device: int) -> dict[str, int]:
        """At least, of each kind, if the device did its part."""
        return {"steps": int(self.least_steps[device]), "gradients": self.gradients}


class Charge(NamedTuple):
    """What a round takes of each device."""

    steps: np.ndarray
    gradients: np.ndarray


class Report(NamedTuple):
    """What a state has told of one kind: questions answered, and what was released for them."""

    answered: int = 0
    released: int = 0

    def saved(self, most: int) -> int:
        """How much less than the worst its answers have cost."""
        return self.answered * most - self.released


Known = dict[str, Report]
"""By kind, the report of a state that saved the most."""


class StepCharges:
    """How much each device was asked, what its states have told of that, and what was charged."""

    def __init__(self, num_devices: int, records: Sequence[Arrays] = ()) -> None:
        """As it stands after the rounds that are stored."""
        held, nothing = records[-1] if records else {}, np.zeros(num_devices, np.int64)
        self._charged = {kind: held.get(f"charged_{kind}", nothing).copy() for kind in KINDS}
        if f"asked_{KINDS['steps']}" not in held:
            # A run of before these were counted: states of then have other names now, and nothing is saved of theirs.
            held = {f"charged_before_{kind}": charged for kind, charged in self._charged.items()}
        self._before = {kind: held.get(f"charged_before_{kind}", nothing).copy() for kind in KINDS}
        self._asked = {kind: held.get(f"asked_{phase}", nothing).copy() for kind, phase in KINDS.items()}
        self._least = {kind: held.get(f"least_{kind}", nothing).copy() for kind in KINDS}
        self._known = [_known(held, device) for device in range(num_devices)]
        self.restored: dict[int, tuple[int, int]] = {}
        """Devices whose state, in the last round, was one from before or a copy; answers reported and known."""

    def implausible(self, device: int, answer: Answer, asked: Asked, per_try: PerTry) -> bool:
        """Whether a device reports more than it can have done; `asked` is what it was asked in the round under way."""
        told, most = _told(answer), per_try.most(device)
        others = [known for name, known in self._known[device].items() if name != answer.state_name]
        return any(
            report.released > report.answered * most[kind]
            or report.answered + sum(known[kind].answered for known in others)
            > self._asked[kind][device] + asked.get(KINDS[kind], {}).get(device, 0)
            for kind, report in told.items()
        )

    def charge(
        self, answers: Mapping[int, Answer], asked: Asked, per_try: PerTry, *, late: Mapping[int, Answer] | None = None
    ) -> Charge:
        """What to charge each device for a round in which it was asked so often; reports have been found plausible.

        `late` are answers to questions of earlier rounds, which were charged at their worst then.
        """
        before = {kind: charged.copy() for kind, charged in self._charged.items()}
        self.restored = {}
        for device, answer in (late or {}).items():
            self._hear(device, answer, per_try.most(device))
        for device in sorted({device for counts in asked.values() for device in counts}):
            most, least, did = per_try.most(device), per_try.least(device), False
            if device in answers:
                self._hear(device, answers[device], most)
                did = answers[device].status in (Status.SENT, Status.LOST)
            for kind, phase in KINDS.items():
                self._asked[kind][device] += asked.get(phase, {}).get(device, 0)
                self._least[kind][device] += least[kind] if did else 0
                saved = sum(known[kind].saved(most[kind]) for known in self._known[device].values())
                worst = self._before[kind][device] + self._asked[kind][device] * most[kind]
                self._charged[kind][device] = max(
                    self._charged[kind][device],
                    worst - saved,
                    self._before[kind][device] + self._least[kind][device],
                )
        return Charge(**{kind: self._charged[kind] - old for kind, old in before.items()})

    def _hear(self, device: int, answer: Answer, most: Mapping[str, int]) -> None:
        """Remember what a state reports, and notice one that does not go on where it, or its copy, was."""
        if not answer.state_name:  # it reports nothing
            return
        states, told = self._known[device], _told(answer)
        newest = next(reversed(states), None)
        before = states.pop(answer.state_name, None)
        if before is not None:
            reported, known = (sum(report.answered for report in each.values()) for each in (told, before))
            if reported <= known or newest != answer.state_name:
                self.restored[device] = (reported, known)
            for kind in KINDS:
                if before[kind].saved(most[kind]) > told[kind].saved(most[kind]):
                    told[kind] = before[kind]
        states[answer.state_name] = told
        while len(states) > STATES:
            del states[next(iter(states))]

    def arrays(self) -> Arrays:
        """The present standing, to be stored with the round."""
        size = len(self._known)
        held = {f"charged_{kind}": value.copy() for kind, value in self._charged.items()}
        held |= {f"charged_before_{kind}": value.copy() for kind, value in self._before.items()}
        held |= {f"asked_{KINDS[kind]}": value.copy() for kind, value in self._asked.items()}
        held |= {f"least_{kind}": value.copy() for kind, value in self._least.items()}
        held |= {name: np.zeros((size, STATES), np.int64) for name in (STATE, *_columns())}
        for device, states in enumerate(self._known):
            for place, (name, known) in enumerate(states.items()):
                held[STATE][device, place] = name
                for column, (kind, field) in _columns().items():
                    held[column][device, place] = getattr(known[kind], field)
        return {**held, RESTORED: np.isin(np.arange(size), list(self.restored))}


def at_worst(asked: Asked, per_try: PerTry) -> Charge:
    """What a round can have taken of each device if nothing is known of how its questions ended."""
    counts = {kind: np.zeros(per_try.most_steps.size, np.int64) for kind in KINDS}
    for kind, phase in KINDS.items():
        for device, count in asked.get(phase, {}).items():
            counts[kind][device] = count * per_try.most(device)[kind]
    return Charge(**counts)


def _told(answer: Answer) -> Known:
    return {
        "steps": Report(answer.update_asks, answer.spent),
        "gradients": Report(answer.gradient_asks, answer.gradients),
    }


def _columns() -> dict[str, tuple[str, str]]:
    """Stored arrays of what states have told: kind and field of each."""
    return {f"{STATE}_{field}_{kind}": (kind, field) for kind in KINDS for field in Report._fields}


def _known(held: Arrays, device: int) -> dict[int, Known]:
    """What a device's states have told, the one heard of last at the end."""
    states: dict[int, Known] = {}
    for place, name in enumerate(held[STATE][device] if STATE in held else ()):
        if name:
            told = {
                kind: Report(*(int(held[f"{STATE}_{field}_{kind}"][device, place]) for field in Report._fields))
                for kind in KINDS
            }
            states[int(name)] = told
    return states
