"""One call of the access point's own release code on a blank model."""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jaxtyping import Array

from fairwave.engine.access_point import Released, aggregate_and_release
from fairwave.engine.invitation import Attendance
from fairwave.engine.scoring import Practice, Uploads
from fairwave.engine.state import State
from fairwave.engine.steps import first_state
from fairwave.keys import run_key
from fairwave.learning.model import Inputs, Labels, Model, Tree
from fairwave.policy.effort import Effort
from fairwave.scenario.defence_parameters import Defences
from fairwave.scenario.peers import Peers
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.schemes.scheme import Scheme, Terms
from fairwave.types import FlagPerDevice


def blank_state(size: int, num_devices: int) -> State:
    """Everybody holds zeros."""
    model = _blank_model(size)
    effort = Effort(scale=jnp.asarray(0.1), decay_j=jnp.asarray(1.0))
    state: State = first_state(model, 1, run_key(0), effort, jnp.arange(num_devices))
    return state


@functools.cache
def _blank_model(size: int) -> Model:
    def losses(params: Tree, inputs: Inputs, labels: Labels) -> Array:
        return jnp.zeros(labels.shape)

    return Model(init=lambda key: {"w": jnp.zeros(size, jnp.float32)}, losses=losses)


def released(
    scheme: Scheme, privacy: Privacy, state: State, updates: Array, taking_part: FlagPerDevice, seed: int, turn: int
) -> Released:
    """What the access point makes of the updates of those who take part."""
    devices = jnp.arange(updates.shape[0])
    there = Attendance(devices, taking_part, jnp.zeros(devices.shape, bool), jnp.ones(devices.shape, bool))
    given: Released = aggregate_and_release(
        Practice(scheme, privacy, Defences(), Terms(Peers(), 1.0)),
        state,
        Uploads({"w": updates}, *[jnp.zeros(devices.shape)] * 3),
        there,
        taking_part,
        None,
        run_key(seed),
        jnp.asarray(turn),
        devices,
    )
    return given
