"""What a round leaves on record: the record itself, and its values as named arrays for storage and results."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from fairwave.engine.invitation import Invitation
from fairwave.engine.late_updates import LateUse
from fairwave.engine.programs import program
from fairwave.policy.device_plan import Case, DevicePlan
from fairwave.privacy.ledger import ReleaseEvent, RoundMessages
from fairwave.types import FlagPerDevice, PerDevice, Scalar

if TYPE_CHECKING:
    from fairwave.engine.devices import Plans, TrainedDevices
    from fairwave.engine.round import Concluded
    from fairwave.engine.server import AccessPoint

FROM_PLAN = (
    "optimal_iterations",
    "local_iterations",
    "transmit_power_w",
    "uplink_rate_bps",
    "compute_energy_j",
    "transmit_energy_j",
    "energy_j",
    "utility",
)
PER_DEVICE = (
    "loss",
    "received_loss",
    "received_accuracy",
    "update_norm",
    "deviation",
    "noise_std",
    "participating",
    "late",
    "delivered",
    "cheating",
)
LATE_AGE = "late_age"
OF_LATE_UPDATES = (LATE_AGE, "late_weight", "late_dropped")
"""Per device, where late updates are used."""
OF_MOVING_DEVICES = ("distance_now_m",)
"""Per device, where devices move."""
FAULTS = ("gradient_fault", "update_fault")
OF_FEDERATED_DEVICES = (*FAULTS, "wall_time_s", "uplink_bytes", "planned_uplink_bytes")
"""Per device, in federations: why an exchange went without it, how long it trained, the bytes of its answers where its
update arrived, and those that its plan charges for them."""
OF_FEDERATED_ROUNDS = ("gradient_exchange_s", "update_exchange_s", "round_s")
"""Per round, in federations: wall time."""
PER_ROUND = ("global_loss", "test_accuracy", "membership_auc")
TEST_RMSE = "test_rmse"
"""Per round, where the model predicts numbers; the test accuracy is then NaN."""
BACKDOOR_SUCCESS = "backdoor_success"
"""Per round, where the scenario has a backdoor."""
FINDING = "finding/"
"""Opens the names under which findings are stored, one array for each defence that refuses updates."""

Arrays = dict[str, np.ndarray]


class RoundRecord(eqx.Module):
    """What happened in one round."""

    plan: DevicePlan
    """All zeros for a device that was not asked to take part."""
    participating: FlagPerDevice
    """Who was asked to take part, and had budget and charge left to do so."""
    late: FlagPerDevice
    """A mask of the updates that came after the deadline: energy spent, update not used in this round."""
    cheating: FlagPerDevice
    """Who misbehaved, as the scenario has it."""
    delivered: FlagPerDevice
    """A mask of the updates that arrived in time; not so in outage, over a channel that was misjudged, or if late."""
    findings: dict[str, Bool[Array, " device"]]
    """A mask of the updates that each defence refused, by the defence's name; a refused update is not used."""
    served: FlagPerDevice
    """Who was sent a copy of the new model."""
    distance_now_m: PerDevice | None
    """How far away each device was; None where nobody moves."""
    received_loss: PerDevice
    """Loss, on its own data, of the model that the device had: its copy, or its own under a personal scheme.

    NaN for a device that did not take part.
    """
    received_accuracy: PerDevice
    """Accuracy of that model on some test samples; NaN likewise."""
    loss: PerDevice
    """Loss after local training, on its own data; NaN likewise."""
    update_norm: PerDevice
    """Length of the update before noise is added to it; NaN likewise."""
    deviation: PerDevice
    """The deviation factor after the round."""
    noise_std: PerDevice
    """Std of the noise in each device's copy."""
    release_std: Scalar
    """Std of the noise in the access point's own model, where that is what proves; else 0."""
    release_sensitivity: Scalar
    """By how much one device's update can change that model; else 0."""
    global_loss: Scalar
    """Loss of the new true model over all devices' data."""
    test_accuracy: Scalar
    """Accuracy of the new true model on test data."""
    membership_auc: Scalar
    """How well the new true model's losses tell training samples from test samples: 0.5 is guessing, 1 is certain."""
    late_use: LateUse | None = None
    """Late updates of earlier rounds that were found, used or given up in this one; None where they are never used."""
    test_rmse: Scalar | None = None
    """Root mean squared error of the new true model on test data; None where it does not predict numbers."""
    backdoor_success: Scalar | None = None
    """Share of the marked test samples that it takes for the class of the backdoor; None without a backdoor."""


