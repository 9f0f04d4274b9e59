"""The game that a round's devices play: what a coalition's updates alone would have made of the model.

It is for the experimenter alone, on test samples that the access point never has: no rule could score devices so.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from fairwave.double_precision import training_precision
from fairwave.engine.invitation import Invitation
from fairwave.engine.late_updates import arrivals
from fairwave.engine.round import RoundAtServer
from fairwave.engine.server import AccessPoint
from fairwave.engine.server_steps import RoundAddress, ServerRules, Upload, judge, receive
from fairwave.engine.state import ServerState
from fairwave.learning.evaluate import accuracy, sample_losses
from fairwave.learning.model import Model, Tree
from fairwave.policy.performance_fairness import shares
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Scalar

Measure = Literal["loss", "accuracy"]
"""What a coalition's worth is measured by: the fall of the test loss, or the rise of the test accuracy."""
Samples = tuple[Array, Array]
"""Inputs and their labels."""

AT_A_TIME, TOGETHER = 128, 8
"""Coalitions of one call, and those of them whose models are computed together."""


@dataclasses.dataclass(frozen=True)
class RoundGame:
    """What each coalition of a round's devices would have been worth, as a function of masks, coalition by device."""

    model: Model
    params: Tree
    """The access point's model before the round."""
    updates: Updates
    """The updates of all devices; one that sent none is worth nothing to any coalition."""
    samples: Samples
    """Test samples that the worth is measured on."""
    measure: Measure = "loss"

    def __call__(self, coalitions: np.ndarray) -> np.ndarray:
        """By how much the mean of a coalition's updates makes the model better; 0 for a coalition without any."""
        count, num_devices = coalitions.shape
        padded = np.zeros((-(-count // AT_A_TIME) * AT_A_TIME, num_devices), bool)
        padded[:count] = coalitions
        with training_precision():
            before = self._quality(np.zeros((AT_A_TIME, num_devices), bool))[0]
            parts = [self._quality(part) for part in padded.reshape(-1, AT_A_TIME, num_devices)]
        return np.asarray(np.concatenate(parts)[:count] - before)

    def _quality(self, coalitions: np.ndarray) -> np.ndarray:
        masks = jnp.asarray(coalitions)
        moved = _moved_models(self.model, self.measure, self.params, self.updates, masks, self.samples)
        return np.asarray(moved, np.float64)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _moved_models(
    model: Model,
    measure: Measure,
    params: Tree,
    updates: Updates,
    coalitions: Bool[Array, "coalition device"],
    samples: Samples,
) -> Float[Array, " coalition"]:
    """How good the model is once it is moved by the mean of each coalition's updates: the more the better."""
    flat, unravel = ravel_pytree(params)

    def one(members: Bool[Array, " device"]) -> Scalar:
        weights = shares((members & updates.arrived) * 1.0).astype(flat.dtype)
        moved = unravel(flat + weights @ updates.rows)
        if measure == "accuracy":
            return accuracy(model, moved, *samples)
        return -jnp.mean(sample_losses(model, moved, *samples))

    quality: Array = jax.lax.map(one, coalitions, batch_size=TOGETHER)
    return quality


def received_updates(point: AccessPoint, seen: RoundAtServer, own_samples: Samples) -> Updates:
    """A round's updates in the order of all devices, as they reach an access point that has no defences.

    Each is tried on the samples that the access point is given for that, as schemes ask for that judge by them.
    """
    rules = dataclasses.replace(point.rules, model=point.model, defences=Defences())
    address = RoundAddress(point.root, seen.round_index)
    with training_precision():
        found: Updates = _received(rules, seen.server, seen.upload, seen.invitation, address, own_samples)
    return found


@functools.partial(jax.jit, static_argnums=0)
def _received(
    rules: ServerRules,
    server: ServerState,
    upload: Upload,
    invitation: Invitation,
    address: RoundAddress,
    own_samples: Samples,
) -> Updates:
    arrived, _ = arrivals(upload, invitation, rules.late_decay)
    updates, _ = judge(rules, *receive(rules, server, arrived, address, own_samples))
    return updates.of_all_devices(server.deviation.size, updates.arrived)
