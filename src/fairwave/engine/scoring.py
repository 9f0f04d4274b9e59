"""From a round's updates to the next model and everybody's deviation: judged, combined, compared."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from fairwave.defences.defence import Evidence
from fairwave.defences.judgement import Judgement, judge
from fairwave.engine.state import Books
from fairwave.engine.steps import part_of
from fairwave.learning.aggregate import aggregate
from fairwave.learning.evaluate import accuracy, sample_losses
from fairwave.learning.model import Model, Tree, flat_rows
from fairwave.policy.contribution import Score
from fairwave.policy.deviation import release
from fairwave.privacy.central_release import central_release
from fairwave.scenario.defence_parameters import Defences
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.schemes.scheme import Inbox, Memory, Scheme, Terms
from fairwave.types import FlagPerDevice, Key, Params, PerDevice, Scalar, UpdatePerDevice


@dataclasses.dataclass(frozen=True)
class Practice:
    """What the access point's compiled program depends on."""

    scheme: Scheme
    privacy: Privacy
    defences: Defences
    terms: Terms
    model: Model | None = None
    """To try updates on samples of its own; None if it has none."""


class Uploads(eqx.Module):
    """What participants sent, with a leading participant axis."""

    updates: Tree
    told_noise_std: Array
    told_loss: Array
    held: Array
    """Samples that each has."""


class Mail(eqx.Module):
    """The uploads, from whom they are, and which of them arrived."""

    uploads: Uploads
    chosen: Array
    arrived: Array


class Aggregated(eqx.Module):
    """What the access point has made of the updates."""

    params: Tree
    deviation: PerDevice
    score: Score
    own_std: Scalar
    own_sensitivity: Scalar
    findings: Int[Array, " device"]
    caught: Bool[Array, " participant"]
    memory: Memory
    updates: UpdatePerDevice
    """As they came in, with a leading participant axis; zero where they were not finite."""
    step: Params
    inbox: Inbox | None


def scored(
    practice: Practice,
    state: Books,
    mail: Mail,
    copy_noise: Float[Array, "past device param"] | None,
    samples: tuple[Array, Array] | None,
) -> Aggregated:
    """Aggregation as the scheme has it, and a deviation for everybody who took part."""
    scheme, privacy = practice.scheme, practice.privacy
    rows, unravel = flat_rows(mail.uploads.updates)
    finite = jnp.all(jnp.isfinite(rows), axis=1)
    rows = jnp.where(finite[:, None], rows, 0.0)
    flat = ravel_pytree(state.global_params)[0]
    gain, hits = _tried(practice.model, state.global_params, flat, rows, samples)
    judgement = _judged(practice, state, mail, rows, gain, copy_noise)
    caught = mail.arrived & (judgement.caught | ~finite)
    used = mail.arrived & ~caught
    params = aggregate(state.global_params, jax.vmap(unravel)(judgement.updates), used)
    memory, step, inbox = state.scheme_memory, jnp.zeros_like(flat), None
    if scheme.combine is not None:
        inbox = _of_all(state, mail, judgement.updates, used, hits)
        step, memory = scheme.combine(practice.terms, inbox, memory)
        params = ravel_pytree(state.global_params)[1](flat + step.astype(flat.dtype))
    given = release(
        scheme.levels,
        privacy,
        ravel_pytree(params)[0],
        judgement.compared,
        participating=mail.arrived,
        last_deviation=state.deviation[mail.chosen],
        last_score=part_of(state.score, mail.chosen),
        told_noise_std=judgement.told_noise_std if privacy.mode == "provable" else None,
        caught=caught,
        credit=judgement.credit,
        yardstick=judgement.yardstick,
    )
    deviation = state.deviation.at[mail.chosen].set(given.deviation)
    score = jax.tree.map(lambda old, new: old.at[mail.chosen].set(new), state.score, given.score)
    findings = jnp.zeros(deviation.shape, jnp.int32).at[mail.chosen].set(judgement.findings)
    nothing = jnp.zeros(())
    return Aggregated(params, deviation, score, nothing, nothing, findings, caught, memory, rows, step, inbox)


