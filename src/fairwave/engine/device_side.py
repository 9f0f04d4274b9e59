"""What one device does in a round, step by step. The simulator maps these functions over devices; a client calls them.

No function has an argument through which a device could see another one.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Int, Int8

from fairwave.double_precision import double_precision
from fairwave.engine.battery import covers
from fairwave.engine.model_copies import MakeCopy, as_it_is
from fairwave.engine.private_training import private_gradient, train_privately, update_noise_std
from fairwave.keys import Stream, device_key
from fairwave.learning.local import correction_term, norm, scaled_by, train, update_of
from fairwave.learning.loss import Samples, local_gradient, local_loss
from fairwave.learning.model import Model, Tree
from fairwave.learning.optimizer import Optimizer, optimizer_of, rate_in
from fairwave.learning.pull import Pull
from fairwave.learning.rounding import restored, rounded
from fairwave.policy.deviation import uniform_levels
from fairwave.policy.device_plan import Case, DevicePlan, plan_round
from fairwave.policy.effort_fit import EffortMemory
from fairwave.policy.fleet import Fleet
from fairwave.policy.rule import Rule
from fairwave.privacy.fluctuation import sensitivity_factor
from fairwave.privacy.noise import standard_normal
from fairwave.privacy.protection import Protection
from fairwave.scenario.parameters import Radio, Scenario
from fairwave.scenario.peers import Peers
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.scheme import Drift, Scheme
from fairwave.types import Count, Flag, Key, Scalar
from fairwave.wireless.channel_knowledge import safe_gain
from fairwave.wireless.fading import Channel, draw_channel
from fairwave.wireless.mobility import Motion, moved

_PERSONAL = 1 << 30
"""Address of the personal model's batches, beyond those of any iteration."""


# Step 1: the channel


def place_of(member: Fleet, motion: Motion, path_loss_exponent: float, round_index: Count) -> tuple[Fleet, Scalar]:
    """A device where it is in a round, and its distance."""
    path_gain, distance_m = moved(member.device, motion, path_loss_exponent, round_index)
    return dataclasses.replace(member, device=dataclasses.replace(member.device, path_gain=path_gain)), distance_m


def channel_of(radio: Radio, root: Key, round_index: Count, index: Count, deadline_s: Scalar) -> Channel:
    """A device's channel in a round."""
    cycles = None if radio.doppler_hz is None else radio.doppler_hz * deadline_s * round_index
    return draw_channel(radio.fading, radio.channel_error_std, root, round_index, index, doppler_cycles=cycles)


# Step 2: the plan


class Limits(NamedTuple):
    """What limits one device in a round."""

    invited: Flag
    steps_left: Count | None
    """Local steps that its privacy budget leaves; None without a limit in steps."""
    charge_left_j: Scalar | None
    """Charge of its battery; None if it has none."""


class Prepared(eqx.Module):
    """What one device decides before it trains."""

    plan: DevicePlan
    """All zeros if it does not take part."""
    takes_part: Flag
    """It is invited, and its budget and its battery cover the plan."""
    arrives: Flag
    """The channel carries what it sends."""


def prepare(
    rule: Rule, radio: Radio, member: Fleet, channel: Channel, memory: EffortMemory, limits: Limits
) -> Prepared:
    """A device's plan over its channel, whether it takes part, and whether the channel carries what it sends."""
    takes_part = limits.invited
    if limits.steps_left is not None:
        takes_part = takes_part & (limits.steps_left >= member.device.min_iterations)
        member = _capped(member, limits.steps_left)
    planned_gain = safe_gain(channel.estimated_gain, radio.channel_error_std, radio.outage_probability)
    plan = plan_round(rule, member.device, planned_gain, member.preferences, memory.effort)
    if limits.charge_left_j is not None:
        takes_part = takes_part & covers(limits.charge_left_j, member.device, plan)
    sends = takes_part & (plan.case != int(Case.OUTAGE))
    plan = jax.tree.map(lambda leaf: jnp.where(takes_part, leaf, jnp.zeros_like(leaf)), plan)
    return Prepared(plan, takes_part, sends & (channel.fading_gain >= planned_gain))


def _capped(member: Fleet, steps_left: Count) -> Fleet:
    """A device with no more iterations than are left of its budget."""
    device = member.device
    most = jnp.minimum(device.max_iterations, jnp.maximum(steps_left, device.min_iterations))
    return dataclasses.replace(member, device=dataclasses.replace(device, max_iterations=most))


