"""One round: the paper's Algorithm 1, from the invitation to the next state.

`run_round` is the whole of it, as a simulation runs it. `conclude_round` is the access point's part at its end; a
federation, whose devices are elsewhere, calls the same function. Policies compute in double precision, models in
single.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool

from fairwave.engine.invitation import Invitation
from fairwave.engine.late_updates import LateUse, arrivals, weighed
from fairwave.engine.programs import program
from fairwave.engine.round_record import RoundRecord, device_reports, make_record
from fairwave.engine.server_steps import (
    Aggregated,
    RoundAddress,
    ServerRules,
    Upload,
    combine,
    judge,
    overwrite,
    own_share,
    receive,
    release,
    remember,
    score,
)
from fairwave.engine.state import ServerState, State
from fairwave.keys import Stream
from fairwave.learning.model import flat_rows
from fairwave.policy.contribution import Score
from fairwave.policy.repetition import Repetition
from fairwave.policy.training_evidence import Evidence
from fairwave.policy.updates import Updates
from fairwave.types import Count, FlagPerDevice, PerDevice, Scalar

if TYPE_CHECKING:
    from fairwave.engine.cell import SimulatedCell


def run_round(
    cell: SimulatedCell, state: State, round_index: Count, evaluated: bool = True
) -> tuple[State, RoundRecord]:
    """The next state, and a record of what happened; with or without an evaluation of models on test data."""
    access_point, devices = cell.access_point, cell.devices
    server, device_states = state.server, state.devices

    # Before the algorithm: the access point invites devices that are there and have privacy budget left. Whoever is
    # late with an earlier round is waited for, where late updates are used, and not asked.
    invitation = access_point.invite(server, round_index, devices.busy(device_states))

    # 1. Every device meets a channel, where it is in this round.
    channels = devices.draw_channels(round_index)

    # 2. Every device chooses its iterations and its power: from its channel, its own history, its battery, and the
    #    local steps that its privacy budget leaves. Eqs. (30)-(41). One whose battery does not cover its plan sits
    #    out; one in outage stays, with a plan of zero iterations and no energy.
    plans = devices.plan(device_states, invitation, channels, access_point.steps_left(server))
    invitation = plans.accepted(invitation)

    # 3. Participants send the gradient at their copy, and the access point returns the mean, or a robust
    #    aggregate where the scenario names one. Eq. (3). A scheme that exchanges no gradients has no mean.
    participants = devices.gather(device_states, server, invitation, plans, round_index)
    gradients = devices.take_gradients(participants)
    mean = access_point.mean_gradient(server, invitation, plans.arrives, gradients.gradients, round_index)

    # 4. Local training from the received copy. Eqs. (4), (10). 5. The paper's noise on the update, if it is on.
    trained = devices.train(participants, gradients, mean)
    del gradients  # a model's memory for every participant

    # 5. Upload; its time and energy are those of the plan. Eqs. (11)-(16), (23), (24).
    upload = devices.upload(device_states, participants, trained, plans)

    # 6. and 7. The access point judges and aggregates the updates, scores devices, and releases a copy to each:
    #    `conclude_round` below.
    concluded = access_point.conclude(server, upload, invitation, round_index)

    # 8. Devices whose update was scored learn from their deviation what effort is worth. Eqs. (28), (29). The energy of
    #    each plan, zero for whoever did not take part, is taken from the device's battery.
    device_states = devices.after_round(device_states, participants, trained, plans, upload, concluded)

    # For the experimenter alone: what the access point received, the copies that participants started from, and the
    # model after the round.
    if cell.witness is not None:
        cell.witness(RoundAtServer(server, upload, invitation, concluded, round_index))
    reports = device_reports(invitation, trained, cell.evaluator.copies(participants, evaluated))
    evaluation = cell.evaluator.model(concluded.server.global_params, round_index, evaluated)
    record = make_record(invitation, plans, concluded, reports, evaluation)
    return State(concluded.server, device_states), record


class RoundAtServer(NamedTuple):
    """What reached the access point in a round and what it made of it, for an experimenter who looks on."""

    server: ServerState
    """The access point's state before the round ended."""
    upload: Upload
    invitation: Invitation
    concluded: Concluded
    round_index: Count


Witness: TypeAlias = Callable[[RoundAtServer], None]
"""Called at the end of every round; nothing that it does changes the run."""


class Concluded(eqx.Module):
    """How a round ended at the access point."""

    server: ServerState
    """Its next state."""
    served: FlagPerDevice
    """A mask of the devices that were sent a copy of the new model."""
    noise_std: PerDevice
    """Std of the noise in each copy."""
    model_std: Scalar
    """Std of the noise in the access point's own model; 0 where its model has none."""
    model_sensitivity: Scalar
    """By how much one device's update can change that model; 0 where it has no noise."""
    findings: dict[str, Bool[Array, " device"]]
    """A mask of the updates that each defence refused, by the defence's name."""
    late: LateUse | None = None
    """What became of late updates; None where they are never used."""


