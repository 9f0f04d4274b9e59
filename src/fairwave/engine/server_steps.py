"""The steps of the access point at the end of a round, each a function from records to a record.

`engine.round.conclude_round` calls them in their order, in one compiled program.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from fairwave.aggregators.aggregator import Aggregator, OwnShare
from fairwave.defences.defence import PAST, Verdict, first_verdict, in_use
from fairwave.engine.device_history import DeviceHistory, after_round
from fairwave.engine.late_updates import Arrivals, LateUpload
from fairwave.engine.model_copies import Copies, copy_noise
from fairwave.engine.reference_training import (
    ReferenceTraining,
    reference_directions,
    reference_update,
    scores_by_training,
)
from fairwave.engine.state import ServerState
from fairwave.extensions import AGGREGATORS
from fairwave.keys import Stream, round_key
from fairwave.learning.aggregate import aggregate
from fairwave.learning.evaluate import accuracy, sample_losses
from fairwave.learning.model import Model, Tree, flat_rows
from fairwave.policy.contribution import Score
from fairwave.policy.deviation import released_copy, score_devices
from fairwave.policy.repetition import Repetition, after_updates, repeats
from fairwave.policy.training_evidence import (
    LATE_STEPS,
    Evidence,
    RoundEvidence,
    evidence_deviation,
    pooled,
    round_evidence,
)
from fairwave.policy.updates import ServerKnowledge, Updates
from fairwave.privacy.central_release import fill_up
from fairwave.privacy.fluctuation import sensitivity_factor
from fairwave.privacy.modes.mode import PrivacyMode, mode_of
from fairwave.privacy.nested import nested
from fairwave.privacy.noise import standard_normal
from fairwave.scenario.defence_parameters import Defences
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings, ServerStep
from fairwave.types import Count, FlagPerDevice, Key, Params, PerDevice, Scalar, UpdatePerDevice

NOT_FINITE = "not_finite"
"""Finding for an update with values that are not finite: it is never used, whichever defences are in use."""


@dataclasses.dataclass(frozen=True)
class ServerRules:
    """What the access point's compiled program depends on."""

    scheme: Scheme
    privacy: Privacy
    defences: Defences
    settings: SchemeSettings
    model: Model | None = None
    """To try updates on samples of its own; None if nothing asks for that."""
    reference: ReferenceTraining | None = None
    """How it trains on samples of its own; None if neither its aggregator nor its scores ask for that."""
    late_decay: float = 0.0
    """How fast the weight of late updates falls with their age, where they are used."""

    @property
    def mode(self) -> PrivacyMode:
        """The privacy mode."""
        return mode_of(self.privacy)

    @property
    def broadcasts(self) -> bool:
        """Whether everybody's copy is the same."""
        return self.scheme.same_noise_for_all and self.privacy.broadcast

    @property
    def copies_can_be_made_again(self) -> bool:
        """Whether copies follow from a model and addressed noise alone; defences and rewards look at copies."""
        looks = bool(self.defences.use) or scores_by_training(self.privacy)
        return self.scheme.reward is None and self.privacy.copies != "nested" and not looks


@dataclasses.dataclass(frozen=True)
class RobustAggregate:
    """The aggregator that a scenario names, in one round, as schemes call it."""

    defences: Defences
    own: OwnShare

    def __call__(self, rows: UpdatePerDevice, arrived: FlagPerDevice) -> Params:
        """One update from all that arrived."""
        aggregator: Aggregator = AGGREGATORS[self.defences.aggregator]
        return aggregator.step(self.defences, rows, arrived, self.own)


class RoundAddress(NamedTuple):
    """Where the access point's randomness of a round is drawn from."""

    root: Key
    round_index: Count

    def key(self, stream: Stream) -> Key:
        """The key of a draw that concerns the whole cell."""
        return round_key(self.root, self.round_index, stream)


class Upload(NamedTuple):
    """What participants sent, with a leading participant axis, and what became of it."""

    updates: Tree
    reported_noise_std: Array
    reported_loss: Array
    num_samples: Array
    delivered: FlagPerDevice
    """A mask over all devices: whose update arrived in time."""
    charge: Array
    """What the round takes from each device's privacy budget."""
    late: LateUpload | None = None
    """What participants of earlier rounds sent late; None where that is never used."""


