"""The access point of a federation: what it asks, and what it makes of the answers. It never learns a device's energy.

Telemetry, where devices send it, goes into the record for the experimenter, and nowhere else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.engine.access_point import aggregate_and_release
from fairwave.engine.device_programs import Common, accuracy_map
from fairwave.engine.invitation import Attendance, only
from fairwave.engine.round_record import FROM_PLAN
from fairwave.engine.scoring import Uploads
from fairwave.engine.state import Books, RoundRecord
from fairwave.engine.station import Station
from fairwave.engine.steps import among_all, first_books, part_of, test_accuracy
from fairwave.federate.protocol import Answer, NamedArrays, Phase, Status, named_arrays, tree_of
from fairwave.learning.aggregate import mean_gradient
from fairwave.learning.model import Model, Tree
from fairwave.policy.device_plan import Case, DevicePlan
from fairwave.policy.problem import most_iterations_in_time
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.scheme import Scheme
from fairwave.types import Key
from fairwave.wireless.hardware import devices, distances_m

Answers = Mapping[int, Answer]
"""By device: only those that were found to be good."""

_mean_gradient = jax.jit(mean_gradient)


class AccessPoint(Station):
    """Of one scheme and seed."""

    def __init__(
        self,
        scenario: Scenario,
        scheme: Scheme,
        model: Model,
        test: tuple[np.ndarray, np.ndarray],
        counts: np.ndarray,
        secret: Key | None = None,
    ) -> None:
        """`secret` is the root of the noise in copies; left out, the scenario's seed, which every device knows."""
        super().__init__(scenario, scheme, model, test, counts)
        self._noise_root = self.root if secret is None else secret
        with jax.enable_x64(True):
            values = DeviceValues(scenario)
            self._most_iterations = most_iterations_in_time(devices(scenario, values, distances_m(scenario, values)))

    def start(self) -> Books:
        """Before the first round: everybody holds the same random model."""
        with jax.enable_x64(True):
            books: Books = first_books(self.model, self.root, self.devices)
            return self.equipped(books)

    def participants(self, books: Books, number: int) -> Attendance:
        """Who is asked in a round, if it can be reached: nobody whose budget is spent by the ledger."""
        with jax.enable_x64(True):
            present = self.invited(books, jnp.asarray(number))
            left = self.left(books)
            return present if left is None else only(present, jnp.asarray(left >= self.needed()))

    def left(self, books: Books) -> np.ndarray | None:
        """Of each budget, by the ledger; None without limits."""
        return None if self.guard.budget is None else self.guard.budget - np.asarray(books.spent)

    def steps_per_try(self) -> tuple[np.ndarray, np.ndarray]:
        """The fewest and the most local steps that each device can do when it is asked once."""
        most = np.broadcast_to(np.asarray(self._most_iterations), self.devices.shape)
        return self.needed().astype(np.int64), most.astype(np.int64)

    def first_phase(self) -> Phase:
        """The exchange with which a round begins."""
        return Phase.GRADIENT if self.exchanges else Phase.UPDATE

    def copies(self, books: Books, devices: Sequence[int]) -> dict[int, NamedArrays]:
        """The copies that devices begin a round with."""
        rows = named_arrays(books.received)
        return {device: {name: rows[name][device] for name in rows} for device in devices}

    def mean_gradient(self, books: Books, gradients: Answers) -> NamedArrays | None:
        """Over the devices whose gradient arrived and who were not caught at something; None if there are none."""
        caught = np.zeros(self.devices.shape, bool) if books.dossier is None else np.asarray(books.dossier.caught)
        trusted = {k: a for k, a in gradients.items() if a.status is Status.SENT and not caught[k]}
        if not trusted:
            return None
        with jax.enable_x64(True):
            stacked, arrived = self._stacked(books, trusted, np.arange(self.devices.size))
            return named_arrays(_mean_gradient(stacked, arrived))

    def conclude(
        self,
        books: Books,
        number: int,
        present: Attendance,
        asked: Iterable[int],
        answers: Answers,
        charged: np.ndarray | None = None,
    ) -> tuple[Books, RoundRecord]:
        """The round's end, from the updates: the next model, everybody's deviation and copy, and the record.

        A device that was asked, in this try of the round or an earlier one, and whose update is missing or no good
        keeps its copy and deviation, as in outage; one that was not connected, or rests, is treated as not invited.
        `charged` is what each budget is charged; left out, a round for everybody whose update is used.
        """
        with jax.enable_x64(True):
            resting = {k for k, answer in answers.items() if answer.status is Status.RESTING}
            taking_part = _flags(self.devices.size, set(asked) - resting)
            present = dataclasses.replace(
                present,
                participating=present.participating & taking_part,
                slow=present.slow & _flags(self.devices.size, [k for k in answers if k not in resting]),
            )
            sent = {k: answer for k, answer in answers.items() if answer.status is Status.SENT}
            chosen = np.asarray(present.chosen)
            updates, _ = self._stacked(books, sent, chosen)
            delivered = _flags(self.devices.size, sent) & present.participating & ~present.slow
            uploads = Uploads(
                updates,
                _each(chosen, sent, "told_noise_std", 0.0),
                _each(chosen, sent, "told_loss", 0.0),
                self.counts[present.chosen],
            )
            after = aggregate_and_release(
                self.practice, books, uploads, present, delivered, self.own_samples, self._noise_root,
                jnp.asarray(number), self.devices,
            )  # fmt: skip
            held = part_of(books.received, present.chosen)
            common = Common(self._noise_root, jnp.asarray(number), *self.tried_on)
            tried = among_all({"received_accuracy": accuracy_map(self.model)(common, held)}, present)
            plan = _told_plan(answers, present)
            charge = delivered.astype(jnp.int64) if charged is None else jnp.asarray(charged)
            nobody = jnp.zeros(self.devices.shape, bool)
            unknown = jnp.full((), jnp.nan)
            record = RoundRecord(
                plan=plan,
                participating=present.participating,
                late=present.slow & (plan.case != int(Case.OUTAGE)),
                cheating=nobody,
                delivered=delivered,
                findings=after.findings,
                served=after.served,
                distance_now_m=None,
                received_loss=_telemetry(answers, "received_loss", present),
                received_accuracy=tried["received_accuracy"] * (jnp.nan if self.scheme.personal else 1.0),
                loss=_telemetry(answers, "loss", present),
                update_norm=_telemetry(answers, "update_norm", present),
                deviation=after.deviation,
                noise_std=after.noise_std,
                release_std=after.own_std,
                release_sensitivity=after.own_sensitivity,
                global_loss=unknown,
                test_accuracy=test_accuracy(self.model, after.params, *self.test),
                membership_auc=unknown,
            )
            following = Books(
                after.params,
                after.received,
                after.deviation,
                after.score,
                books.spent + charge,
                after.dossier,
                after.memory,
            )
            return following, record

    def _stacked(self, books: Books, answers: Answers, chosen: np.ndarray) -> tuple[Tree, jax.Array]:
        """Arrays of some devices with a leading axis, zero for those without, and whose they are."""
        like = named_arrays(books.global_params)
        rows = {name: np.zeros((chosen.size, *array.shape), array.dtype) for name, array in like.items()}
        for place, device in enumerate(chosen):
            for name, array in (answers[device].arrays or {}).items() if device in answers else ():
                rows[name][place] = array
        return tree_of(rows, books.global_params), jnp.asarray(np.isin(chosen, list(answers)))


