"""One device of a federation: it knows the scenario, its own data and its own past, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp

from fairwave.engine.battery import capacities_j, least_energy_j
from fairwave.engine.device_side import (
    Outcome,
    Work,
    device_gradient,
    exchanges_gradients,
    local_training,
    train_device,
)
from fairwave.engine.guard import Guard, parameters_of
from fairwave.engine.round_record import FROM_PLAN
from fairwave.engine.steps import capped, heard_with, prepare_upload
from fairwave.errors import SolveError
from fairwave.federate.client_data import OwnSamples
from fairwave.federate.client_state import Diary, Page, on_host
from fairwave.federate.meter import RAPL, Meter
from fairwave.federate.protocol import Answer, NamedArrays, Phase, Status, Task, named_arrays, tree_of
from fairwave.federate.settings import Settings
from fairwave.federate.task_checks import digest_of, is_out_of_turn, is_unforeseen
from fairwave.keys import Stream, device_key, run_key
from fairwave.learning.local import correction_term
from fairwave.learning.loss import Samples, local_loss
from fairwave.learning.model import Model, Tree
from fairwave.policy.device_plan import LARGEST_VIOLATION, Case, DevicePlan
from fairwave.policy.effort_fit import fit_effort, no_memory
from fairwave.policy.fleet import fleet
from fairwave.scenario.mobility_laws import Radial
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.scheme import Scheme
from fairwave.types import Key
from fairwave.wireless.hardware import distances_m
from fairwave.wireless.mobility import motions, moved

_prepare = jax.jit(prepare_upload, static_argnums=(0, 1))
_train = jax.jit(train_device, static_argnums=0)
_loss = jax.jit(local_loss, static_argnums=0)
_gradient = jax.jit(device_gradient, static_argnums=(0, 1))


class DeviceAgent:
    """One device under one scheme and seed."""

    def __init__(
        self,
        scenario: Scenario,
        scheme: Scheme,
        model: Model,
        samples: OwnSamples,
        settings: Settings,
        diary: Path,
        counters: Path = RAPL,
    ) -> None:
        self._scenario, self._scheme, self._model, self._settings = scenario, scheme, model, settings
        self._own, self._index, self._counters = samples, samples.index, counters
        self._program: Callable[..., Outcome] | None = None
        values = DeviceValues(scenario)
        with jax.enable_x64(True):
            everybody = on_host(fleet(scenario, values))
            self._member = jax.tree.map(lambda leaf: leaf[self._index] if leaf.ndim else leaf, everybody)
            charge_j = capacities_j(values, everybody.device)
            self._capacity_j = None if charge_j is None else charge_j[self._index]
            self._way = None
            if isinstance(scenario.cell.mobility, Radial):
                ways = motions(scenario.cell.mobility, distances_m(scenario, values), scenario.run.seed)
                self._way = jax.tree.map(lambda leaf: leaf[self._index], ways)
            self._guard = Guard(scenario, samples.counts, parameters_of(model))
            self._exchanges = exchanges_gradients(scenario, scheme)
            self._training = local_training(scenario, scheme, model, self._guard.protection)
            initial = device_key(run_key(scenario.run.seed), 0, Stream.INITIAL_MODEL, 0)
            self._like = jax.eval_shape(model.init, initial)
            first = no_memory(self._member.effort, scenario.utility.effort_window)
            self._diary = Diary(diary, first, model.init(initial) if scheme.personal else None)

    def answer(self, task: Task) -> Answer:
        """The reply to a task; whatever is sent has been written to the diary first."""
        with jax.enable_x64(True):
            page = self._diary.read()
            if is_unforeseen(task, self._exchanges) or is_out_of_turn(task, page, self._exchanges):
                return Answer(task.round, Status.STALE, examples=self._own.count)
            if task.copy is not None:
                page = self._entered(page, task, task.copy)
            plan, able, arrives = self._plan(page, task.round)
            if not able:
                return self._reply(page, Status.RESTING)
            outage = int(plan.case) == int(Case.OUTAGE)
            status = Status.OUTAGE if outage else Status.SENT if arrives else Status.LOST
            if task.phase is Phase.GRADIENT:
                return self._give_gradient(page, status)
            return self._give_update(page, task, plan, status)

    def _entered(self, page: Page, task: Task, copy: NamedArrays) -> Page:
        """The page of a round: on entering a new one, the device learns from what it was told of the last."""
        if task.round == page.round:
            return page
        memory, utility = page.memory, self._scenario.utility
        if page.round >= 0 and page.round == task.scored_round and self._guard.mode != "device":
            memory = fit_effort(
                utility.effort_fit, memory, jnp.asarray(page.compute_energy_j), jnp.asarray(task.deviation),
                observed=jnp.asarray(True), ridge=utility.effort_ridge,
            )  # fmt: skip
        entered = dataclasses.replace(
            page, memory=on_host(memory), round=task.round, steps=0, steps_left=task.steps_left, copy=copy,
            gradient=None, update=None, question=b"", compute_energy_j=0.0, round_energy_j=0.0, told={},
        )  # fmt: skip
        if entered.budget < 0 and self._guard.mode == "provable" and self._guard.budget is not None:
            entered.budget = int(self._guard.budget[self._index])
        self._diary.write(entered)
        return entered

    def _plan(self, page: Page, number: int) -> tuple[DevicePlan, bool, bool]:
        """What the device does in a round, whether it takes part, and whether its channel carries what it sends."""
        scenario, member = self._scenario, self._member
        if self._way is not None:
            member = heard_with(
                member, moved(member.device, self._way, scenario.radio.path_loss_exponent, jnp.asarray(number))[0]
            )
        asked, left = True, self._steps_left(page)
        if left is not None:
            asked, member = left >= float(member.device.min_iterations), capped(member, jnp.asarray(left))
        left_j = None if self._capacity_j is None else self._capacity_j - (page.used_energy_j - page.round_energy_j)
        root, index = run_key(scenario.run.seed), jnp.asarray(self._index)
        plan, able, arrives = _prepare(
            self._scheme.plan, scenario.radio, root, jnp.asarray(number), member, page.memory, index,
            jnp.asarray(asked), left_j,
        )  # fmt: skip
        if not float(plan.violation) <= LARGEST_VIOLATION:  # written so that NaN fails too
            raise SolveError(f"round {number + 1}, device {self._index}: its optimum breaks a constraint")
        return plan, bool(able), bool(arrives)

    def _steps_left(self, page: Page) -> int | None:
        """As at the round's start, so that trying it again changes no plan: by its own diary and by the ledger."""
        if self._guard.mode != "provable":
            return None
        limits = [page.steps_left] if page.steps_left >= 0 else []
        limits += [page.budget - (page.spent - page.steps)] if page.budget >= 0 else []
        return min(limits, default=None)

    def _is_exhausted(self, page: Page) -> bool:
        """Whether no later round can be covered."""
        device = self._member.device
        if page.budget >= 0 and page.budget - page.spent < float(device.min_iterations):
            return True
        return self._capacity_j is not None and bool(self._capacity_j - page.used_energy_j < least_energy_j(device))

    def _give_gradient(self, page: Page, status: Status) -> Answer:
        if page.gradient is None:
            page.gradient = named_arrays(self._gradient(page))
            self._diary.write(page)
        return self._reply(page, status, page.gradient)

    def _gradient(self, page: Page) -> Tree:
        root, number = self._noise_root(page), jnp.asarray(page.round)
        received = tree_of(page.copy or {}, self._like)
        shared = (root, number, *self._own.labelled)
        own = (received, self._own.at(page.round), jnp.asarray(self._own.count), jnp.asarray(self._index))
        return _gradient(self._model, self._guard.protection, shared, own)[1]

    def _give_update(self, page: Page, task: Task, plan: DevicePlan, status: Status) -> Answer:
        question = digest_of(page.copy, task.mean_gradient if self._exchanges else None)
        if question != page.question:
            if page.budget >= 0 and page.spent + int(plan.local_iterations) > page.budget:
                return self._reply(page, Status.RESTING)  # trying the round again would overspend
            page = self._worked(page, task, plan, question)
            self._diary.write(page)
        return self._reply(page, status, page.update)

    def _worked(self, page: Page, task: Task, plan: DevicePlan, question: bytes) -> Page:
        """The page after local training; its steps are counted before anything leaves the device."""
        received = tree_of(page.copy or {}, self._like)
        correction = None
        if task.mean_gradient is not None and page.gradient is not None:
            own, mean = tree_of(page.gradient, self._like), tree_of(task.mean_gradient, self._like)
            correction = correction_term(own, mean, self._scenario.learning.gradient_weight)
        held, count = self._own.at(page.round), jnp.asarray(self._own.count)
        before = self._loss_of(page.personal if self._scheme.personal else received, page.round)
        work = Work(
            received, correction, held, count, count, plan.local_iterations, jnp.asarray(False),
            jnp.asarray(self._index), page.personal,
        )  # fmt: skip
        shared = (self._noise_root(page), jnp.asarray(page.round), *self._own.labelled)
        if self._program is None:  # compiling is not training: neither its time nor its energy counts
            self._program = _train.lower(self._training, shared, work).compile()
        with Meter(self._counters) as meter:
            outcome: Outcome = jax.tree.map(lambda leaf: leaf.block_until_ready(), self._program(shared, work))
        steps = int(plan.local_iterations) if self._guard.mode == "provable" else 0
        compute_j = float(plan.compute_energy_j)
        measured_j = meter.energy_j if self._settings.energy == "measured" and meter.energy_j is not None else compute_j
        energy_j = measured_j + float(plan.transmit_energy_j)
        told = {
            "told_noise_std": float(outcome.told_noise_std),
            "received_loss": before,
            "loss": float(outcome.loss),
            "update_norm": float(outcome.update_norm),
            "wall_time_s": meter.seconds,
            **{name: float(getattr(plan, name)) for name in FROM_PLAN},
            "compute_energy_j": measured_j,
            "energy_j": energy_j,
        }
        return dataclasses.replace(
            page, update=named_arrays(outcome.update), question=question, compute_energy_j=measured_j,
            spent=page.spent + steps, steps=page.steps + steps, used_energy_j=page.used_energy_j + energy_j,
            round_energy_j=page.round_energy_j + energy_j, told=told,
            personal=None if outcome.personal is None else on_host(outcome.personal),
        )  # fmt: skip

    def _reply(self, page: Page, status: Status, arrays: NamedArrays | None = None) -> Answer:
        told_loss = page.told.get("received_loss", float("nan")) if self._scheme.told_losses else float("nan")
        return Answer(
            round=page.round,
            status=status,
            arrays=arrays if status is Status.SENT else None,
            examples=self._own.count,
            spent=page.spent,
            diary=page.name,
            exhausted=self._is_exhausted(page),
            told_noise_std=page.told.get("told_noise_std", 0.0),
            told_loss=told_loss,
            telemetry=self._telemetry(page.told) if self._settings.telemetry else {},
        )

    def _telemetry(self, told: Mapping[str, float]) -> dict[str, float]:
        """What may be told to the experimenter: where a proof protects records, nothing computed from them.

        A plan depends on them only through messages that were sent before.
        """
        about_data = () if self._guard.mode == "provable" else ("received_loss", "loss", "update_norm")
        return {name: told[name] for name in (*FROM_PLAN, "wall_time_s", *about_data) if name in told}

    def _loss_of(self, params: Tree, number: int) -> float:
        samples = Samples(*self._own.labelled, self._own.at(number), jnp.asarray(self._own.count))
        return float(_loss(self._model, params, samples))

    def _noise_root(self, page: Page) -> Key:
        """Of batches and noise: the scenario's seed is known to all, so that only simulations use it."""
        return run_key(self._scenario.run.seed if self._settings.noise == "simulation" else page.secret)
