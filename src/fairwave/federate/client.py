"""One device of a federation: it knows the scenario, its own data and its own past, and nothing else.

What it computes is `engine.device_side`, the same functions that the simulator maps over its devices.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.engine.battery import capacities_j, least_energy_j
from fairwave.engine.device_side import (
    HeldSamples,
    Limits,
    LocalTraining,
    MeanGradient,
    Prepared,
    SharedInputs,
    Trained,
    TrainingInputs,
    channel_of,
    exchanges_gradients,
    gradient_of,
    local_training,
    place_of,
    prepare,
    sent_in_8_bits,
    train_device,
)
from fairwave.engine.model_copies import first_model
from fairwave.engine.round_record import FROM_PLAN
from fairwave.federate.client_data import OwnSamples
from fairwave.federate.client_state import ClientState, ClientStateFile, on_host
from fairwave.federate.device_account import locked_beside
from fairwave.federate.device_charges import DeviceCharges
from fairwave.federate.device_log import note
from fairwave.federate.meter import RAPL, Meter
from fairwave.federate.protocol import Answer, Phase, Reason, Status, Task, sayable, sayable_round
from fairwave.federate.sent_values import received
from fairwave.federate.settings import Settings
from fairwave.federate.task_checks import agreement_digest, digest_of, is_hostile, is_out_of_turn, is_unforeseen
from fairwave.keys import Stream, run_key
from fairwave.learning.loss import Samples, local_loss
from fairwave.learning.model import Model, Tree
from fairwave.learning.models import count_parameters
from fairwave.learning.named_arrays import NamedArrays, flattened, leaves_by_name, named_arrays, tree_of, unflattened
from fairwave.policy.certify import certify_plans
from fairwave.policy.device_plan import Case, DevicePlan
from fairwave.policy.effort_fit import fit_effort, no_memory
from fairwave.policy.fleet import Fleet, fleet
from fairwave.policy.passes import kept_to_their_data
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.privacy_filter import Budget
from fairwave.private_files import replace_file
from fairwave.scenario.mobility_laws import Radial
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.scheme import Scheme
from fairwave.types import Count, Key
from fairwave.wireless.hardware import distances_m
from fairwave.wireless.mobility import Motion, motions

ACCOUNT = "account"
AGREED, LOCK = "agreement", "lock"
"""Files beside the states of one federation: a digest of what it began with, and the lock of who answers."""
IN_8_BITS = "in_8_bits"
"""The name under which a state keeps what was sent in 8 bits."""
MOST_PROGRAMS = 8
_channel = jax.jit(channel_of, static_argnums=0)
_prepare = jax.jit(prepare, static_argnums=(0, 1))
_train = jax.jit(train_device, static_argnums=0)
_loss = jax.jit(local_loss, static_argnums=0)
_gradient = jax.jit(gradient_of, static_argnums=(0, 1))
_sent_in_8_bits = jax.jit(sent_in_8_bits, static_argnums=0)
_fit_effort = jax.jit(fit_effort, static_argnums=0)


class TrainingPrograms:
    """Local training, compiled; devices of one process whose data have the same shape may share the programs."""

    def __init__(self) -> None:
        self._held = OrderedDict[object, Callable[..., Trained]]()

    def training(self, training: LocalTraining, shared: SharedInputs, own: TrainingInputs) -> Callable[..., Trained]:
        """The program for a training and for inputs of these shapes and types."""
        leaves, structure = jax.tree.flatten((shared, own))
        which = (training, structure, tuple(jax.typeof(leaf) for leaf in leaves))
        if which not in self._held:
            self._held[which] = _train.lower(training, shared, own).compile()
            while len(self._held) > MOST_PROGRAMS:
                self._held.popitem(last=False)
        return self._held[which]


class DeviceClient:
    """One device under one scheme and seed."""

    def __init__(
        self,
        scenario: Scenario,
        scheme: Scheme,
        model: Model,
        samples: OwnSamples,
        settings: Settings,
        state_file: Path,
        *,
        account: Path | None = None,
        own_budget: Budget | None = None,
        counters: Path = RAPL,
        programs: TrainingPrograms | None = None,
    ) -> None:
        """`account` is the folder of the privacy account of all federations; left out, one beside the state file."""
        self._scenario, self._scheme, self._model, self._settings = scenario, scheme, model, settings
        self._own, self._index, self._counters = samples, samples.index, counters
        self._programs = TrainingPrograms() if programs is None else programs
        self._mode = mode_of(scenario.privacy)
        self._exchanges, self._bits = exchanges_gradients(scenario, scheme), scenario.learning.update_bits
        with double_precision():
            self._know_yourself(DeviceValues(scenario))
            self._enforced = self._mode.enforcement(scenario, samples.counts, count_parameters(model))
            self._training = local_training(scenario, scheme, model, self._enforced.protection)
            self._like = jax.eval_shape(model.init, run_key(scenario.run.seed))
            self._layout = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in leaves_by_name(self._like)}
            self._charges = DeviceCharges(
                state_file.parent / ACCOUNT if account is None else account,
                samples,
                scenario.privacy,
                self._enforced,
                seeded_noise=settings.noise == "simulation",
                own_budget=own_budget,
            )
            self.agreement = agreement_digest(scenario, scheme.name, settings.noise)
            first = no_memory(self._member.effort, scenario.utility.effort_window)
            personal = None
            if scheme.personal_models is not None:
                personal = first_model(model, scenario.learning.first_model == "zero", run_key(scenario.run.seed))
            self._file = ClientStateFile(state_file, first, personal)

    def _know_yourself(self, values: DeviceValues) -> None:
        """The device's own hardware, battery and way through the cell, out of the scenario's."""
        scenario = self._scenario
        everybody = on_host(kept_to_their_data(fleet(scenario, values), scenario, self._own.counts))
        self._member: Fleet = jax.tree.map(lambda leaf: leaf[self._index] if leaf.ndim else leaf, everybody)
        charge_j = capacities_j(values, everybody.device, scenario.learning, self._own.counts)
        self._capacity_j = None if charge_j is None else charge_j[self._index]
        self._motion: Motion | None = None
        if isinstance(scenario.cell.mobility, Radial):
            ways = motions(scenario.cell.mobility, distances_m(scenario, values), scenario.run.seed)
            self._motion = jax.tree.map(lambda leaf: leaf[self._index], ways)

    @double_precision()
    def answer(self, task: Task) -> Answer:
        """The reply to a task; whatever is sent has been charged and written to the state file first."""
        if task.agreement != self.agreement:
            return Answer(sayable_round(task.round), Status.FAILED, reason=Reason.OTHER_AGREEMENT)
        if is_hostile(task, self._layout):
            return Answer(sayable_round(task.round), Status.FAILED, reason=Reason.REFUSED_COPY)
        # Two programs that read one state would both train, and each would count only its own steps.
        self._file.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked_beside(self._file.folder / LOCK):
            answer = self._answered(task)
        if not sayable(answer, self._layout, self._bits):
            note(self._file.folder, "an answer outside the vocabulary was held back")
            return Answer(sayable_round(task.round), Status.FAILED, reason=Reason.INTERNAL)
        return answer

    def _answered(self, task: Task) -> Answer:
        agreed = self._file.folder / AGREED
        if agreed.exists() and agreed.read_bytes() != self.agreement:
            return Answer(task.round, Status.FAILED, reason=Reason.CHANGED_AGREEMENT)
        state, copy = self._file.read(), self._named(task.copy)
        if is_unforeseen(task, self._exchanges) or is_out_of_turn(task, copy, state, self._exchanges):
            return Answer(task.round, Status.STALE, examples=self._own.count)
        if copy is not None:
            state = self._entered(state, task, copy)
        prepared = self._prepared(state, jnp.asarray(task.round))
        if not bool(prepared.takes_part):
            return self._reply(state, task, Status.RESTING)
        status = Status.SENT if bool(prepared.arrives) else Status.LOST
        if int(prepared.plan.case) == int(Case.OUTAGE):
            status = Status.OUTAGE
        if task.phase is Phase.GRADIENT:
            return self._give_gradient(state, task, status)
        return self._give_update(state, task, prepared.plan, status)

    def _entered(self, state: ClientState, task: Task, copy: NamedArrays) -> ClientState:
        """The state in a round: on entering a new one, the device learns from the deviation that it received."""
        if task.round == state.round:
            return state
        effort, utility = state.effort, self._scenario.utility
        if state.round >= 0 and state.round == task.scored_round and self._mode.scores_devices:
            effort = _fit_effort(
                utility.effort_fit,
                effort,
                jnp.asarray(state.compute_energy_j),
                jnp.asarray(task.deviation),
                observed=jnp.asarray(True),
                ridge=utility.effort_ridge,
            )
        entered = dataclasses.replace(
            state,
            effort=on_host(effort),
            round=task.round,
            steps_left=self._steps_left(task),
            copy=copy,
            gradient=None,
            update=None,
            question=b"",
            compute_energy_j=0.0,
            round_energy_j=0.0,
            reported={},
        )
        agreed = self._file.folder / AGREED
        if not agreed.exists():
            replace_file(agreed, self.agreement)
        self._file.write(entered)
        return entered

    def _steps_left(self, task: Task) -> int:
        """What the access point's ledger and the device's own account leave it; -1 for no limit."""
        own = self._charges.steps_left()
        limits = [*([] if task.steps_left < 0 else [task.steps_left]), *([] if own is None else [own])]
        return min(limits, default=-1)

    def _prepared(self, state: ClientState, round_index: Count) -> Prepared:
        """What the device does in a round, whether it takes part, and whether its channel carries what it sends."""
        radio, member, index = self._scenario.radio, self._member, jnp.asarray(self._index)
        if self._motion is not None:
            member, _ = place_of(member, self._motion, radio.path_loss_exponent, round_index)
        root = run_key(self._scenario.run.seed)
        channel = _channel(radio, root, round_index, index, member.device.deadline_s)
        prepared: Prepared = _prepare(self._scheme.plan, radio, member, channel, state.effort, self._limits(state))
        certify_plans(prepared.plan, f"round {int(round_index) + 1}, ", first=self._index)
        return prepared

    def _limits(self, state: ClientState) -> Limits:
        """What limits the device, as at the round's start, so that trying it again changes no plan."""
        limited = state.steps_left >= 0 and self._mode.counts_steps
        used_j = state.used_energy_j - state.round_energy_j
        return Limits(
            invited=jnp.asarray(True),
            steps_left=jnp.asarray(state.steps_left) if limited else None,
            charge_left_j=None if self._capacity_j is None else self._capacity_j - used_j,
        )

    def _is_exhausted(self, state: ClientState) -> bool:
        """Whether no later round can be covered."""
        device, left = self._member.device, self._charges.steps_left()
        if left is not None and left < float(device.min_iterations):
            return True
        return self._capacity_j is not None and bool(self._capacity_j - state.used_energy_j < least_energy_j(device))

    def _counted(self, state: ClientState, task: Task) -> ClientState:
        """The state once it has answered a question.

        To be written together with what the answer releases, never before: a backup from between the two would claim to
        have answered this question at no cost.
        """
        if task.ask == state.ask or not self._mode.counts_steps:
            return state
        updates = int(task.phase is Phase.UPDATE)
        return dataclasses.replace(
            state,
            ask=task.ask,
            update_asks=state.update_asks + updates,
            gradient_asks=state.gradient_asks + 1 - updates,
        )

    def _give_gradient(self, state: ClientState, task: Task, status: Status) -> Answer:
        if state.gradient is None:
            leaves = status is not Status.OUTAGE
            if leaves and not self._charges.take_gradient():
                return self._reply(state, task, Status.RESTING)
            own = (tree_of(state.copy or {}, self._like), self._held(state.round), jnp.asarray(self._index))
            gradient = _gradient(self._model, self._enforced.protection, self._shared(state), own)[1]
            state = self._counted(state, task)
            state.gradient = self._as_sent(Stream.GRADIENT_ROUNDING, state, gradient)
            state.gradients += 1 if leaves and self._mode.counts_steps else 0
            self._file.write(state)
        return self._reply(state, task, status, state.gradient)

    def _give_update(self, state: ClientState, task: Task, plan: DevicePlan, status: Status) -> Answer:
        question = digest_of(state.copy, self._named(task.mean_gradient) if self._exchanges else None)
        if question != state.question:
            if status is not Status.OUTAGE and not self._charges.take_steps(int(plan.local_iterations)):
                return self._reply(state, task, Status.RESTING)  # trying the round again would overspend
            state = self._counted(self._trained(state, task, plan, question), task)
            self._file.write(state)
        return self._reply(state, task, status, state.update)

    def _trained(self, state: ClientState, task: Task, plan: DevicePlan, question: bytes) -> ClientState:
        """The state after local training; its steps are counted before anything leaves the device."""
        shared = dataclasses.replace(self._shared(state), mean=self._mean_gradient(task))
        own = self._training_inputs(state, plan)
        before = self._loss_of(own.copy if self._scheme.personal_models is None else state.personal_model, state.round)
        program = self._programs.training(self._training, shared, own)  # compiling is neither training time nor energy
        with Meter(self._counters) as meter:
            trained: Trained = jax.tree.map(lambda leaf: leaf.block_until_ready(), program(shared, own))
        steps = int(plan.local_iterations) if self._mode.counts_steps else 0
        # Time and energy of private training depend on which records were drawn, and the next plan on the energy.
        measures = self._settings.energy == "measured" and not self._mode.counts_steps
        measured_j = meter.energy_j if measures else None
        compute_j = float(plan.compute_energy_j) if measured_j is None else measured_j
        energy_j = compute_j + float(plan.transmit_energy_j)
        reported = {
            "reported_noise_std": float(trained.reported_noise_std),
            "received_loss": before,
            "loss": float(trained.loss),
            "update_norm": float(trained.update_norm),
            "wall_time_s": meter.seconds,
            **{name: float(getattr(plan, name)) for name in FROM_PLAN},
            "compute_energy_j": compute_j,
            "energy_j": energy_j,
        }
        return dataclasses.replace(
            state,
            update=self._as_sent(Stream.UPDATE_ROUNDING, state, trained.update),
            question=question,
            compute_energy_j=compute_j,
            spent=state.spent + steps,
            used_energy_j=state.used_energy_j + energy_j,
            round_energy_j=state.round_energy_j + energy_j,
            reported=reported,
            personal_model=None if trained.personal_model is None else on_host(trained.personal_model),
        )

    def _training_inputs(self, state: ClientState, plan: DevicePlan) -> TrainingInputs:
        return TrainingInputs(
            copy=tree_of(state.copy or {}, self._like),
            own_gradient=self._own_gradient(state.gradient),
            held=self._held(state.round),
            trained_count=jnp.asarray(self._own.count),
            flipped=jnp.asarray(False),
            iterations=plan.local_iterations,
            index=jnp.asarray(self._index),
            personal_model=state.personal_model,
        )

    def _mean_gradient(self, task: Task) -> MeanGradient | None:
        """What the access point sent back in the exchange of gradients; None without an exchange."""
        if not self._exchanges:
            return None
        mean = self._named(task.mean_gradient)
        if mean is None:  # no gradient has arrived there
            nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), self._like)
            return MeanGradient(nothing, jnp.asarray(False))
        return MeanGradient(tree_of(mean, self._like), jnp.asarray(True))

    def _as_sent(self, stream: Stream, state: ClientState, values: Tree) -> NamedArrays:
        """A gradient or an update in the bits in which it is sent, as the state keeps it; the device's last step."""
        if self._bits == 32:
            return named_arrays(values)
        own = (values, jnp.asarray(self._index))
        return {IN_8_BITS: np.asarray(_sent_in_8_bits(stream, self._shared(state), own))}

    def _wire(self, kept: NamedArrays) -> np.ndarray:
        return flattened(kept, self._layout) if self._bits == 32 else kept[IN_8_BITS]

    def _own_gradient(self, kept: NamedArrays | None) -> Tree | None:
        """The gradient that the device has sent, as the access point received it."""
        if kept is None:
            return None
        flat = received(self._wire(kept), self._layout, self._bits)
        return tree_of(unflattened(flat, self._layout), self._like)

    def _named(self, flat: np.ndarray | None) -> NamedArrays | None:
        return None if flat is None else unflattened(flat, self._layout)

    def _shared(self, state: ClientState) -> SharedInputs:
        return SharedInputs(self._noise_root(state), jnp.asarray(state.round), *self._own.labelled)

    def _held(self, round_index: int) -> HeldSamples:
        return HeldSamples(self._own.at(round_index), jnp.asarray(self._own.count))

    def _reply(self, state: ClientState, task: Task, status: Status, arrays: NamedArrays | None = None) -> Answer:
        counted = self._counted(state, task)
        if counted is not state:  # nothing new leaves the device, and that is what the count says
            self._file.write(counted)
            state = counted
        loss = state.reported.get("received_loss", float("nan")) if self._scheme.reports_losses else float("nan")
        return Answer(
            round=state.round,
            status=status,
            values=None if arrays is None or status is not Status.SENT else self._wire(arrays),
            examples=self._own.count,
            spent=state.spent,
            state_name=state.name,
            exhausted=self._is_exhausted(state),
            reported_noise_std=state.reported.get("reported_noise_std", 0.0),
            reported_loss=loss,
            telemetry=self._telemetry(state.reported) if self._settings.telemetry else {},
            gradients=state.gradients,
            update_asks=state.update_asks,
            gradient_asks=state.gradient_asks,
        )

    def _telemetry(self, reported: Mapping[str, float]) -> dict[str, float]:
        """What the experimenter may know: where a proof protects records, nothing computed from them.

        A plan depends on them only through messages that were sent before.
        """
        measured = () if self._mode.counts_steps else ("received_loss", "loss", "update_norm", "wall_time_s")
        return {name: reported[name] for name in (*FROM_PLAN, *measured) if name in reported}

    def _loss_of(self, params: Tree, round_index: int) -> float:
        samples = Samples(*self._own.labelled, self._own.at(round_index), jnp.asarray(self._own.count))
        return float(_loss(self._model, params, samples))

    def _noise_root(self, state: ClientState) -> Key:
        """Root of batches and noise: the scenario's seed is known to all, so that only simulations use it."""
        return run_key(self._scenario.run.seed if self._settings.noise == "simulation" else state.secret)