# One program: what lies between its steps, a model for every participant, never leaves the processor.
@program(static_argnums=0)
def conclude_round(
    rules: ServerRules,
    server: ServerState,
    upload: Upload,
    invitation: Invitation,
    address: RoundAddress,
    samples: tuple[Array, Array] | None,
) -> Concluded:
    """The next model, everybody's deviation, and a copy for every device.

    A participant whose update did not arrive in time is sent nothing: it keeps its copy and its deviation. A device
    that did not take part is sent a copy, with the noise of its last deviation, if it can be reached; where its late
    update is used in this round, of the deviation that follows from it.
    """
    if rules.mode.trusts_access_point:
        new = _with_central_noise(rules, server, upload, invitation, address)
    else:
        new = _from_judged_updates(rules, server, upload, invitation, address, samples)
        if rules.privacy.overwrite_model:  # Algorithm 1 as printed; the scores above are against the true model
            new = dataclasses.replace(new, aggregated=overwrite(rules, new.aggregated, address))
    # 7. A copy for everybody who is served, with noise as the scheme has it for its deviation. Eqs. (25), (27).
    served = (upload.delivered | ~invitation.participating) & invitation.reachable
    released = release(rules, server, new.aggregated, new.deviation, served, address)
    following = ServerState(
        global_params=new.aggregated.params,
        copies=released.copies,
        deviation=new.deviation,
        score=new.score,
        budget_spent=server.budget_spent + upload.charge,
        device_history=remember(rules, server, new.received, new.caught, released.added_std),
        scheme_memory=new.aggregated.memory,
        evidence=new.evidence,
        repetition=new.repetition,
    )
    return Concluded(
        server=following,
        served=served,
        noise_std=released.noise_std,
        model_std=new.aggregated.noise_std,
        model_sensitivity=new.aggregated.sensitivity,
        findings=new.findings,
        late=new.late,
    )


class _NewModel(eqx.Module):
    """The next model, and what the access point thinks of the devices."""

    aggregated: Aggregated
    deviation: PerDevice
    score: Score
    received: Updates | None
    """The updates that arrived; None where nobody is judged."""
    caught: Bool[Array, " participant"] | None
    """A mask of the updates that were refused; None where nobody is judged."""
    findings: dict[str, Bool[Array, " device"]]
    late: LateUse | None = None
    evidence: Evidence | None = None
    repetition: Repetition | None = None


def _from_judged_updates(
    rules: ServerRules,
    server: ServerState,
    upload: Upload,
    invitation: Invitation,
    address: RoundAddress,
    samples: tuple[Array, Array] | None,
) -> _NewModel:
    """The model moved by the updates that stand up to the defences, and a deviation for everybody who sent one.

    A refused update is not used, and its device deviates fully.
    """
    arrived, late = arrivals(upload, invitation, rules.late_decay)
    chosen, nobody = arrived.devices, jnp.zeros(server.deviation.size, bool)
    received, finite = receive(rules, server, arrived, address, samples)
    accepted, verdict = weighed(*judge(rules, received, finite), arrived.weight)
    aggregated = combine(rules, server, accepted, own_share(rules, server, address, samples))  # 6. Eq. (5)
    scored = score(rules, server, received, accepted, verdict, aggregated)  # 7. Eq. (26)
    return _NewModel(
        aggregated=aggregated,
        deviation=scored.deviation,
        score=scored.score,
        received=received,
        caught=received.arrived & verdict.caught,
        findings={name: nobody.at[chosen].set(mask) for name, mask in verdict.findings.items()},
        late=late,
        evidence=scored.evidence,
        repetition=scored.repetition,
    )


def _with_central_noise(
    rules: ServerRules, server: ServerState, upload: Upload, invitation: Invitation, address: RoundAddress
) -> _NewModel:
    """The model moved by the mean of the clipped updates, with noise that stays in it: the mode 'device'.

    There are no defences, no scheme's own way to combine, and no scores: each would tell about one device more than
    the noise allows. Clipping drops what is not finite.
    """
    flat, unravel = ravel_pytree(server.global_params)
    arrived = upload.delivered[invitation.participants]
    key = address.key(Stream.CENTRAL_NOISE)
    noised = rules.mode.noised_model(rules.privacy, flat, flat_rows(upload.updates)[0], arrived, key)
    aggregated = Aggregated(
        params=unravel(noised.params),
        step=jnp.zeros_like(flat),
        updates=None,
        memory=server.scheme_memory,
        noise_std=noised.noise_std,
        sensitivity=noised.sensitivity,
    )
    return _NewModel(
        aggregated=aggregated,
        deviation=server.deviation,
        score=server.score,
        received=None,
        caught=None,
        findings={},
    )