# What devices compute with


class MeanGradient(eqx.Module):
    """What the access point sends back in the exchange of gradients."""

    gradient: Tree
    arrived: Flag
    """Whether any gradient has arrived; otherwise nothing is corrected."""


class SharedInputs(eqx.Module):
    """What all devices compute with in a round."""

    root: Key
    round_index: Count
    inputs: Array
    labels: Array
    models: Tree | None = None
    """The models that copies are made of; None where devices hold models."""
    mean: MeanGradient | None = None
    """None where no gradients are exchanged."""
    drift: Tree | None = None
    """The access point's vector, where devices correct their gradients by what they carry; else None."""
    make_copy: MakeCopy = eqx.field(static=True, default=as_it_is)
    """How a device's part of the copies becomes a model."""

    def copy(self, of_device: Tree) -> Tree:
        """A device's copy as a model."""
        return self.make_copy(self.models, self.root, of_device)

    def with_models(self) -> SharedInputs:
        """The same for devices whose part is a model."""
        return dataclasses.replace(self, models=None, make_copy=as_it_is)

    def samples(self, held: HeldSamples) -> Samples:
        """A device's view of the data."""
        return Samples(self.inputs, self.labels, held.samples, held.count)


class HeldSamples(eqx.Module):
    """The samples that a device has in a round."""

    samples: Int[Array, " held"]
    count: Count


class TrainingInputs(eqx.Module):
    """What one device trains with in one round."""

    copy: Tree
    """Its part of the copies."""
    own_gradient: Tree | None
    """The gradient that it has exchanged; None without an exchange."""
    held: HeldSamples
    """The samples that it has, on which its loss is measured."""
    trained_count: Count
    """The number of them that it trains on: all, if it is honest."""
    flipped: Flag
    """It takes the last class for the first, and so on: never, if it is honest."""
    iterations: Count
    index: Count
    personal_model: Tree | None = None
    """Its own model; None where the scheme has none."""
    drift: Tree | None = None
    """The vector by which it corrects its gradients; None where the scheme has none."""


# Step 3: the gradient exchange


def gradient_of(
    model: Model, protection: Protection | None, shared: SharedInputs, own: tuple[Tree, HeldSamples, Count]
) -> tuple[Scalar, Tree]:
    """Loss of a device's copy over all its data, and the gradient that it may exchange."""
    of_device, held, index = own
    received, samples = shared.copy(of_device), shared.samples(held)
    if protection is None:
        return local_gradient(model, received, samples)
    key = device_key(shared.root, shared.round_index, Stream.GRADIENT_NOISE, index)
    return local_loss(model, received, samples), private_gradient(protection, model, received, samples, key)


# Steps 4 and 5: local training, and noise on the update


@dataclasses.dataclass(frozen=True)
class LocalTraining:
    """What a compiled training program depends on."""

    model: Model
    batch_size: int
    learning_rate: float
    """That of the first round."""
    rate_decay: float
    """Factor from round to round."""
    optimizer: Optimizer
    noise_std: float
    """Std of the noise on the update at the nominal sensitivity; 0 for none."""
    sensitivity_spread: float = 0.0
    """How far the sensitivity fluctuates from round to round."""
    protection: Protection | None = None
    """What makes every step private; None for plain training."""
    personal_pull: float | None = None
    """Pull of a device's own model towards its copy; None where devices have no model of their own."""
    copy_pull: float | None = None
    """Pull of training from the copy back towards it; None without one."""
    trains_beside: bool = False
    """Its own model is trained beside the copy; otherwise instead of it."""
    gradient_weight: float = 0.0
    """Weight of the mean gradient in the local problem."""
    effective_steps: float | None = None
    """Local steps to which updates are scaled; None where they are sent as they are."""
    drift: Drift | None = None
    """How gradients are corrected by what a device carries from round to round; None where it carries nothing."""

    def update_weight(self) -> float:
        """How often gradients are in an update, where updates are scaled to the effective number of steps; else 1."""
        return 1.0 if self.effective_steps is None else float(self.optimizer.gradient_weight(self.effective_steps))


