"""The access point of a federation: what it sends to devices, and what it makes of their answers.

What it computes is `engine.server.AccessPoint`, as in a simulation; this translates between its records and messages.
It never learns a device's energy. Telemetry, where devices send it, goes into the record for the experimenter, and
nowhere else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.engine.device_programs import copy_accuracy_program
from fairwave.engine.device_side import SharedInputs
from fairwave.engine.devices import Plans
from fairwave.engine.invitation import Invitation
from fairwave.engine.late_updates import LateUpload, late_places
from fairwave.engine.round_record import FROM_PLAN, DeviceReports, Evaluation, RoundRecord, among_all, make_record
from fairwave.engine.server import AccessPoint, part_of
from fairwave.engine.server_steps import Upload
from fairwave.engine.state import ServerState
from fairwave.federate.late_answers import Late
from fairwave.federate.protocol import Answer, Status
from fairwave.federate.sent_values import received
from fairwave.federate.step_charges import Asked, PerTry, at_worst
from fairwave.learning.model import Tree
from fairwave.learning.named_arrays import flat_form, flattened, named_arrays, tree_of, unflattened
from fairwave.policy.device_plan import Case, DevicePlan
from fairwave.policy.fleet import physical_devices
from fairwave.policy.problem import most_iterations_in_time
from fairwave.privacy.ledger import ReleaseEvent, RoundMessages
from fairwave.scenario.per_device import DeviceValues
from fairwave.wireless.hardware import refuse_slow

Answers = Mapping[int, Answer]
"""By device: only those that were found to be good."""


@double_precision()
def per_try(point: AccessPoint) -> PerTry:
    """The fewest and the most local steps that each device can do when it is asked once, and its gradients."""
    cell = physical_devices(point.scenario, DeviceValues(point.scenario))
    refuse_slow(cell)
    most = most_iterations_in_time(cell)
    return PerTry(
        least_steps=point.least_charge().astype(np.int64),
        most_steps=np.broadcast_to(np.asarray(most), point.counts.shape).astype(np.int64),
        gradients=int(point.exchanges_gradients),
    )


def events_at_worst(point: AccessPoint, number: int, asked: Asked, each: PerTry) -> list[ReleaseEvent]:
    """What devices that were asked so often can have sent, if nothing is known of how that ended."""
    who = np.array(sorted({device for counts in asked.values() for device in counts}))
    nobody, most = np.array([], int), at_worst(asked, each)
    messages = RoundMessages(
        invited=who,
        sent=who,
        delivered=nobody,
        served=nobody,
        copy_std=np.array([]),
        update_std=point.update_std(number),
        steps=most.steps,
        exchanged_gradients=point.exchanges_gradients,
        reported_losses=point.rules.scheme.reports_losses,
        gradients=most.gradients,
    )
    return [event for event in point.rules.mode.events(point.enforced, messages) if event.sender == "device"]


def copies_for(server: ServerState, chosen: Sequence[int]) -> dict[int, np.ndarray]:
    """The copies that devices begin a round with, each as one flat array."""
    rows, like = named_arrays(server.copies.of_devices), named_arrays(server.global_params)
    return {device: flattened({name: rows[name][device] for name in rows}, like) for device in chosen}


@double_precision()
def mean_of_gradients(
    point: AccessPoint, server: ServerState, invitation: Invitation, answers: Answers, round_index: int
) -> np.ndarray | None:
    """What devices train towards: the aggregate of the gradients that arrived and count; None if there are none."""
    sent = {device: answer for device, answer in answers.items() if answer.status is Status.SENT}
    arrives = _flags(point.counts.size, sent)
    gradients = _stacked(server, sent, np.asarray(invitation.participants), point.scenario.learning.update_bits)
    mean = point.mean_gradient(server, invitation, arrives, gradients, jnp.asarray(round_index))
    if mean is None or not bool(mean.arrived):
        return None
    return flattened(named_arrays(mean.gradient), named_arrays(server.global_params))


@dataclasses.dataclass(frozen=True)
class RoundAnswers:
    """What came back in a round."""

    asked: Iterable[int]
    """Devices that were asked, in this try of the round or an earlier one."""
    answers: Answers
    charged: np.ndarray | None
    """What each budget is charged; None for a round for everybody whose update is used."""
    late: Late | None = None
    """Late answers; None where they are never used."""


@double_precision()
def conclude(
    point: AccessPoint, server: ServerState, round_index: int, invitation: Invitation, back: RoundAnswers
) -> tuple[ServerState, RoundRecord]:
    """The round's end, from the updates: the next state, and the record.

    A device that was asked and whose update is missing or no good keeps its copy and deviation, as in outage; one that
    was not connected, or rests, is treated as not invited.
    """
    invitation = _as_answered(invitation, back)
    plans = _reported_plans(invitation, back.answers)
    upload = _upload(point, server, invitation, plans, back)
    concluded = point.conclude(server, upload, invitation, jnp.asarray(round_index))
    reports = DeviceReports(
        received_loss=_telemetry(back.answers, "received_loss", invitation),
        received_accuracy=_copy_accuracy(point, server, invitation),
        loss=_telemetry(back.answers, "loss", invitation),
        update_norm=_telemetry(back.answers, "update_norm", invitation),
    )
    # Nobody here has the training data: what would need it is not known.
    unknown = jnp.full((), jnp.nan)
    model = concluded.server.global_params
    evaluation = Evaluation(point.test_accuracy(model), unknown, unknown, point.test_rmse(model))
    return concluded.server, make_record(invitation, plans, concluded, reports, evaluation)


def _as_answered(invitation: Invitation, back: RoundAnswers) -> Invitation:
    """The invitation as devices have taken it up."""
    size = invitation.participating.size
    resting = {device for device, answer in back.answers.items() if answer.status is Status.RESTING}
    taking_part = _flags(size, set(back.asked) - resting)
    answered = _flags(size, set(back.answers) - resting)
    # Where late updates are used, who is late is known, and not drawn.
    drawn = invitation.stragglers & answered
    stragglers = drawn if back.late is None else _flags(size, back.late.waited_for)
    return dataclasses.replace(
        invitation,
        participating=invitation.participating & taking_part,
        stragglers=stragglers,
    )


def _upload(
    point: AccessPoint, server: ServerState, invitation: Invitation, plans: Plans, back: RoundAnswers
) -> Upload:
    """What arrived, as the simulator's devices would have uploaded it."""
    sent = {device: answer for device, answer in back.answers.items() if answer.status is Status.SENT}
    chosen = np.asarray(invitation.participants)
    charge = plans.delivered.astype(jnp.int64) if back.charged is None else jnp.asarray(back.charged)
    return Upload(
        updates=_stacked(server, sent, chosen, point.scenario.learning.update_bits),
        reported_noise_std=_each(chosen, sent, "reported_noise_std", 0.0),
        reported_loss=_each(chosen, sent, "reported_loss", 0.0),
        num_samples=point.counts[invitation.participants],
        delivered=plans.delivered,
        charge=charge,
        late=None if back.late is None else _late_upload(point, server, back.late),
    )


