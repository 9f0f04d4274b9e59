"""The rounds of one scheme and seed: who is asked, what comes back, and what is stored."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from flwr.app import Message, RecordDict

from fairwave.engine.end_reasons import end_reason
from fairwave.engine.invitation import Invitation
from fairwave.engine.round_record import LATE_AGE, Arrays, as_arrays, ledger_events
from fairwave.engine.server import AccessPoint
from fairwave.engine.state import ServerState
from fairwave.errors import FederationError
from fairwave.federate.agreement import Agreement
from fairwave.federate.answer_checks import Expected
from fairwave.federate.connections import Connections
from fairwave.federate.flower_records import serialised_bytes, task_to_records
from fairwave.federate.kept_copies import with_needed_copies
from fairwave.federate.late_answers import Late, LateAnswers
from fairwave.federate.log_lines import faults_in_words
from fairwave.federate.messaging import Exchanges, Reply, failure, read
from fairwave.federate.protocol import Answer, Phase, Status, Task
from fairwave.federate.server_round import (
    Answers,
    RoundAnswers,
    conclude,
    copies_for,
    events_at_worst,
    mean_of_gradients,
    per_try,
)
from fairwave.federate.server_run import ServerRun
from fairwave.federate.step_charges import Asked, StepCharges
from fairwave.federate.task_checks import agreement_digest
from fairwave.learning.named_arrays import NamedArrays, named_arrays
from fairwave.runs.faults import Fault, by_name
from fairwave.runs.order import Track

BITS_PER_BYTE = 8


@dataclasses.dataclass
class _Try:
    """One try of a round."""

    number: int
    server: ServerState
    invitation: Invitation
    scored: np.ndarray
    """Per device, the last round in which its update was scored."""
    nodes: dict[int, int]
    """Node of every device that is asked."""
    faults: dict[Phase, np.ndarray]
    seconds: dict[Phase, float] = dataclasses.field(default_factory=dict)
    num_bytes: dict[Phase, dict[int, int]] = dataclasses.field(default_factory=lambda: {phase: {} for phase in Phase})
    """Size of every good answer, by device."""


class Rounds:
    """All rounds of one scheme and seed."""

    def __init__(
        self,
        agreement: Agreement,
        exchanges: Exchanges,
        server_run: ServerRun,
        connections: Connections,
        point: AccessPoint,
        track: Track,
    ) -> None:
        self._agreement, self._settings = agreement, agreement.settings
        self._exchanges, self._server_run = exchanges, server_run
        self._connections, self._point = connections, point
        self._track = track
        self._digest = agreement_digest(point.scenario, track.scheme, self._settings.noise)
        self._charges, self._per_try = StepCharges(0), per_try(point)
        self._asked: Asked = {}
        self._exhausted, self._like = np.zeros(0, bool), NamedArrays()
        self._late = LateAnswers(exchanges, agreement.order.scenario.learning.late_rounds)

    def run(self) -> ServerState:
        """The server after the last round."""
        point, server_run, track = self._point, self._server_run, self._track
        num_devices = self._agreement.order.scenario.cell.num_devices
        server, done = server_run.checkpoint(track, like=point.start()), server_run.store.summary(track)
        records, number, ended = server_run.store.records(track), done.rounds, done.ended is not None
        scored = _last_scored(records, num_devices)
        self._charges = StepCharges(num_devices, records)
        self._exhausted = records[-1]["exhausted"].copy() if records else np.zeros(num_devices, bool)
        self._like = named_arrays(server.global_params)
        try:
            while number < self._agreement.order.rounds and not ended:
                server, arrays, ended = self._round(server, number, scored)
                _note_scored(scored, arrays, number)
                number += 1
        finally:
            self._late.end()
        return server

    def _round(self, server: ServerState, number: int, scored: np.ndarray) -> tuple[ServerState, Arrays, bool]:
        begun = time.monotonic()
        for _ in range(self._settings.patience):
            current = self._gather(server, number, scored)
            answers = self._exchanged(current)
            if answers is not None:
                return self._conclude(current, answers, begun)
        named = {name: who for phase in Phase for name, who in by_name(current.faults[phase]).items()}
        raise FederationError(
            f"round {number + 1}: fewer than {self._settings.quorum:.0%} of its devices answered well in "
            f"{self._settings.patience} tries{faults_in_words(named)}; every stored round is safe: correct that and "
            "start it again"
        )

    def _gather(self, server: ServerState, number: int, scored: np.ndarray) -> _Try:
        """Wait until enough of those who are to take part are connected."""
        drawn = self._point.invite(server, jnp.asarray(number))
        wanted = [int(device) for device in np.flatnonzero(np.asarray(drawn.participating))]

        def asked(nodes: dict[int, int]) -> dict[int, int]:
            return {device: nodes[device] for device in wanted if device in nodes}

        # Everybody is waited for before the first round; later, whoever is missing comes back when it can.
        share = 1.0 if number == 0 else self._settings.quorum
        enough, wait_s = share * len(wanted), self._settings.wait_s
        nodes = self._connections.wait_for(lambda there: len(asked(there)) >= enough, wait_s)
        if len(asked(nodes)) < self._settings.quorum * len(wanted):
            raise FederationError(
                f"round {number + 1}: {len(asked(nodes))} of {len(wanted)} devices are connected after "
                f"{self._settings.wait_s:g} s; every stored round is safe: start more, then start it again"
            )
        self._asked = self._server_run.asked(self._track, number)
        self._late.update(nodes)
        others, late = self._late.busy(scored.size, number), self._late.asked_in(number)
        busy = others | np.isin(np.arange(scored.size), late)
        faults = {phase: np.zeros(scored.size, np.int8) for phase in Phase}
        faults[Phase.UPDATE][np.asarray(drawn.participating) & busy] = Fault.LATE
        to_ask = {device: node for device, node in asked(nodes).items() if not busy[device]}
        return _Try(number, server, drawn.only(jnp.asarray(~others)), scored, to_ask, faults)

    def _exchanged(self, current: _Try) -> Answers | None:
        """The update of every device that answered well; None if they are too few."""
        point, devices = self._point, list(current.nodes)
        copies = copies_for(current.server, devices)
        first = Phase.GRADIENT if point.exchanges_gradients else Phase.UPDATE
        tasks = {k: self._task(current, k, first, copy=copies[k]) for k in devices}
        answers = self._ask(current, first, tasks)
        if answers is None or first is Phase.UPDATE:
            return answers
        mean = mean_of_gradients(point, current.server, current.invitation, answers, current.number)
        going_on = [k for k, answer in answers.items() if answer.status is not Status.RESTING]
        tasks = {k: self._task(current, k, Phase.UPDATE, mean_gradient=mean) for k in going_on}
        updates = self._ask(current, Phase.UPDATE, tasks)
        return None if updates is None else {**_resting(answers), **updates}

    def _task(
        self,
        current: _Try,
        device: int,
        phase: Phase,
        copy: np.ndarray | None = None,
        mean_gradient: np.ndarray | None = None,
    ) -> Task:
        left = self._point.steps_left(current.server)
        return Task(
            federation=self._server_run.name,
            scheme=self._track.scheme,
            seed=self._track.seed,
            agreement=self._digest,
            round=current.number,
            phase=phase,
            deviation=float(np.asarray(current.server.deviation)[device]),
            scored_round=int(current.scored[device]),
            steps_left=-1 if left is None else int(left[device]),
            copy=copy,
            mean_gradient=mean_gradient,
        )

    def _ask(self, current: _Try, phase: Phase, tasks: dict[int, Task]) -> Answers | None:
        """Send tasks; the good answers, or None if they are fewer than the quorum."""
        point, settings, late = self._point, self._settings, self._late
        if tasks:
            self._asked = self._server_run.note_asked(
                self._track,
                current.number,
                phase,
                tasks,
                lambda asked: events_at_worst(point, current.number, asked, self._per_try),
            )
        begun, answers = time.monotonic(), {}
        contents: dict[int, RecordDict] = {current.nodes[k]: task_to_records(task) for k, task in tasks.items()}
        may_be_late = late.is_used and phase is Phase.UPDATE
        late_s = late.late_s(settings.deadline_s, settings.wait_s) if may_be_late else 0.0
        replies = self._exchanges.exchange(contents, f"train.{phase}", str(current.number), settings.deadline_s, late_s)
        found: dict[int, Reply | None] = {device: replies.get(current.nodes[device]) for device in tasks}
        if may_be_late:
            late.wait(current.number, begun + settings.deadline_s, for_others=not tasks)
            late.update()
            found |= late.of_this_round(current.number)  # of an earlier try
        for device, reply in found.items():
            if reply is None and may_be_late and late.note(device, current.nodes[device], current.number):
                current.faults[phase][device] = Fault.LATE
                continue
            answer, current.faults[phase][device] = self._read(device, current.number, reply)
            if answer is not None and isinstance(reply, Message):
                current.num_bytes[phase][device] = serialised_bytes(reply.content)
                answers[device] = answer
        current.seconds[phase] = time.monotonic() - begun
        expected = {*found, *(late.asked_in(current.number) if may_be_late else ())}
        if len(answers) >= settings.quorum * len(expected):
            return answers
        named = by_name(current.faults[phase])
        self._server_run.log("no quorum", round=current.number + 1, phase=str(phase), faults=named)
        return None

    def _read(self, device: int, number: int, reply: Reply | None) -> tuple[Answer | None, Fault]:
        """A device's answer to what it was asked in a round, or what is wrong with it."""
        bits = self._point.scenario.learning.update_bits
        expected = Expected(number, int(self._point.counts[device]), self._like, self._settings.max_norm, bits)
        answer, fault = read(reply, expected)
        if fault is Fault.FAILED and isinstance(reply, Message):
            self._server_run.log("device error", device=device, why=failure(reply))
        if answer is None:
            return None, fault
        counts = self._point.rules.mode.counts_steps
        if counts and self._charges.implausible(device, answer, self._asked, self._per_try):
            return None, Fault.IMPLAUSIBLE
        telemetry = answer.telemetry if self._settings.telemetry else {}
        return dataclasses.replace(answer, telemetry=telemetry), fault

    def _late_in(self, current: _Try) -> Late | None:
        """Late answers of earlier rounds, and who is late in this one; None where they are never used."""
        if not self._late.is_used:
            return None
        number, faults = current.number, current.faults[Phase.UPDATE]
        late = self._late.conclude(number, self._read, faults)
        for device, answer in late.answers.items():
            self._exhausted[device] = answer.exhausted
        if late.used or late.dropped:
            ages = {str(device): age for device, age in sorted(late.used.items())}
            self._server_run.log("late updates", round=number + 1, used=ages, dropped=sorted(late.dropped))
        return late

    def _conclude(self, current: _Try, answers: Answers, begun: float) -> tuple[ServerState, Arrays, bool]:
        """Aggregate, release, store."""
        point, number = self._point, current.number
        asked, late, charge = self._server_run.asked(self._track, number), self._late_in(current), None
        if point.rules.mode.counts_steps:
            charge = self._charges.charge(answers, asked, self._per_try, late={} if late is None else late.answers)
        who = {device for counts in asked.values() for device in counts}
        back = RoundAnswers(who, answers, None if charge is None else charge.steps, late)
        server, record = conclude(point, current.server, number, current.invitation, back)
        for device, answer in answers.items():
            self._exhausted[device] = answer.exhausted
        there, affords = point.will_be_there(number + 1), point.can_afford(server)
        ended = end_reason(point.scenario.run, record, there, affords, ~self._exhausted)
        arrays = as_arrays(record) | self._charges.arrays() | self._also(current, answers, begun)
        events = ledger_events(point, record, number, *(() if charge is None else charge))
        kept = with_needed_copies(point, server, number + 1)
        self._server_run.append(self._track, number, arrays, events, kept, ended=ended)
        for device, (reported, known) in self._charges.restored.items():
            self._server_run.log("restored", device=device, round=number + 1, reported=reported, known=known)
        faults = {f"{phase}: {name}": ids for phase in Phase for name, ids in by_name(current.faults[phase]).items()}
        self._server_run.log_round(self._track, number, arrays, faults)
        return server, arrays, ended is not None

    def _also(self, current: _Try, answers: Answers, begun: float) -> Arrays:
        """What only a federation has to tell."""
        size = current.scored.size
        sent = [k for k, answer in answers.items() if answer.status is Status.SENT]
        uplink, planned = np.zeros(size), np.zeros(size)
        uplink[sent] = [sum(current.num_bytes[phase].get(k, 0) for phase in Phase) for k in sent]
        planned[sent] = self._point.scenario.payload_bits() / BITS_PER_BYTE
        wall = [answers[k].telemetry.get("wall_time_s", math.nan) if k in answers else math.nan for k in range(size)]
        return {
            "gradient_fault": current.faults[Phase.GRADIENT],
            "update_fault": current.faults[Phase.UPDATE],
            "exhausted": self._exhausted.copy(),
            "wall_time_s": np.asarray(wall),
            "uplink_bytes": uplink,
            "planned_uplink_bytes": planned,
            "gradient_exchange_s": np.asarray(current.seconds.get(Phase.GRADIENT, 0.0)),
            "update_exchange_s": np.asarray(current.seconds.get(Phase.UPDATE, 0.0)),
            "round_s": np.asarray(time.monotonic() - begun),
        }


def _last_scored(records: Sequence[Arrays], num_devices: int) -> np.ndarray:
    """The last round in which each device's update was scored; -1 for none."""
    last = np.full(num_devices, -1)
    for number, arrays in enumerate(records):
        _note_scored(last, arrays, number)
    return last


def _note_scored(last: np.ndarray, arrays: Arrays, number: int) -> None:
    """After a round: whose update was scored in it, and of which round that was."""
    if LATE_AGE in arrays:
        late = arrays[LATE_AGE] > 0
        last[late] = number - arrays[LATE_AGE][late]
    last[arrays["delivered"]] = number


def _resting(answers: Answers) -> Answers:
    return {k: answer for k, answer in answers.items() if answer.status is Status.RESTING}