def local_training(scenario: Scenario, scheme: Scheme, model: Model, protection: Protection | None) -> LocalTraining:
    """How devices train under a scenario and a scheme."""
    learning = scenario.learning
    return LocalTraining(
        model=model,
        batch_size=learning.batch_size,
        learning_rate=learning.learning_rate,
        rate_decay=learning.rate_decay,
        optimizer=optimizer_of(learning),
        noise_std=update_noise(scenario, scheme),
        sensitivity_spread=scenario.privacy.sensitivity_spread,
        protection=protection,
        personal_pull=None if scheme.personal_models is None else scheme.personal_models.weight(scenario.peers),
        copy_pull=None if scheme.copy_pull is None else scheme.copy_pull(scenario.peers),
        trains_beside=scheme.trains_beside,
        gradient_weight=learning.gradient_weight,
        effective_steps=effective_steps(scenario) if scheme.scales_to_steps else None,
        drift=scheme.drift,
    )


def effective_steps(scenario: Scenario) -> float:
    """The local steps to which updates are scaled where a scheme does that: a number that everybody knows."""
    given = scenario.peers.effective_steps
    asked = np.asarray(DeviceValues(scenario)("required_iterations"), float)
    return float(asked.mean()) if given is None else given


def exchanges_gradients(scenario: Scenario, scheme: Scheme) -> bool:
    """Whether a round begins with an exchange of gradients."""
    return scenario.learning.gradient_exchange and scheme.exchanges_gradients


@double_precision()
def update_noise(scenario: Scenario, scheme: Scheme) -> float:
    """Std of the noise that devices add to their updates at the nominal sensitivity; 0 for none."""
    if not (scenario.privacy.local_noise and scheme.noisy_updates):
        return 0.0
    return float(uniform_levels(scenario.privacy, jnp.zeros(1))[0])


class Trained(eqx.Module):
    """What one device's training gave."""

    update: Tree
    """The update as it is sent, noise included."""
    loss: Scalar
    """Loss on the device's own data, after training; of its own model, where it has one."""
    update_norm: Scalar
    """Length of the update before noise is added to it; noise inside training counts."""
    reported_noise_std: Scalar
    """The std that the device reports of the noise of its training in each value of the update; 0 without."""
    personal_model: Tree | None
    """Its own model after training."""


def train_device(setting: LocalTraining, shared: SharedInputs, own: TrainingInputs) -> Trained:
    """Local training of one device, from its received copy to the update that it sends."""
    received, samples = shared.copy(own.copy), _training_samples(shared, own)
    noise_key = device_key(shared.root, shared.round_index, Stream.LOCAL_NOISE, own.index)
    batch_key = device_key(shared.root, shared.round_index, Stream.BATCH, own.index)
    rate = rate_in(setting.learning_rate, setting.rate_decay, shared.round_index)
    correction, iterations, start, pull = _correction(setting, shared, own), own.iterations, received, None
    if setting.trains_beside:  # the other half is for its own model: the deadline is one
        iterations = own.iterations - own.iterations // 2
    elif setting.personal_pull is not None:
        start, pull = own.personal_model, Pull(received, setting.personal_pull)
    elif setting.copy_pull is not None:
        pull = Pull(received, setting.copy_pull)
    keys = (batch_key, noise_key)
    trained, reported = _trained(setting, start, correction, samples, keys, iterations, rate=rate, pull=pull)
    personal = None if setting.personal_pull is None else trained
    if setting.trains_beside:
        personal = _trained_beside(setting, received, samples, own, batch_key, rate=rate)
    scale = _step_scale(setting, iterations)
    update = scaled_by(update_of(trained, start), scale)
    return Trained(
        update=_with_noise(setting, update, shared, noise_key),
        loss=local_loss(setting.model, trained if personal is None else personal, shared.samples(own.held)),
        update_norm=norm(update),
        reported_noise_std=reported if scale is None else scale * reported,
        personal_model=personal,
    )


# Step 8: what the device carries into the next round


def next_drift(
    setting: LocalTraining, peers: Peers, round_index: Count, told: Tree, own: tuple[Tree, Tree, Flag]
) -> Tree:
    """A device's vector after a round, from the one before, what it has sent, and whether that has arrived in time.

    `told` is the access point's vector at the beginning of the round.
    """
    before, sent, delivered = own
    if setting.drift is None:
        return before
    reach = jnp.asarray(setting.update_weight() * rate_in(setting.learning_rate, setting.rate_decay, round_index))
    after = setting.drift.after(peers, before, told, sent, reach)
    return jax.tree.map(lambda new, old: jnp.where(delivered, new, old), after, before)