def _flags(count: int, members: Iterable[int]) -> jax.Array:
    return jnp.asarray(np.isin(np.arange(count), list(members)))


def _each(chosen: np.ndarray, answers: Answers, name: str, missing: float) -> jax.Array:
    told = [getattr(answers[device], name) if device in answers else missing for device in chosen]
    return jnp.asarray(np.nan_to_num(np.asarray(told, np.float64), nan=missing))


def _telemetry(answers: Answers, name: str, present: Attendance, missing: float = float("nan")) -> jax.Array:
    size = present.participating.size
    told = [answers[k].telemetry.get(name, missing) if k in answers else missing for k in range(size)]
    return jnp.where(present.participating, jnp.asarray(told, jnp.float64), missing)


def _told_plan(answers: Answers, present: Attendance) -> DevicePlan:
    """The participants' plans as far as they tell them; zero for the others, as in a simulation."""
    size = present.participating.size
    names = [field.name for field in dataclasses.fields(DevicePlan)]
    told = {name: jnp.zeros(size) for name in names}
    told |= {name: jnp.where(present.participating, _telemetry(answers, name, present), 0.0) for name in FROM_PLAN}
    status = {k: answer.status for k, answer in answers.items()}
    silent = [k for k in range(size) if status.get(k) is Status.OUTAGE]
    outage = _flags(size, silent)
    plan = {name: jnp.where(outage, 0.0, values) for name, values in told.items()}
    plan["case"] = jnp.where(outage, int(Case.OUTAGE), int(Case.INTERIOR))
    return DevicePlan(**plan)
