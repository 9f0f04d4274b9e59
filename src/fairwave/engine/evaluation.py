"""How good models are, for the experimenter: accuracy, loss over all data, and what losses give away."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fairwave.double_precision import double_precision
from fairwave.engine.device_map import Execution
from fairwave.engine.device_programs import copy_accuracy_program, loss_program
from fairwave.engine.device_side import HeldSamples, SharedInputs
from fairwave.engine.devices import Devices, Participants
from fairwave.engine.poisoned_samples import marked_test, trigger_of
from fairwave.engine.programs import Program, program
from fairwave.engine.round_record import Evaluation
from fairwave.engine.server import AccessPoint, part_of
from fairwave.learning.evaluate import accuracy, sample_losses
from fairwave.learning.loss import global_loss
from fairwave.learning.model import Model, Tree
from fairwave.privacy.membership import loss_attack_auc
from fairwave.types import Count, Scalar


class Evaluator:
    """Evaluates the models of a simulated cell, in the rounds in which the scenario asks for it."""

    def __init__(self, access_point: AccessPoint, devices: Devices, execution: Execution) -> None:
        self._access_point, self._devices, self._execution = access_point, devices, execution
        self._model, self._every = access_point.model, access_point.scenario.run.evaluate_every
        with double_precision():
            members = _as_many_as(devices, access_point.test[1].size)
            self._trained_on = part_of(devices.samples, jnp.asarray(members))
            self._marked = marked_test(trigger_of(access_point.scenario.cheating.adversaries), access_point.test)

    def is_due(self, round_index: int) -> bool:
        """Whether the scenario asks for an evaluation of that round."""
        return (round_index + 1) % self._every == 0

    def copies(self, participants: Participants, due: bool) -> Array:
        """Accuracy of the model that each participant uses, on some test samples; NaN in other rounds."""
        shared, own = participants.shared, participants.own
        if not due:
            return jnp.full((), jnp.nan)
        inputs, labels = self._access_point.tried_on
        shared, used = dataclasses.replace(shared, inputs=inputs, labels=labels), own.copy
        if own.personal_model is not None:
            shared, used = shared.with_models(), own.personal_model
        accuracy: Array = copy_accuracy_program(self._model)(shared, used, self._execution)
        return accuracy

    def model(self, params: Tree, round_index: Count, due: bool) -> Evaluation:
        """How good the access point's model is, and what it gives away; NaN in other rounds."""
        if not due:
            unknown = jnp.full((), jnp.nan)
            rmse, marked = (None if absent else unknown for absent in (self._model.numbers is None, not self._marked))
            return Evaluation(unknown, unknown, unknown, rmse, marked)
        point = self._access_point
        return Evaluation(
            test_accuracy=point.test_accuracy(params),
            global_loss=self.loss(params, round_index),
            membership_auc=_membership_auc(self._model, params, self._trained_on, point.test),
            test_rmse=point.test_rmse(params),
            backdoor_success=None if self._marked is None else _accuracy(self._model, params, *self._marked),
        )

    def loss(self, params: Tree, round_index: Count) -> Scalar:
        """Loss of a model over all devices' data, as they hold it in a round."""
        point, devices = self._access_point, self._devices
        shared = SharedInputs(point.root, round_index, *devices.samples)
        everyone = HeldSamples(devices.held(round_index), point.counts)
        losses = loss_program(self._model)((params, shared), everyone, self._execution)
        of_all: Scalar = _loss_of_all(losses, point.counts)
        return of_all


_loss_of_all = Program(global_loss)
_accuracy = Program(accuracy, static_argnums=0)


@program(static_argnums=0)
def _membership_auc(model: Model, params: Tree, members: tuple[Array, Array], others: tuple[Array, Array]) -> Scalar:
    """How well losses tell the samples that were trained on from others."""
    return loss_attack_auc(sample_losses(model, params, *members), sample_losses(model, params, *others))


def _as_many_as(devices: Devices, count: int) -> np.ndarray:
    """Samples that devices hold at first, as many of each as there are test samples to set against them."""
    holdings = devices.holdings
    each = -(-count // len(holdings.counts))
    held = [holdings.of(device)[:each] for device in range(len(holdings.counts))]
    return np.concatenate(held)[:count]