@dataclasses.dataclass(frozen=True)
class DeviceReports:
    """What devices know of their own training, for the experimenter alone; NaN for those that did not take part."""

    received_loss: PerDevice
    received_accuracy: PerDevice
    loss: PerDevice
    update_norm: PerDevice


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How good a model is, and what it gives away; NaN for what is not known."""

    test_accuracy: Scalar
    global_loss: Scalar
    membership_auc: Scalar
    test_rmse: Scalar | None = None
    """None where the model does not predict numbers."""
    backdoor_success: Scalar | None = None
    """None where the scenario has no backdoor."""


def device_reports(invitation: Invitation, trained: TrainedDevices, accuracy: Array) -> DeviceReports:
    """The participants' reports in the order of all devices."""
    values = {
        "received_loss": trained.received_loss,
        "received_accuracy": accuracy,
        "loss": trained.loss,
        "update_norm": trained.update_norm,
    }
    return DeviceReports(**among_all(values, invitation))


@program()
def among_all(values: dict[str, Array], invitation: Invitation) -> dict[str, PerDevice]:
    """Participants' values in the order of all devices; NaN for the others."""
    absent = jnp.full(invitation.participating.shape, jnp.nan)
    placed = {name: absent.at[invitation.participants].set(value) for name, value in values.items()}
    return {name: jnp.where(invitation.participating, value, jnp.nan) for name, value in placed.items()}


def make_record(
    invitation: Invitation,
    plans: Plans,
    concluded: Concluded,
    reports: DeviceReports,
    evaluation: Evaluation,
) -> RoundRecord:
    """The record of a round, simulated or federated."""
    return RoundRecord(
        plan=plans.plan,
        participating=invitation.participating,
        late=plans.late,
        cheating=plans.cheating,
        delivered=plans.delivered,
        findings=concluded.findings,
        served=concluded.served,
        distance_now_m=plans.distance_m,
        received_loss=reports.received_loss,
        received_accuracy=reports.received_accuracy,
        loss=reports.loss,
        update_norm=reports.update_norm,
        deviation=concluded.server.deviation,
        noise_std=concluded.noise_std,
        release_std=concluded.model_std,
        release_sensitivity=concluded.model_sensitivity,
        global_loss=evaluation.global_loss,
        test_accuracy=evaluation.test_accuracy,
        membership_auc=evaluation.membership_auc,
        late_use=concluded.late,
        test_rmse=evaluation.test_rmse,
        backdoor_success=evaluation.backdoor_success,
    )


def ledger_events(
    access_point: AccessPoint,
    record: RoundRecord,
    round_index: int,
    charged: np.ndarray | None = None,
    gradients: np.ndarray | None = None,
) -> list[ReleaseEvent]:
    """What one round puts on the ledger.

    An update that came late, or over a channel that was misjudged, has left the device all the same, and is charged in
    the round in which it was sent; using it in a later one is computed from that message. `charged` is the
    number of private steps to put down for each device, `gradients` that of gradients; left out, those of its plan.
    """
    flags = functools.partial(np.flatnonzero)
    asked, served = np.asarray(record.participating), flags(np.asarray(record.served))
    steps = np.asarray(record.plan.local_iterations if charged is None else charged)
    used = np.asarray(record.delivered)
    if record.late_use is not None:
        used = used | (np.asarray(record.late_use.age) > 0)
    messages = RoundMessages(
        invited=flags(asked),
        sent=flags(asked & (np.asarray(record.plan.case) != int(Case.OUTAGE))),
        delivered=flags(used),
        served=served,
        copy_std=np.asarray(record.noise_std)[served],
        update_std=access_point.update_std(round_index),
        steps=steps,
        exchanged_gradients=access_point.exchanges_gradients,
        reported_losses=access_point.rules.scheme.reports_losses,
        gradients=gradients,
        model_std=float(record.release_std),
        model_sensitivity=float(record.release_sensitivity),
    )
    return access_point.rules.mode.events(access_point.enforced, messages)


def mean_of_participants(values: PerDevice | np.ndarray) -> float:
    """Mean over the devices that took part, whose values alone are numbers; NaN where nobody did."""
    known = np.asarray(values)
    return float("nan") if np.isnan(known).all() else float(np.nanmean(known))


def as_arrays(record: RoundRecord) -> Arrays:
    """Every value of the record under the name it has in storage."""
    arrays = {name: np.asarray(getattr(record.plan, name)) for name in FROM_PLAN}
    arrays |= {name: np.asarray(getattr(record, name)) for name in (*PER_DEVICE, *PER_ROUND)}
    if record.distance_now_m is not None:
        arrays |= {name: np.asarray(getattr(record, name)) for name in OF_MOVING_DEVICES}
    if record.test_rmse is not None:
        arrays[TEST_RMSE] = np.asarray(record.test_rmse)
    if record.backdoor_success is not None:
        arrays[BACKDOOR_SUCCESS] = np.asarray(record.backdoor_success)
    if record.late_use is not None:
        named = zip(OF_LATE_UPDATES, ("age", "weight", "dropped"), strict=True)
        arrays |= {name: np.asarray(getattr(record.late_use, field)) for name, field in named}
    arrays["outage"] = arrays["participating"] & (np.asarray(record.plan.case) == int(Case.OUTAGE))
    return arrays | {FINDING + name: np.asarray(mask) for name, mask in record.findings.items()}
