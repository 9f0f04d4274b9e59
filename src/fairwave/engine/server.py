"""The access point: what it knows of the devices, and what it does in a round. Simulations and federations share it."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from fairwave.defences.defence import in_use
from fairwave.double_precision import double_precision
from fairwave.engine.device_history import no_history, removed
from fairwave.engine.device_side import MeanGradient, exchanges_gradients, local_training, update_noise
from fairwave.engine.gradient_exchange import SentGradients, exchanged_gradient
from fairwave.engine.invitation import Invitation, draw_participants
from fairwave.engine.model_copies import Copies, StoredCopies, first_copies, first_model
from fairwave.engine.presence import presence
from fairwave.engine.programs import Program, program
from fairwave.engine.reference_training import reference_training, scores_by_training
from fairwave.engine.round import Concluded, conclude_round
from fairwave.engine.server_steps import RoundAddress, ServerRules, Upload
from fairwave.engine.state import ServerState
from fairwave.errors import ScenarioError
from fairwave.keys import run_key
from fairwave.learning.evaluate import accuracy, root_mean_squared_error
from fairwave.learning.model import Model, Tree
from fairwave.learning.models import count_parameters
from fairwave.policy.contribution import no_score
from fairwave.policy.least_iterations import least_iterations
from fairwave.policy.repetition import no_repetition
from fairwave.policy.training_evidence import no_evidence
from fairwave.privacy.fluctuation import sensitivity_factor
from fairwave.privacy.modes.mode import mode_of
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.scheme import Scheme, SchemeSettings
from fairwave.types import Count, FlagPerDevice, Key
from fairwave.wireless.hardware import LEAST_ASKED_BY, distances_m, path_gain
from fairwave.wireless.path_loss import path_loss_db

TRIED_SAMPLES = 1_000
"""Test samples on which every device's copy is tried."""

Labelled = tuple[np.ndarray, np.ndarray]
"""Inputs and their labels."""