def _late_upload(point: AccessPoint, server: ServerState, late: Late) -> LateUpload:
    """What came late, in as many places as can be needed, so that one program will do for all rounds."""
    size, used = point.counts.size, late.used
    places = np.full(late_places(point.scenario), size)
    places[: len(used)] = sorted(used)
    return LateUpload(
        devices=jnp.asarray(places),
        arrived=jnp.asarray(places < size),
        age=jnp.asarray([used.get(device, 0) for device in places.tolist()]),
        updates=_stacked(server, late.answers, places, point.scenario.learning.update_bits),
        reported_noise_std=_each(places, late.answers, "reported_noise_std", 0.0),
        reported_loss=_each(places, late.answers, "reported_loss", 0.0),
        num_samples=jnp.where(places < size, point.counts[jnp.minimum(places, size - 1)], 0),
        dropped=_flags(size, late.dropped),
    )


def _reported_plans(invitation: Invitation, answers: Answers) -> Plans:
    """The participants' plans as far as they report them; zero for the others, as in a simulation."""
    size = invitation.participating.size
    statuses = {device: answer.status for device, answer in answers.items()}
    outage = _flags(size, [device for device, status in statuses.items() if status is Status.OUTAGE])
    sent = _flags(size, [device for device, status in statuses.items() if status is Status.SENT])
    values = {field.name: jnp.zeros(size) for field in dataclasses.fields(DevicePlan)}
    for name in FROM_PLAN:
        reported = jnp.where(invitation.participating, _telemetry(answers, name, invitation), 0.0)
        values[name] = jnp.where(outage, 0.0, reported)
    values["case"] = jnp.where(outage, int(Case.OUTAGE), int(Case.INTERIOR))
    return Plans(
        plan=DevicePlan(**values),
        takes_part=invitation.participating,
        arrives=sent,
        late=invitation.stragglers & ~outage,
        delivered=sent & invitation.participating & ~invitation.stragglers,
        cheating=jnp.zeros(size, bool),
        distance_m=None,
    )


def _copy_accuracy(point: AccessPoint, server: ServerState, invitation: Invitation) -> jax.Array:
    """Accuracy of every participant's copy; what devices make of it with models of their own, only they know."""
    held = part_of(server.copies.of_devices, invitation.participants)
    shared = SharedInputs(point.root, jnp.zeros((), int), *point.tried_on)
    accuracy = copy_accuracy_program(point.model)(shared, held)
    tried: jax.Array = among_all({"accuracy": accuracy}, invitation)["accuracy"]
    return tried * (1.0 if point.rules.scheme.personal_models is None else jnp.nan)


def _stacked(server: ServerState, answers: Answers, chosen: np.ndarray, bits: int) -> Tree:
    """What some devices sent, as a tree with a leading axis; zero for those without."""
    like = named_arrays(server.global_params)
    size, kind = flat_form(like)
    rows = np.zeros((chosen.size, size), kind)
    for place, device in enumerate(chosen):
        values = answers[device].values if device in answers else None
        if values is not None:
            rows[place] = received(values, like, bits)
    return tree_of(unflattened(rows, like), server.global_params)


def _flags(count: int, members: Iterable[int]) -> jax.Array:
    return jnp.asarray(np.isin(np.arange(count), list(members)))


def _each(chosen: np.ndarray, answers: Answers, name: str, missing: float) -> jax.Array:
    values = [getattr(answers[device], name) if device in answers else missing for device in chosen]
    return jnp.asarray(np.nan_to_num(np.asarray(values, np.float64), nan=missing))


def _telemetry(answers: Answers, name: str, invitation: Invitation) -> jax.Array:
    nan, size = float("nan"), invitation.participating.size
    values = [answers[device].telemetry.get(name, nan) if device in answers else nan for device in range(size)]
    return jnp.where(invitation.participating, jnp.asarray(values, jnp.float64), nan)