def _judged(
    practice: Practice,
    state: Books,
    mail: Mail,
    rows: UpdatePerDevice,
    gain: PerDevice,
    copy_noise: Float[Array, "past device param"] | None,
) -> Judgement:
    history = None if state.dossier is None else state.dossier.history
    blank = jnp.zeros_like(rows)  # nobody looks at it who did not ask for more
    before = None if history is None else history.copies_before
    evidence = Evidence(
        updates=rows,
        arrived=mail.arrived,
        told_noise_std=mail.uploads.told_noise_std,
        model=ravel_pytree(state.global_params)[0],
        copy_noise=blank[None] if copy_noise is None else copy_noise[:, mail.chosen],
        copy_change=blank if before is None else (flat_rows(state.received)[0] - before)[mail.chosen],
        last_sketches=blank[None, :, :1] if history is None else history.sketches[:, mail.chosen],
        gain=gain,
    )
    return judge(practice.defences, evidence)


def _tried(
    model: Model | None, params: Tree, flat: Params, rows: UpdatePerDevice, samples: tuple[Array, Array] | None
) -> tuple[PerDevice, PerDevice]:
    """What each update alone does to the model on the access point's own samples: fall of the loss, and accuracy."""
    if model is None or samples is None:
        unknown = jnp.full(rows.shape[0], jnp.nan)
        return unknown, unknown
    unravel = ravel_pytree(params)[1]
    before = jnp.mean(sample_losses(model, params, *samples))

    def one(update: Params) -> tuple[Scalar, Scalar]:
        moved = unravel(flat + update)
        return before - jnp.mean(sample_losses(model, moved, *samples)), accuracy(model, moved, *samples)

    gain, hits = jax.lax.map(one, rows)
    return gain, hits


def _of_all(
    state: Books, mail: Mail, updates: UpdatePerDevice, used: FlagPerDevice, hits: Float[Array, " participant"]
) -> Inbox:
    """What participants sent, in the order of all devices."""
    each = jnp.zeros(state.deviation.shape)
    blank = jnp.zeros((state.deviation.size, updates.shape[1]), updates.dtype)
    return Inbox(
        updates=blank.at[mail.chosen].set(jnp.where(used[:, None], updates, 0.0)),
        used=jnp.zeros(state.deviation.shape, bool).at[mail.chosen].set(used),
        told_loss=each.at[mail.chosen].set(jnp.where(used, mail.uploads.told_loss, 0.0)),
        accuracy=jnp.full(state.deviation.shape, jnp.nan).at[mail.chosen].set(hits),
        held=each.at[mail.chosen].set(jnp.where(used, mail.uploads.held, 0.0)),
    )


def noised_mean(privacy: Privacy, state: Books, mail: Mail, key: Key) -> Aggregated:
    """Clipped mean with noise that stays in the model; nobody is scored, for a score tells about its device."""
    flat, unravel = ravel_pytree(state.global_params)
    rows = flat_rows(mail.uploads.updates)[0]
    new = central_release(
        flat,
        rows,
        mail.arrived,
        key,
        clip_norm=privacy.clip_norm or 0.0,
        noise_multiplier=privacy.noise_multiplier or 0.0,
        source=privacy.noise_source,
    )
    return Aggregated(
        params=unravel(new.params),
        deviation=state.deviation,
        score=state.score,
        own_std=new.noise_std,
        own_sensitivity=new.sensitivity,
        findings=jnp.zeros(state.deviation.shape, jnp.int32),
        caught=jnp.zeros(mail.arrived.shape, bool),
        memory=state.scheme_memory,
        updates=rows,
        step=jnp.zeros_like(flat),
        inbox=None,
    )