def receive(
    rules: ServerRules,
    server: ServerState,
    arrivals: Arrivals,
    address: RoundAddress,
    samples: tuple[Array, Array] | None,
) -> tuple[Updates, FlagPerDevice]:
    """The updates as the access point works on them, and a mask of those whose values are all finite."""
    finite = jnp.all(jnp.isfinite(arrivals.rows), axis=1)
    rows = jnp.where(finite[:, None], arrivals.rows, 0.0)
    flat = ravel_pytree(server.global_params)[0]
    gain, hits = _tried(rules.model, server.global_params, flat, rows, samples)
    updates = Updates(
        devices=arrivals.devices,
        arrived=arrivals.arrived,
        rows=rows,
        reported_noise_std=arrivals.reported_noise_std,
        reported_loss=arrivals.reported_loss,
        num_samples=arrivals.num_samples,
        gain=gain,
        accuracy=hits,
        evidence=_evidence(rules, server, rows, arrivals, address, samples),
        knowledge=_knowledge(rules, server, rows, arrivals.devices, address) if rules.defences.use else None,
    )
    return updates, finite


def judge(rules: ServerRules, updates: Updates, finite: FlagPerDevice) -> tuple[Updates, Verdict]:
    """Every defence in turn; whatever is not finite is refused before the first."""
    verdict = first_verdict(updates, {NOT_FINITE: updates.arrived & ~finite})
    updates = dataclasses.replace(updates, arrived=updates.arrived & finite)
    for defence in in_use(rules.defences):
        updates, verdict = defence.judge(rules.defences, updates, verdict)
    return updates, verdict


class Aggregated(eqx.Module):
    """The access point's next model."""

    params: Tree
    step: Params
    """How it moved, where the scheme combines updates in a way of its own; else zero."""
    updates: Updates | None
    """All devices' updates as the scheme combined them; None if it took their mean."""
    memory: Memory
    """What the scheme carries over."""
    noise_std: Scalar
    """Std of the noise that the round put into the model, and that stays there; else 0."""
    sensitivity: Scalar
    """By how much one device's update can change that model; else 0."""


def own_share(
    rules: ServerRules, server: ServerState, address: RoundAddress, samples: tuple[Array, Array] | None
) -> OwnShare:
    """What the access point brings to the aggregation: noise, and an update of its own where that is asked for."""
    reference = jnp.zeros_like(ravel_pytree(server.global_params)[0])
    aggregator: Aggregator = AGGREGATORS[rules.defences.aggregator]
    if aggregator.needs_server_data and rules.reference is not None and samples is not None:
        key = address.key(Stream.REFERENCE_BATCH)
        reference = reference_update(rules.reference, server.global_params, samples, key, address.round_index)
    return OwnShare(reference=reference, key=address.key(Stream.AGGREGATOR))


def combine(rules: ServerRules, server: ServerState, updates: Updates, own: OwnShare) -> Aggregated:
    """The model moved by the mean of the updates, by a robust aggregate of them, or as the scheme combines them."""
    flat, unravel = ravel_pytree(server.global_params)
    nothing, memory = jnp.zeros(()), server.scheme_memory
    robust = RobustAggregate(rules.defences, own)
    if rules.scheme.combine is None:
        step = jnp.zeros_like(flat)
        if rules.defences.aggregator == "mean":
            params = aggregate(server.global_params, jax.vmap(unravel)(updates.rows), updates.arrived)
        else:
            params = unravel(flat + robust(updates.rows, updates.arrived).astype(flat.dtype))
        return Aggregated(params=params, step=step, updates=None, memory=memory, noise_std=nothing, sensitivity=nothing)
    of_all = updates.of_all_devices(server.deviation.size, updates.arrived)
    step, memory = rules.scheme.combine(dataclasses.replace(rules.settings, aggregate=robust), of_all, memory)
    return Aggregated(
        params=unravel(flat + step.astype(flat.dtype)),
        step=step,
        updates=of_all,
        memory=memory,
        noise_std=nothing,
        sensitivity=nothing,
    )


class Scores(eqx.Module):
    """Everybody's deviation and running score after a round."""

    deviation: PerDevice
    score: Score
    evidence: Evidence | None = None
    repetition: Repetition | None = None