# Step 5, last: 8 bits on the air


def sent_in_8_bits(stream: Stream, shared: SharedInputs, own: tuple[Tree, Count]) -> Int8[Array, " sent"]:
    """A device's gradient or update as it is sent where learning.update_bits is 8; `stream` says which of them."""
    values, index = own
    return rounded(ravel_pytree(values)[0], device_key(shared.root, shared.round_index, stream, index))


def received_from_8_bits(stream: Stream, shared: SharedInputs, own: tuple[Tree, Count]) -> Tree:
    """The same as the access point receives it."""
    flat, unravel = ravel_pytree(own[0])
    return unravel(restored(sent_in_8_bits(stream, shared, own), flat.size).astype(flat.dtype))


def _training_samples(shared: SharedInputs, own: TrainingInputs) -> Samples:
    labels = jnp.where(own.flipped, jnp.max(shared.labels) - shared.labels, shared.labels)
    return Samples(shared.inputs, labels, own.held.samples, own.trained_count)


def _step_scale(setting: LocalTraining, iterations: Count) -> Scalar | None:
    """The factor from a device's own number of steps to the effective one; None where updates are sent as they are."""
    if setting.effective_steps is None:
        return None
    own = setting.optimizer.gradient_weight(jnp.maximum(iterations, 1).astype(jnp.float64))
    return jnp.asarray(setting.update_weight() / own)


def _correction(setting: LocalTraining, shared: SharedInputs, own: TrainingInputs) -> Tree | None:
    """What is subtracted from every gradient: of the exchange of gradients, or of what the device carries; or None."""
    if setting.drift is not None:
        return setting.drift.term(own.drift, shared.drift)
    mean = shared.mean
    if mean is None:
        return None
    corrected = correction_term(own.own_gradient, mean.gradient, setting.gradient_weight)
    return jax.tree.map(lambda leaf: jnp.where(mean.arrived, leaf, jnp.zeros_like(leaf)), corrected)


def _trained(
    setting: LocalTraining,
    start: Tree,
    correction: Tree | None,
    samples: Samples,
    keys: tuple[Key, Key],
    iterations: Count,
    *,
    rate: Scalar | float,
    pull: Pull | None,
) -> tuple[Tree, Scalar]:
    """The model whose change is sent, after local training, and the noise std that the device reports with it."""
    batch_key, noise_key = keys
    size, protection, optimizer = setting.batch_size, setting.protection, setting.optimizer
    if protection is None:
        plain = train(
            setting.model,
            start,
            correction,
            samples,
            key=batch_key,
            iterations=iterations,
            batch_size=size,
            learning_rate=rate,
            optimizer=optimizer,
            pull=pull,
        )
        return plain, jnp.zeros(())
    private = train_privately(
        protection,
        setting.model,
        start,
        correction,
        samples,
        batch_key=batch_key,
        noise_key=noise_key,
        iterations=iterations,
        batch_size=size,
        learning_rate=rate,
        optimizer=optimizer,
        pull=pull,
    )
    weight = 0.0 if pull is None else pull.weight
    return private, update_noise_std(protection, samples.count, iterations, size, rate, optimizer, pull_weight=weight)


def _trained_beside(
    setting: LocalTraining,
    received: Tree,
    samples: Samples,
    own: TrainingInputs,
    batch_key: Key,
    *,
    rate: Scalar | float,
) -> Tree:
    """A device's own model after the half of its iterations that is left for it."""
    return train(
        setting.model,
        own.personal_model,
        None,
        samples,
        key=jax.random.fold_in(batch_key, _PERSONAL),
        iterations=own.iterations // 2,
        batch_size=setting.batch_size,
        learning_rate=rate,
        pull=Pull(received, setting.personal_pull or 0.0),
    )


def _with_noise(setting: LocalTraining, update: Tree, shared: SharedInputs, key: Key) -> Tree:
    """An update plus the paper's Gaussian noise on every value, if that is on."""
    if setting.noise_std == 0.0:
        return update
    flat, unravel = ravel_pytree(update)
    factor = sensitivity_factor(setting.sensitivity_spread, shared.root, shared.round_index).astype(flat.dtype)
    return unravel(flat + setting.noise_std * factor * standard_normal(key, flat.shape))