class AccessPoint:
    """The access point of one scenario and scheme, whose devices hold a known number of samples each."""

    def __init__(
        self,
        scenario: Scenario,
        scheme: Scheme,
        model: Model,
        test: Labelled,
        counts: np.ndarray,
        *,
        noise_root: Key | None = None,
        stores_copies: bool = False,
        first_model: Tree | None = None,
    ) -> None:
        """`noise_root` is the root of the noise in copies; left out, the scenario's seed, which every device knows.

        `stores_copies` keeps every device's copy as a model, for whoever needs to look at copies. `first_model` has
        the parameters to begin with; left out, they are drawn.
        """
        self.scenario, self.model, self._first_model = scenario, model, first_model
        self.exchanges_gradients = exchanges_gradients(scenario, scheme)
        self._update_std = update_noise(scenario, scheme)
        with double_precision():
            self.root = run_key(scenario.run.seed)
            self._noise_root = self.root if noise_root is None else noise_root
            values = DeviceValues(scenario)
            self.presence = presence(values)
            reference, tries_updates = reference_training(scenario, model), _tries_updates(scenario, scheme)
            kept = _kept_back(scenario, test[1].size) if tries_updates or reference else 0
            self._lay_out_samples(test, kept)
            _check_types(model)
            self.enforced = mode_of(scenario.privacy).enforcement(scenario, counts, count_parameters(model))
            self.counts = jnp.asarray(counts)
            self.devices = jnp.arange(scenario.cell.num_devices)
        settings = SchemeSettings(
            scenario.peers,
            scenario.learning.learning_rate,
            rate_decay=scenario.learning.rate_decay,
            update_weight=local_training(scenario, scheme, model, None).update_weight(),
        )
        self.rules = ServerRules(
            scheme,
            scenario.privacy,
            scenario.defences,
            settings,
            model=model if tries_updates else None,
            reference=reference,
            late_decay=scenario.learning.late_decay,
        )
        self._stores_copies = stores_copies or not self.rules.copies_can_be_made_again
        self._least_charge = least_iterations(scenario, values) if self.rules.mode.counts_steps else None
        self._check_budget()

    def _lay_out_samples(self, test: Labelled, kept: int) -> None:
        inputs, labels = test
        self.test = (jnp.asarray(inputs[kept:]), jnp.asarray(labels[kept:]))
        tried = slice(kept, kept + TRIED_SAMPLES)
        self.tried_on = (jnp.asarray(inputs[tried]), jnp.asarray(labels[tried]))
        self._own_samples = (jnp.asarray(inputs[:kept]), jnp.asarray(labels[:kept])) if kept else None

    @double_precision()
    def start(self) -> ServerState:
        """Before the first round: everybody holds the same model."""
        given, zero = self._first_model, self.scenario.learning.first_model == "zero"
        params = _drawn_model(self.model, zero, self.root) if given is None else given
        server: ServerState = _first_state(params, self.devices, self._stores_copies, self.rules.broadcasts)
        history = no_history(self.rules.defences, server.copies, self.devices.size)
        flat = ravel_pytree(server.global_params)[0]
        memory = self.rules.scheme.start(self.rules.settings, self.devices.size, flat)
        server = dataclasses.replace(server, device_history=history, scheme_memory=memory)
        if not scores_by_training(self.scenario.privacy):
            return server
        number = self.devices.size
        return dataclasses.replace(server, evidence=no_evidence(number), repetition=no_repetition(number, flat.size))

    @double_precision()
    def invite(self, server: ServerState, round_index: Count, busy: FlagPerDevice | None = None) -> Invitation:
        """Who is asked to take part in a round: drawn, there, not removed, and with privacy budget left.

        `busy` is a mask of the devices whose update of an earlier round is late and waited for: they are not asked.
        """
        cell = self.scenario.cell
        drawn: Invitation = draw_participants(
            cell.num_devices,
            cell.participants or cell.num_devices,
            cell.straggler_probability,
            self.root,
            round_index,
            self.presence,
        )
        if busy is not None:
            drawn = drawn.only(~busy)
        if server.device_history is not None:
            drawn = drawn.without(removed(self.rules.defences, server.device_history))
        left = self.budget_left(server)
        return drawn if left is None else drawn.only(left >= jnp.asarray(self.least_charge()))

    def budget_left(self, server: ServerState) -> Array | None:
        """What is left of each device's privacy budget; None without limits."""
        budget = self.enforced.budget
        return None if budget is None else jnp.asarray(budget) - server.budget_spent

    def steps_left(self, server: ServerState) -> Array | None:
        """Local steps that each device's privacy budget leaves; None where steps are not what is limited."""
        return self.budget_left(server) if self.rules.mode.counts_steps else None

    def least_charge(self) -> np.ndarray:
        """What the least participation in a round takes from each budget."""
        least = np.ones(()) if self._least_charge is None else self._least_charge
        return np.broadcast_to(least, self.devices.shape)

    def can_afford(self, server: ServerState) -> np.ndarray:
        """A mask of the devices that have privacy budget left to take part once more."""
        if self.enforced.budget is None:
            return np.ones(self.devices.shape, bool)
        return np.asarray(self.enforced.budget - np.asarray(server.budget_spent) >= self.least_charge())

    def will_be_there(self, next_round: int) -> np.ndarray:
        """A mask of the devices that are there in that round or come later."""
        if self.presence is None:
            return np.ones(self.devices.shape, bool)
        return self.presence.from_then_on(next_round)

    @double_precision()
    def mean_gradient(
        self,
        server: ServerState,
        invitation: Invitation,
        arrives: FlagPerDevice,
        gradients: Tree | None,
        round_index: Count,
    ) -> MeanGradient | None:
        """The mean of the participants' gradients that arrived, or a robust aggregate; None where none are exchanged.

        Defences do not judge gradients. A device whose last update was refused has a noisy copy, and its gradient
        does not count.
        """
        if gradients is None:
            return None
        caught = None if server.device_history is None else server.device_history.caught
        sent = SentGradients(gradients, invitation.participants, arrives, caught)
        address = RoundAddress(self._noise_root, round_index)
        exchanged: MeanGradient = exchanged_gradient(self.rules, server.global_params, sent, address, self._own_samples)
        return exchanged

    @double_precision()
    def conclude(self, server: ServerState, upload: Upload, invitation: Invitation, round_index: Count) -> Concluded:
        """The end of a round: judge, aggregate, score, release."""
        address = RoundAddress(self._noise_root, round_index)
        concluded: Concluded = conclude_round(self.rules, server, upload, invitation, address, self._own_samples)
        return concluded

    @double_precision()
    def test_accuracy(self, params: Tree) -> Array:
        """Accuracy of a model on the test samples."""
        share: Array = _accuracy(self.model, params, *self.test)
        return share

    @double_precision()
    def test_rmse(self, params: Tree) -> Array | None:
        """Root mean squared error of a model on the test samples; None where it does not predict numbers."""
        return None if self.model.numbers is None else _rmse(self.model, params, *self.test)

    @double_precision()
    def update_std(self, round_index: int) -> float:
        """Std of the noise that devices add to their updates in a round, where nothing is proved; 0 for none."""
        spread = self.scenario.privacy.sensitivity_spread
        return self._update_std * float(sensitivity_factor(spread, self.root, jnp.asarray(round_index)))

    def geometry(self) -> dict[str, np.ndarray]:
        """Where the scenario places the devices."""
        values = DeviceValues(self.scenario)
        distance_m = distances_m(self.scenario, values)
        gain = np.broadcast_to(path_gain(self.scenario, values, distance_m), distance_m.shape)
        return {"distance_m": distance_m, "path_loss_db": path_loss_db(gain)}

    def _check_budget(self) -> None:
        budget, needed = self.enforced.budget, self.least_charge()
        if budget is not None and not (budget >= needed).any():
            raise ScenarioError(
                f"privacy.max_epsilon: {self.scenario.privacy.max_epsilon:g} pays for {budget.max()} "
                f"{'local steps' if self.rules.mode.counts_steps else 'rounds'} of a device, and taking part once "
                f"needs {needed.min():g} ({LEAST_ASKED_BY}); raise it, privacy.noise_multiplier, or the samples held"
            )