def score(
    rules: ServerRules, server: ServerState, received: Updates, judged: Updates, verdict: Verdict, new: Aggregated
) -> Scores:
    """A deviation for everybody whose update arrived; the others keep theirs."""
    if received.evidence is not None and server.evidence is not None:
        return _score_by_evidence(rules, server, received, received.evidence, verdict)
    chosen = received.devices
    scored = score_devices(
        rules.privacy,
        ravel_pytree(new.params)[0],
        verdict.compared,
        participating=received.arrived,
        last_deviation=server.deviation[chosen],
        last_score=jax.tree.map(lambda leaf: leaf[chosen], server.score),
        reported_noise_std=judged.reported_noise_std if rules.mode.counts_steps else None,
        caught=received.arrived & verdict.caught,
        credit=verdict.credit,
        yardstick=verdict.yardstick,
    )
    return Scores(
        deviation=server.deviation.at[chosen].set(scored.deviation),
        score=jax.tree.map(lambda old, new: old.at[chosen].set(new), server.score, scored.score),
    )


def _score_by_evidence(
    rules: ServerRules,
    server: ServerState,
    received: Updates,
    shown: RoundEvidence,
    verdict: Verdict,
) -> Scores:
    """A deviation from what everybody's updates prove so far.

    Whoever is caught has proved nothing, and deviates fully; so does whoever sends again what it sent before.
    """
    chosen, caught = received.devices, received.arrived & verdict.caught
    memory = rules.privacy.similarity_memory
    counted = received.arrived & jnp.all(jnp.isfinite(shown.found), axis=0)
    proved = dataclasses.replace(shown, found=jnp.where(counted & ~caught, shown.found, 0.0))
    past = jax.tree.map(lambda leaf: leaf[:, chosen], server.evidence)
    now = pooled(past, proved, counted, memory)
    evidence: Evidence = jax.tree.map(lambda old, new: old.at[:, chosen].set(new), server.evidence, now)
    sent = jax.tree.map(lambda leaf: leaf[chosen], server.repetition)
    again = after_updates(sent, received.rows, shown.found[LATE_STEPS], received.arrived, memory)
    repetition: Repetition = jax.tree.map(lambda old, new: old.at[chosen].set(new), server.repetition, again)
    everybody = jnp.any(evidence.usual > 0.0, axis=0)
    deviation = evidence_deviation(evidence, everybody, server.deviation, rules.defences.false_alarm)
    arrived = jnp.zeros_like(everybody).at[chosen].set(received.arrived)
    refused = jnp.zeros_like(everybody).at[chosen].set(caught) | repeats(repetition)
    return Scores(
        deviation=jnp.where(arrived, jnp.where(refused, 1.0, deviation), server.deviation),
        score=server.score,
        evidence=evidence,
        repetition=repetition,
    )


def _evidence(
    rules: ServerRules,
    server: ServerState,
    rows: UpdatePerDevice,
    arrivals: Arrivals,
    address: RoundAddress,
    samples: tuple[Array, Array] | None,
) -> RoundEvidence | None:
    """Evidence of the work in each update, by what the access point's own training from the same copy gives."""
    if rules.reference is None or samples is None or not scores_by_training(rules.privacy):
        return None
    copies = flat_rows(server.copies.of_devices)[0][arrivals.devices]
    key, index = address.key(Stream.REFERENCE), address.round_index
    directions, reached = reference_directions(rules.reference, server.global_params, copies, samples, key, index)
    shown = round_evidence(rows, directions, reached, arrivals.arrived)
    # A late update was trained from an older copy than this one: it proves nothing either way.
    return dataclasses.replace(shown, found=jnp.where(arrivals.age == 0, jnp.nan_to_num(shown.found), jnp.nan))


def overwrite(rules: ServerRules, new: Aggregated, address: RoundAddress) -> Aggregated:
    """The next model with noise that stays in it, at the level of a device without deviation: Algorithm 1 as printed.

    Copies are filled up to their own level afterwards, so that a benchmark sends the same noisy model to everybody.
    """
    std = copy_levels(rules, jnp.zeros(1), address)[0]
    flat, unravel = ravel_pytree(new.params)
    noise = standard_normal(address.key(Stream.MODEL_NOISE), flat.shape)
    params = unravel(flat + (std * noise).astype(flat.dtype))
    return dataclasses.replace(new, params=params, noise_std=std)


