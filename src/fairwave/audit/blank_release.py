"""One call of the access point's own release code on a blank model."""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jaxtyping import Array

from fairwave.engine.invitation import Invitation
from fairwave.engine.model_copies import StoredCopies
from fairwave.engine.round import Concluded, conclude_round
from fairwave.engine.server import for_each
from fairwave.engine.server_steps import RoundAddress, ServerRules, Upload
from fairwave.engine.state import ServerState
from fairwave.keys import run_key
from fairwave.policy.contribution import no_score
from fairwave.scenario.defence_parameters import Defences
from fairwave.scenario.peers import Peers
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.schemes.scheme import Scheme, SchemeSettings
from fairwave.types import FlagPerDevice


def blank_state(size: int, num_devices: int) -> ServerState:
    """Everybody holds zeros."""
    params, devices = {"w": jnp.zeros(size, jnp.float32)}, jnp.arange(num_devices)
    return ServerState(
        global_params=params,
        copies=StoredCopies(for_each(params, devices)),
        deviation=jnp.zeros(num_devices),
        score=no_score(num_devices),
        budget_spent=jnp.zeros(num_devices, jnp.int64),
        device_history=None,
        scheme_memory=(),
    )


@functools.cache
def _settings() -> SchemeSettings:
    return SchemeSettings(Peers(), 1.0)


def released(
    scheme: Scheme,
    privacy: Privacy,
    server: ServerState,
    updates: Array,
    taking_part: FlagPerDevice,
    address: RoundAddress,
) -> Concluded:
    """What the access point makes of the updates of those who take part."""
    devices = jnp.arange(updates.shape[0])
    everybody, nobody, nothing = jnp.ones(devices.shape, bool), jnp.zeros(devices.shape, bool), jnp.zeros(devices.shape)
    invitation = Invitation(devices, taking_part, nobody, everybody)
    upload = Upload({"w": updates}, nothing, nothing, nothing, taking_part, jnp.zeros(devices.shape, jnp.int64))
    rules = ServerRules(scheme, privacy, Defences(), _settings())
    concluded: Concluded = conclude_round(rules, server, upload, invitation, address, None)
    return concluded


def address_of(seed: int, round_index: int) -> RoundAddress:
    """Where the randomness of an audited round is drawn from."""
    return RoundAddress(run_key(seed), jnp.asarray(round_index))