_accuracy = Program(accuracy, static_argnums=0)
_rmse = Program(root_mean_squared_error, static_argnums=0)


_drawn_model = Program(first_model, static_argnums=(0, 1))


@program(static_argnums=(2, 3))
def _first_state(params: Tree, devices: Array, stores_copies: bool, broadcasts: bool) -> ServerState:
    copies: Copies = (
        StoredCopies(for_each(params, devices)) if stores_copies else first_copies(params, devices, alike=broadcasts)
    )
    return ServerState(
        global_params=params,
        copies=copies,
        deviation=jnp.zeros(devices.shape),
        score=no_score(devices.size),
        budget_spent=jnp.zeros(devices.shape, jnp.int64),
        device_history=None,
        scheme_memory=(),
    )


@program()
def for_each(params: Tree, devices: Array) -> Tree:
    """The same model for every device."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*devices.shape, *leaf.shape)), params)


@program()
def part_of(tree: Tree, devices: Array) -> Tree:
    """Some devices' part of a tree with a leading device axis."""
    return jax.tree.map(lambda leaf: leaf[devices], tree)


def _tries_updates(scenario: Scenario, scheme: Scheme) -> bool:
    """Whether the scheme or a defence asks what each update alone does on samples of the access point's own."""
    return scheme.needs_server_data or any(defence.needs_server_data for defence in in_use(scenario.defences))


def _kept_back(scenario: Scenario, num_test: int) -> int:
    """Test samples that the access point uses itself, so that accuracy is measured on the others."""
    defences = scenario.defences
    if defences.validation_samples >= num_test:
        raise ScenarioError(
            f"defences.validation_samples: {defences.validation_samples} of {num_test} test samples leaves none to "
            "measure accuracy on; lower it"
        )
    return defences.validation_samples


def _check_types(model: Model) -> None:
    """All parameters in single precision or better, without which clipping bounds nothing."""
    for leaf in jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0))):
        if leaf.dtype not in (jnp.float32, jnp.float64):
            raise ScenarioError(f"model: a parameter of type {leaf.dtype}; make all of them float32")