def copy_levels(rules: ServerRules, deviation: PerDevice, address: RoundAddress) -> PerDevice:
    """Noise std in the copy of a device with each deviation, at the sensitivity of the round."""
    spread = rules.privacy.sensitivity_spread
    factor = sensitivity_factor(spread, address.root, address.round_index)
    return factor * rules.scheme.noise_levels(rules.privacy, deviation)


class Released(eqx.Module):
    """What goes back to the devices."""

    copies: Copies
    noise_std: PerDevice
    """Std of the round's noise in each copy, that which the round put into the model included."""
    added_std: PerDevice
    """Std of the noise by which an echo of each copy could be recognised; 0 where copies are rewards."""


def release(
    rules: ServerRules,
    server: ServerState,
    new: Aggregated,
    deviation: PerDevice,
    served: FlagPerDevice,
    address: RoundAddress,
) -> Released:
    """A copy for every device that is served: the model plus noise, or what the scheme rewards it with."""
    flat = ravel_pytree(new.params)[0]
    wanted = copy_levels(rules, deviation, address)
    noisy_model = rules.mode.trusts_access_point or rules.privacy.overwrite_model
    added = fill_up(new.noise_std, wanted) if noisy_model else wanted

    def rows() -> UpdatePerDevice:
        if rules.scheme.reward is None or new.updates is None:
            noise = drawn_noise(rules, added, address.root, address.round_index, flat.size)
            return released_copy(flat, added.astype(flat.dtype), noise)
        moved = ServerStep(step=new.step, model=flat, copies=flat_rows(server.copies.of_devices)[0])
        key = address.key(Stream.REWARD)
        return rules.scheme.reward(rules.settings, new.updates, moved, new.memory, key).astype(flat.dtype)

    return Released(
        copies=server.copies.after(new.params, added, served, address.round_index, rows),
        noise_std=jnp.maximum(wanted, new.noise_std) if noisy_model else wanted,
        added_std=added if rules.scheme.reward is None or new.updates is None else jnp.zeros_like(added),
    )


def remember(
    rules: ServerRules,
    server: ServerState,
    received: Updates | None,
    caught: FlagPerDevice | None,
    released_std: PerDevice,
) -> DeviceHistory | None:
    """What defences remember of the round; None where there are no defences."""
    history = server.device_history
    if history is None or received is None or caught is None:
        return history
    return after_round(rules.defences, history, received, caught, server.copies, released_std)


def drawn_noise(rules: ServerRules, levels: PerDevice, root: Key, round_index: Count, size: int) -> UpdatePerDevice:
    """Standard noise of every device's copy in a round, as its address and the levels of all have it."""
    devices = jnp.arange(levels.size)
    whose = jnp.zeros_like(devices) if rules.broadcasts else devices
    noise = jax.vmap(lambda index: copy_noise(root, round_index, index, size))(whose)
    return nested(levels, noise) if rules.privacy.copies == "nested" else noise


def _knowledge(
    rules: ServerRules, server: ServerState, rows: UpdatePerDevice, participants: Array, address: RoundAddress
) -> ServerKnowledge:
    """What defences may compare updates with; zero for whatever none of those in use has asked for."""
    recent = None if server.device_history is None else server.device_history.recent
    blank = jnp.zeros_like(rows)
    noise, change, sketches = blank[None], blank, blank[None, :, :1]
    if recent is not None:
        noise = _past_noise(rules, recent.noise_std, address, rows.shape[1])[:, participants]
        sketches = recent.sketches[:, participants]
        if recent.copies_before is not None:
            change = (flat_rows(server.copies.of_devices)[0] - recent.copies_before)[participants]
    return ServerKnowledge(ravel_pytree(server.global_params)[0], noise, change, sketches)


def _past_noise(
    rules: ServerRules, levels: Float[Array, "past device"], address: RoundAddress, size: int
) -> Float[Array, "past device param"]:
    """Noise in the latest copies, the newest first, drawn again from its address."""

    def one(lag: Count, std: PerDevice) -> UpdatePerDevice:
        return std[:, None] * drawn_noise(rules, std, address.root, address.round_index - 1 - lag, size)

    return jax.vmap(one)(jnp.arange(PAST), levels).astype(jnp.float32)


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
