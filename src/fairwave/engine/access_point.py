"""What the access point does with a round's updates, in one compiled program: aggregate, score, noise, release."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from fairwave.engine.attendance import Attendance
from fairwave.engine.state import State
from fairwave.engine.steps import part_of
from fairwave.keys import Stream, device_key, round_key
from fairwave.learning.model import Tree, flat_rows
from fairwave.policy.access_point import release, released_copy
from fairwave.policy.contribution import Score
from fairwave.privacy.central import central_release, fill_up
from fairwave.privacy.nested import nested
from fairwave.privacy.noise import standard_normal
from fairwave.scenario.privacy import Privacy
from fairwave.schemes.base import Scheme
from fairwave.types import Count, FlagPerDevice, Key, PerDevice, Scalar


class Released(eqx.Module):
    """The access point's side of a round."""

    params: Tree
    """Its model."""
    received: Tree
    """Each device's copy, with a leading device axis."""
    deviation: PerDevice
    score: Score
    served: FlagPerDevice
    """Who is sent its copy."""
    noise_std: PerDevice
    """In each copy."""
    own_std: Scalar
    """In its own model, where that is what proves; else 0."""
    own_sensitivity: Scalar


@functools.partial(jax.jit, static_argnums=(0, 1))
def aggregate_and_release(
    scheme: Scheme,
    privacy: Privacy,
    state: State,
    updates: Tree,
    told_noise_std: Array,
    present: Attendance,
    delivered: FlagPerDevice,
    root: Key,
    number: Count,
    devices: Array,
) -> Released:
    """The next model, and a copy of it for every device.

    A participant whose update was not used gets nothing and keeps its copy and deviation; a device that was not
    asked gets a copy at the noise level of its last deviation. Nobody gets any who is not there to receive it.
    """
    central = privacy.mode == "device"
    inbox = _Inbox(updates, told_noise_std, present.chosen, delivered[present.chosen])
    if central:
        given = _noised_mean(privacy, state, inbox, round_key(root, number, Stream.CENTRAL_NOISE))
    else:
        given = _scored(scheme, privacy, state, inbox)
    flat, unravel = ravel_pytree(given.params)
    wanted = scheme.levels(privacy, given.deviation)
    added = fill_up(given.own_std, wanted) if central else wanted
    recipients = jnp.zeros_like(devices) if scheme.same_for_all and privacy.broadcast else devices
    noise = jax.vmap(lambda index: standard_normal(device_key(root, number, Stream.RELEASE_NOISE, index), flat.shape))(
        recipients
    )
    if privacy.copies == "nested":
        noise = nested(added, noise)
    copies = jax.vmap(unravel)(released_copy(flat, added.astype(flat.dtype), noise))
    served = (delivered | ~present.participating) & present.reachable
    kept = jax.tree.map(
        lambda new, old: jnp.where(served.reshape(-1, *[1] * (new.ndim - 1)), new, old), copies, state.received
    )
    noise_std = jnp.maximum(wanted, given.own_std) if central else wanted
    return Released(
        given.params, kept, given.deviation, given.score, served, noise_std, given.own_std, given.own_sensitivity
    )


class _Inbox(eqx.Module):
    """What participants sent, with a leading participant axis."""

    updates: Tree
    told_noise_std: Array
    chosen: Array
    used: Array


class _Model(eqx.Module):
    params: Tree
    deviation: PerDevice
    score: Score
    own_std: Scalar
    own_sensitivity: Scalar


def _scored(scheme: Scheme, privacy: Privacy, state: State, inbox: _Inbox) -> _Model:
    """Aggregation as the scheme has it, and a deviation for everybody who took part."""
    params = scheme.aggregate(state.global_params, inbox.updates, inbox.used)
    given = release(
        scheme.levels,
        privacy,
        ravel_pytree(params)[0],
        flat_rows(inbox.updates)[0],
        participating=inbox.used,
        last_deviation=state.deviation[inbox.chosen],
        last_score=part_of(state.score, inbox.chosen),
        told_noise_std=inbox.told_noise_std if privacy.mode == "provable" else None,
    )
    deviation = state.deviation.at[inbox.chosen].set(given.deviation)
    score = jax.tree.map(lambda old, new: old.at[inbox.chosen].set(new), state.score, given.score)
    return _Model(params, deviation, score, jnp.zeros(()), jnp.zeros(()))


def _noised_mean(privacy: Privacy, state: State, inbox: _Inbox, key: Key) -> _Model:
    """Clipped mean with noise that stays in the model; nobody is scored, for a score tells about its device."""
    flat, unravel = ravel_pytree(state.global_params)
    new = central_release(
        flat,
        flat_rows(inbox.updates)[0],
        inbox.used,
        key,
        clip_norm=privacy.clip_norm or 0.0,
        noise_multiplier=privacy.noise_multiplier or 0.0,
        source=privacy.noise_source,
    )
    return _Model(unravel(new.params), state.deviation, state.score, new.noise_std, new.sensitivity)
