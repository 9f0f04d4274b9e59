"""What the access point does with a round's updates, in one compiled program: judge, aggregate, score, release."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Int

from fairwave.engine.device_history import Dossier, Hearing, with_round
from fairwave.engine.invitation import Attendance
from fairwave.engine.model_copies import Copies
from fairwave.engine.release_noise import drawn_noise, past_noise
from fairwave.engine.scoring import Aggregated, Mail, Practice, Uploads, noised_mean, scored
from fairwave.engine.state import Books
from fairwave.keys import Stream, round_key
from fairwave.learning.model import Tree, flat_rows
from fairwave.policy.contribution import Score
from fairwave.policy.deviation import released_copy
from fairwave.privacy.central_release import fill_up
from fairwave.schemes.scheme import Memory, Progress
from fairwave.types import Count, FlagPerDevice, Key, PerDevice, Scalar


class Released(eqx.Module):
    """The access point's side of a round."""

    params: Tree
    """Its model."""
    received: Tree
    """Each device's copy, in the form in which it was kept before."""
    deviation: PerDevice
    score: Score
    served: FlagPerDevice
    """Who is sent its copy."""
    noise_std: PerDevice
    """In each copy."""
    own_std: Scalar
    """In its own model, where that is what proves; else 0."""
    own_sensitivity: Scalar
    findings: Int[Array, " device"]
    """What each device was caught at, a bit per defence; 0 for nothing."""
    dossier: Dossier | None
    memory: Memory


@functools.partial(jax.jit, static_argnums=0)
def aggregate_and_release(
    practice: Practice,
    state: Books,
    uploads: Uploads,
    present: Attendance,
    delivered: FlagPerDevice,
    samples: tuple[Array, Array] | None,
    root: Key,
    number: Count,
    devices: Array,
) -> Released:
    """The next model, and a copy of it for every device.

    A participant whose update did not arrive gets nothing and keeps its copy and deviation; a device that was not
    asked gets a copy at the noise level of its last deviation. Nobody gets any who is not there to receive it.
    """
    scheme, privacy = practice.scheme, practice.privacy
    central = privacy.mode == "device"
    mail = Mail(uploads, present.chosen, delivered[present.chosen])
    if central:
        given = noised_mean(privacy, state, mail, round_key(root, number, Stream.CENTRAL_NOISE))
    else:
        past = past_noise(practice, state, root, number)
        given = scored(practice, state, mail, past, samples)
    wanted = scheme.levels(privacy, given.deviation)
    added = fill_up(given.own_std, wanted) if central else wanted
    served = (delivered | ~present.participating) & present.reachable
    dossier, marks = state.dossier, added
    if isinstance(state.received, Copies):
        received = state.received.after(given.params, added, served, number)
    else:
        received, marks = _sent(practice, given, state.received, added, served, root, number)
    if dossier is not None:
        hearing = Hearing(mail.chosen, mail.arrived, given.caught, given.updates)
        dossier = with_round(practice.defences, dossier, hearing, flat_rows(state.received)[0], marks)
    return Released(
        params=given.params,
        received=received,
        deviation=given.deviation,
        score=given.score,
        served=served,
        noise_std=jnp.maximum(wanted, given.own_std) if central else wanted,
        own_std=given.own_std,
        own_sensitivity=given.own_sensitivity,
        findings=given.findings,
        dossier=dossier,
        memory=given.memory,
    )


def can_be_made_again(practice: Practice) -> bool:
    """Whether copies follow from a model and the noise of their address; defences and rewards look at copies."""
    return practice.scheme.give is None and practice.privacy.copies != "nested" and not practice.defences.use


def _sent(
    practice: Practice, given: Aggregated, held: Tree, added: PerDevice, served: FlagPerDevice, root: Key, number: Count
) -> tuple[Tree, PerDevice]:
    """Every device's copy, with a leading device axis, and the noise in it by which an echo can be told."""
    scheme = practice.scheme
    flat, unravel = ravel_pytree(given.params)
    before = flat_rows(held)[0]
    if scheme.give is None or given.inbox is None:
        noise = drawn_noise(practice, added, root, number, flat.size)
        copies, marks = released_copy(flat, added.astype(flat.dtype), noise), added
    else:
        key = round_key(root, number, Stream.REWARD)
        progress = Progress(step=given.step, model=flat, copies=before)
        copies = scheme.give(practice.terms, given.inbox, progress, given.memory, key).astype(flat.dtype)
        marks = jnp.zeros_like(added)  # what a reward leaves out is no noise that an echo would carry
    return jax.vmap(unravel)(jnp.where(served[:, None], copies, before)), marks
