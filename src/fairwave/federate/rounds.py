"""The rounds of one scheme and seed: who is asked, what comes back, and what is stored."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid

from fairwave.engine.invitation import Attendance
from fairwave.engine.releases import releases
from fairwave.engine.round_record import Arrays, as_arrays
from fairwave.engine.state import Books
from fairwave.errors import FederationError
from fairwave.federate.access_point import AccessPoint, Answers
from fairwave.federate.agreement import Brief
from fairwave.federate.answer_checks import Expected
from fairwave.federate.connections import Roll
from fairwave.federate.flower_records import task_to_records
from fairwave.federate.log_lines import faults_in_words
from fairwave.federate.messaging import exchange, read
from fairwave.federate.protocol import NamedArrays, Phase, Status, Task, named_arrays
from fairwave.federate.server_run import Logbook
from fairwave.federate.step_charges import Account
from fairwave.runs.faults import Fault, by_name
from fairwave.runs.order import Track
from fairwave.runs.training import target_reached

_MOST_WORDS = 300
"""Characters of what a device says of its own failure."""


@dataclasses.dataclass
class _Try:
    """One try of a round."""

    number: int
    books: Books
    present: Attendance
    scored: np.ndarray
    """Per device, the last round in which its update was scored."""
    nodes: dict[int, int]
    """Node of every device that is asked."""
    faults: dict[Phase, np.ndarray]
    seconds: dict[Phase, float] = dataclasses.field(default_factory=dict)


class Rounds:
    """All rounds of one scheme and seed."""

    def __init__(
        self,
        brief: Brief,
        grid: Grid,
        logbook: Logbook,
        roll: Roll,
        point: AccessPoint,
        track: Track,
    ) -> None:
        self._brief, self._settings = brief, brief.settings
        self._grid, self._logbook, self._roll, self._point = grid, logbook, roll, point
        self._track = track
        self._account = Account(0)
        self._exhausted = np.zeros(0, bool)

    def run(self) -> Books:
        """The books after the last round."""
        point, logbook, track = self._point, self._logbook, self._track
        num_devices = self._brief.order.scenario.cell.num_devices
        books, done = logbook.books(track, like=point.start()), logbook.store.summary(track)
        records, number, finished = logbook.store.records(track), done.rounds, done.finished
        scored = _last_scored(records, num_devices)
        self._account = Account(num_devices, records)
        self._exhausted = records[-1]["exhausted"].copy() if records else np.zeros(num_devices, bool)
        while number < self._brief.order.rounds and not finished:
            books, arrays, finished = self._round(books, number, scored)
            scored[arrays["delivered"]] = number
            number += 1
        return books

    def _round(self, books: Books, number: int, scored: np.ndarray) -> tuple[Books, Arrays, bool]:
        begun = time.monotonic()
        for _ in range(self._settings.patience):
            current = self._gather(books, number, scored)
            answers = self._exchanged(current)
            if answers is not None:
                return self._conclude(current, answers, begun)
        named = {name: who for phase in Phase for name, who in by_name(current.faults[phase]).items()}
        raise FederationError(
            f"round {number + 1}: fewer than {self._settings.quorum:.0%} of its devices answered well in "
            f"{self._settings.patience} tries{faults_in_words(named)}; every stored round is safe: mend that and start "
            "it again"
        )

    def _gather(self, books: Books, number: int, scored: np.ndarray) -> _Try:
        """Wait until enough of those who are to take part are connected."""
        present = self._point.participants(books, number)
        wanted = [int(device) for device in np.flatnonzero(np.asarray(present.participating))]

        def asked(nodes: dict[int, int]) -> dict[int, int]:
            return {device: nodes[device] for device in wanted if device in nodes}

        # Everybody is waited for before the first round; later, whoever is missing comes back when it can.
        share = 1.0 if number == 0 else self._settings.quorum
        nodes = self._roll.wait_for(lambda there: len(asked(there)) >= share * len(wanted), self._settings.wait_s)
        if len(asked(nodes)) < self._settings.quorum * len(wanted):
            raise FederationError(
                f"round {number + 1}: {len(asked(nodes))} of {len(wanted)} devices are connected after "
                f"{self._settings.wait_s:g} s; every stored round is safe: start more, then start it again"
            )
        blank = np.zeros(scored.size, np.int8)
        faults = {phase: blank.copy() for phase in Phase}
        return _Try(number, books, present, scored, asked(nodes), faults)

    def _exchanged(self, current: _Try) -> Answers | None:
        """The update of every device that answered well; None if they are too few."""
        point, devices = self._point, list(current.nodes)
        copies = point.copies(current.books, devices)
        first = point.first_phase()
        self._logbook.note_asked(self._track, current.number, devices)
        tasks = {k: self._task(current, k, first, copy=copies[k]) for k in devices}
        answers = self._ask(current, first, tasks)
        if answers is None or first is Phase.UPDATE:
            return answers
        mean = point.mean_gradient(current.books, answers)
        going_on = [k for k, answer in answers.items() if answer.status is not Status.RESTING]
        tasks = {k: self._task(current, k, Phase.UPDATE, mean_gradient=mean) for k in going_on}
        updates = self._ask(current, Phase.UPDATE, tasks)
        return None if updates is None else {**_resting(answers), **updates}

    def _task(
        self,
        current: _Try,
        device: int,
        phase: Phase,
        copy: NamedArrays | None = None,
        mean_gradient: NamedArrays | None = None,
    ) -> Task:
        left = self._point.left(current.books) if self._point.guard.mode == "provable" else None
        return Task(
            federation=self._logbook.name,
            scheme=self._track.scheme,
            seed=self._track.seed,
            round=current.number,
            phase=phase,
            deviation=float(np.asarray(current.books.deviation)[device]),
            scored_round=int(current.scored[device]),
            steps_left=-1 if left is None else int(left[device]),
            copy=copy,
            mean_gradient=mean_gradient,
        )

    def _ask(self, current: _Try, phase: Phase, tasks: dict[int, Task]) -> Answers | None:
        """Send tasks; the good answers, or None if they are fewer than the quorum."""
        like = named_arrays(current.books.global_params)
        begun, answers = time.monotonic(), {}
        contents: dict[int, RecordDict] = {current.nodes[k]: task_to_records(task) for k, task in tasks.items()}
        replies = exchange(self._grid, contents, f"train.{phase}", str(current.number), self._settings.deadline_s)
        for device in tasks:
            expected = Expected(current.number, int(self._point.counts[device]), like, self._settings.max_norm)
            reply = replies.get(current.nodes[device])
            answer, fault = read(reply, expected)
            current.faults[phase][device] = fault
            if fault is Fault.FAILED and reply is not None:
                self._logbook.tell("told", device=device, why=str(reply.error.reason)[:_MOST_WORDS])
            if answer is not None:
                told = answer.telemetry if self._settings.telemetry else {}
                answers[device] = dataclasses.replace(answer, telemetry=told)
        current.seconds[phase] = time.monotonic() - begun
        if len(answers) >= self._settings.quorum * len(tasks):
            return answers
        named = by_name(current.faults[phase])
        self._logbook.tell("no quorum", round=current.number + 1, phase=str(phase), faults=named)
        return None

    def _conclude(self, current: _Try, answers: Answers, begun: float) -> tuple[Books, Arrays, bool]:
        """Aggregate, release, store."""
        point, number = self._point, current.number
        tries = self._logbook.tries(self._track, number)
        charged = None
        if point.guard.mode == "provable":
            before = np.asarray(current.books.spent)
            charged = self._account.charge(before, answers, tries, *point.steps_per_try())
        books, record = point.conclude(current.books, number, current.present, tries, answers, charged)
        events = releases(
            point.guard, record, gradient_exchange=point.exchanges, local_std=point.local_std,
            told_losses=point.scheme.told_losses, charged=charged,
        )  # fmt: skip
        for device, answer in answers.items():
            self._exhausted[device] = answer.exhausted
        going_on = point.can_afford(books, number + 1) & ~self._exhausted
        last = target_reached(self._brief.order.scenario.run, record) or not going_on.any()
        arrays = as_arrays(record) | self._account.arrays() | self._also(current, answers, begun)
        self._logbook.append(self._track, number, arrays, events, books, last=last)
        faults = {f"{phase}: {name}": who for phase in Phase for name, who in by_name(current.faults[phase]).items()}
        self._logbook.tell_round(self._track, number, arrays, faults)
        return books, arrays, last

    def _also(self, current: _Try, answers: Answers, begun: float) -> Arrays:
        """What only a federation has to tell."""
        size = current.scored.size
        wall = [answers[k].telemetry.get("wall_time_s", math.nan) if k in answers else math.nan for k in range(size)]
        return {
            "gradient_fault": current.faults[Phase.GRADIENT],
            "update_fault": current.faults[Phase.UPDATE],
            "exhausted": self._exhausted.copy(),
            "wall_time_s": np.asarray(wall),
            "gradient_exchange_s": np.asarray(current.seconds.get(Phase.GRADIENT, 0.0)),
            "update_exchange_s": np.asarray(current.seconds.get(Phase.UPDATE, 0.0)),
            "round_s": np.asarray(time.monotonic() - begun),
        }


def _last_scored(records: Sequence[Arrays], num_devices: int) -> np.ndarray:
    """The last round in which each device's update was scored; -1 for none."""
    last = np.full(num_devices, -1)
    for number, arrays in enumerate(records):
        last[arrays["delivered"]] = number
    return last


def _resting(answers: Answers) -> Answers:
    return {k: answer for k, answer in answers.items() if answer.status is Status.RESTING}
