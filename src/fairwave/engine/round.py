"""One round: the paper's Algorithm 1, from the invitation to the next state.

`run_round` is the whole of it, as a simulation runs it. `conclude_round` is the access point's part at its end; a
federation, whose devices are elsewhere, calls the same function. Policies compute in double precision, models in
single.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool

from fairwave.engine.invitation import Invitation
from fairwave.engine.round_record import RoundRecord, device_reports, make_record
from fairwave.engine.server_steps import (
    Aggregated,
    RoundAddress,
    ServerRules,
    Upload,
    combine,
    judge,
    receive,
    release,
    remember,
    score,
)
from fairwave.engine.state import ServerState, State
from fairwave.keys import Stream
from fairwave.learning.model import flat_rows
from fairwave.policy.contribution import Score
from fairwave.policy.updates import Updates
from fairwave.types import Count, FlagPerDevice, PerDevice, Scalar

if TYPE_CHECKING:
    from fairwave.engine.cell import SimulatedCell


def run_round(cell: SimulatedCell, state: State, round_index: Count) -> tuple[State, RoundRecord]:
    """The next state, and a record of what happened."""
    access_point, devices = cell.access_point, cell.devices
    server, own = state.server, state.devices

    # The access point draws who is to take part; whoever has no privacy budget left is not asked.
    invitation = access_point.invite(server, round_index)
    # 1. Every device meets a channel, where it is in this round.
    channels = devices.draw_channels(round_index)
    # 2. Every device chooses its iterations and its power, from what it alone knows. Eqs. (30)-(41).
    plans = devices.plan(own, invitation, channels, access_point.steps_left(server))
    invitation = plans.accepted(invitation)
    participants = devices.gather(own, server, invitation, plans, round_index)
    # 3. Devices exchange gradients, if the scheme does: the access point returns their mean. Eq. (3).
    gradients = devices.take_gradients(participants)
    mean = access_point.mean_gradient(server, invitation, plans.arrives, gradients.gradients)
    # 4. Local training from the received copy. 5. Noise on the update, if any. Eqs. (4), (10).
    trained = devices.train(participants, gradients, mean)
    del gradients  # a model's memory for every participant
    # Devices upload; time and energy of the round are those of their plans. Eqs. (11)-(16), (23), (24).
    upload = devices.upload(own, participants, trained, plans)
    # 6. and 7. The access point judges, aggregates, scores and releases.
    concluded = access_point.conclude(server, upload, invitation, round_index)
    # 8. Every device learns from its deviation what effort is worth. Eqs. (28), (29).
    own = devices.after_round(own, participants, trained, plans, upload, concluded)

    # For the experimenter alone: how good everybody's model is.
    reports = device_reports(invitation, trained, cell.evaluator.copies(participants))
    evaluation = cell.evaluator.model(concluded.server.global_params, round_index)
    return State(concluded.server, own), make_record(invitation, plans, concluded, reports, evaluation)


class Concluded(eqx.Module):
    """How a round ended at the access point."""

    server: ServerState
    """Its next state."""
    served: FlagPerDevice
    """A mask of the devices that were sent a copy of the new model."""
    noise_std: PerDevice
    """Std of the noise in each copy."""
    model_std: Scalar
    """Std of the noise in the access point's own model, where that is what proves; else 0."""
    model_sensitivity: Scalar
    """By how much one device's update can change that model; else 0."""
    findings: dict[str, Bool[Array, " device"]]
    """A mask of the updates that each defence refused, by the defence's name."""


# One program: what lies between its steps, a model for every participant, never leaves the processor.
@functools.partial(jax.jit, static_argnums=0)
def conclude_round(
    rules: ServerRules,
    server: ServerState,
    upload: Upload,
    invitation: Invitation,
    address: RoundAddress,
    samples: tuple[Array, Array] | None,
) -> Concluded:
    """The next model, everybody's deviation, and a copy for every device.

    A participant whose update did not arrive gets nothing and keeps its copy and deviation; a device that was not
    asked gets a copy at the noise level of its last deviation. Nobody gets any who is not there to receive it.
    """
    served = (upload.delivered | ~invitation.participating) & invitation.reachable
    if rules.mode.trusts_access_point:
        judged = _noised_mean(rules, server, upload, invitation, address)
    else:
        judged = _judged_mean(rules, server, upload, invitation, address, samples)
    # Eqs. (25) and (27): noise by deviation, in every copy.
    released = release(rules, server, judged.new, judged.deviation, served, address)
    following = ServerState(
        global_params=judged.new.params,
        copies=released.copies,
        deviation=judged.deviation,
        score=judged.score,
        budget_spent=server.budget_spent + upload.charge,
        device_history=remember(rules, server, judged.received, judged.caught, released.added_std),
        scheme_memory=judged.new.memory,
    )
    new = judged.new
    return Concluded(following, served, released.noise_std, new.noise_std, new.sensitivity, judged.findings)


class _Judged(eqx.Module):
    """The next model, and what the access point thinks of the devices."""

    new: Aggregated
    deviation: PerDevice
    score: Score
    received: Updates | None
    caught: Bool[Array, " participant"] | None
    findings: dict[str, Bool[Array, " device"]]


def _judged_mean(
    rules: ServerRules,
    server: ServerState,
    upload: Upload,
    invitation: Invitation,
    address: RoundAddress,
    samples: tuple[Array, Array] | None,
) -> _Judged:
    """The updates that stand up to the defences, aggregated, and a deviation for everybody who sent one."""
    chosen, nobody = invitation.participants, jnp.zeros(server.deviation.size, bool)
    received, finite = receive(rules, server, upload, chosen, address, samples)
    accepted, verdict = judge(rules, received, finite)
    new = combine(rules, server, accepted)  # Eq. (5)
    scored = score(rules, server, received, accepted, verdict, new)  # Eq. (26)
    findings = {name: nobody.at[chosen].set(mask) for name, mask in verdict.findings.items()}
    return _Judged(new, scored.deviation, scored.score, received, received.arrived & verdict.caught, findings)


def _noised_mean(
    rules: ServerRules, server: ServerState, upload: Upload, invitation: Invitation, address: RoundAddress
) -> _Judged:
    """The clipped mean with noise that stays in the model, in a mode that proves by it.

    Nobody is judged or scored: either would tell about one device more than the noise allows.
    """
    flat, unravel = ravel_pytree(server.global_params)
    arrived = upload.delivered[invitation.participants]
    key = address.key(Stream.CENTRAL_NOISE)
    new = rules.mode.noised_model(rules.privacy, flat, flat_rows(upload.updates)[0], arrived, key)
    moved = Aggregated(
        unravel(new.params), jnp.zeros_like(flat), None, server.scheme_memory, new.noise_std, new.sensitivity
    )
    return _Judged(moved, server.deviation, server.score, None, None, {})
