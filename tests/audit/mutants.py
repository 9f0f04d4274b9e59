"""Faults that an implementer could make, planted in the release code: each replaces a few functions and puts them back.

`MUTANTS` has them by name. Used by the tests beside this file and by benchmarks/audit_mutants.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import types
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp

import fairwave.engine.round as engine_round
from fairwave.engine import device_programs, device_side, private_training, server_steps
from fairwave.engine.model_copies import StoredCopies
from fairwave.federate import client
from fairwave.learning import per_sample
from fairwave.privacy import privacy_filter
from fairwave.privacy.clipping import clip_factor, clipped_mean
from fairwave.privacy.modes import device_level, record_level
from fairwave.privacy.noise import standard_normal

Patch = tuple[object, str, object]
"""A module or a class, the name of one of its parts, and what replaces that."""

CENTRAL = ("privacy.mode=device",)
EXCHANGE = (
    "learning.gradient_exchange=true",
    "privacy.exchange_noise_multiplier=5",
    "privacy.max_epsilon=unset",
)
"""Overrides of the preset 'fair' for faults that it does not reach."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One fault."""

    origin: str
    """Where it comes from: 'missed' or 'found' by the audit before this one, or thought of 'afterwards'."""
    fault: str
    patches: Callable[[], list[Patch]]
    overrides: tuple[str, ...] = ()
    """Overrides of the preset 'fair' under which it is audited."""


MUTANTS: dict[str, Mutant] = {}


def mutant(origin: str, fault: str, overrides: tuple[str, ...] = ()):
    """Enter a function that makes patches under its own name."""

    def enter(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        MUTANTS[patches.__name__] = Mutant(origin, fault, patches, overrides)
        return patches

    return enter


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """The package with one fault in it; programs that were compiled before are forgotten on both ends."""
    patches = MUTANTS[name].patches()
    before = [(owner, part, getattr(owner, part)) for owner, part, _ in patches]
    try:
        for owner, part, value in patches:
            setattr(owner, part, value)
        forget_programs()
        yield
    finally:
        for owner, part, value in before:
            setattr(owner, part, value)
        forget_programs()


def forget_programs() -> None:
    """Have JAX compile everything anew."""
    jax.clear_caches()
    device_programs.training_program.cache_clear()
    device_programs.gradient_program.cache_clear()


noised_tree, noised = private_training.noised_tree, private_training.noised
clipped_sum, poisson_batch = private_training._clipped_sum, private_training.poisson_batch
mean_with_penalty, by_layer = private_training._mean_with_penalty, per_sample._by_layer
device_key, nested = device_side.device_key, server_steps.nested
central_release, release = device_level.central_release, engine_round.release


def with_noise_scaled(scale: Callable[[float], float]) -> list[Patch]:
    """Noise of another std than was asked for."""
    wrong = lambda source, tree, std, key: noised_tree(source, tree, scale(std), key)  # noqa: E731
    return [(private_training, "noised_tree", wrong)]


def with_noise_drawn(draw: Callable[[jax.Array, tuple[int, ...]], jax.Array]) -> list[Patch]:
    """Noise of another law, per unit of std."""

    def wrong(source, values, std, key):
        return values + (std * draw(key, values.shape)).astype(values.dtype)

    return [(private_training, "noised", wrong)]


def with_clip(factor: Callable[[jax.Array, float], jax.Array], bound_scale: float = math.inf) -> list[Patch]:
    """Another factor for a gradient of some length, and no second look at what is added up."""

    def wrong(protection, model, params, samples, members, counted):
        inputs, bound = private_training.scaled(samples.inputs[members]), protection.clip_norm
        return per_sample.scaled_sum(
            model,
            params,
            inputs,
            samples.labels[members],
            counted,
            factor=lambda length: factor(length, bound),
            bound=bound * bound_scale,
        )

    return [(private_training, "_clipped_sum", wrong)]


def with_batches(draw: Callable[..., tuple[jax.Array, jax.Array]]) -> list[Patch]:
    """Another way to draw batches."""
    return [(private_training, "poisson_batch", draw)]


def with_key(change: Callable[..., jax.Array]) -> list[Patch]:
    """Another address of a device's noise and batches."""
    return [(device_side, "device_key", change)]


def with_central(**changes: Callable[[float], float]) -> list[Patch]:
    """Another release at the access point: some of its parameters are changed."""

    def wrong(params, updates, taking_part, key, **given):
        given |= {name: change(given[name]) for name, change in changes.items()}
        return central_release(params, updates, taking_part, key, **given)

    return [(device_level, "central_release", wrong)]


# Found by the audit before this one


@mutant("found", "no noise at all")
def noise_forgotten():
    return with_noise_scaled(lambda std: 1e-9 * std)


@mutant("found", "half the noise")
def noise_halved():
    return with_noise_scaled(lambda std: 0.5 * std)


@mutant("found", "the square root of the std in its place")
def std_and_variance_mixed_up():
    return with_noise_scaled(math.sqrt)


@mutant("found", "gradients are not clipped")
def clipping_off():
    return with_clip(lambda length, bound: jnp.where(jnp.isfinite(length), 1.0, 0.0))


@mutant("found", "gradients are clipped to twice the length")
def clipping_doubled():
    return with_clip(lambda length, bound: clip_factor(length, 2.0 * bound))


@mutant("found", "the same noise and batches in every round")
def key_reused_each_round():
    return with_key(lambda root, number, stream, index: device_key(root, 0 * number, stream, index))


@mutant("found", "every record is in every batch")
def whole_batches():
    return with_batches(lambda bits, count, probability, capacity: poisson_batch(bits, count, 1.0, bits.shape[0]))


@mutant("found", "exchanged gradients have no noise", EXCHANGE)
def exchange_without_noise():
    private_sum = private_training.private_sum

    def wrong(protection, model, params, samples, key):
        return private_sum(dataclasses.replace(protection, exchange_noise_multiplier=1e-6), model, params, samples, key)

    return [(private_training, "private_sum", wrong)]


@mutant("found", "half the noise at the access point", CENTRAL)
def central_noise_halved():
    return with_central(noise_multiplier=lambda multiplier: 0.5 * multiplier)


@mutant("found", "updates are clipped to twice the length, noise is that of the length", CENTRAL)
def central_clipping_doubled():
    return with_central(clip_norm=lambda clip: 2.0 * clip, noise_multiplier=lambda multiplier: 0.5 * multiplier)


@mutant("found", "the access point keeps a model without noise and sends noisy copies of it", CENTRAL)
def hidden_noise_free_state():
    def silent(params, updates, taking_part, key, **given):
        done = central_release(params, updates, taking_part, key, **given | {"noise_multiplier": 0.0})
        return dataclasses.replace(done, noise_std=given["noise_multiplier"] * done.sensitivity)

    def noisy(rules, server, new, deviation, served, address):
        flat = new.params["w"]
        key = jax.random.fold_in(address.root, address.round_index)
        blurred = flat + (new.noise_std * standard_normal(key, flat.shape)).astype(flat.dtype)
        return release(rules, server, dataclasses.replace(new, params={"w": blurred}), deviation, served, address)

    return [(device_level, "central_release", silent), (engine_round, "release", noisy)]


@mutant("found", "every device's copy of a release has noise of its own", CENTRAL)
def independent_copies_of_a_release():
    kept = {}

    def remembered(params, updates, taking_part, key, **given):
        kept["clean"] = params + clipped_mean(updates, taking_part, given["clip_norm"]).value
        return central_release(params, updates, taking_part, key, **given)

    def independent(rules, server, new, deviation, served, address):
        given = release(rules, server, new, deviation, served, address)
        rows = given.copies.models["w"]
        key = jax.random.fold_in(address.root, address.round_index)
        own = kept["clean"] + new.noise_std * standard_normal(key, rows.shape)
        return dataclasses.replace(given, copies=StoredCopies({"w": own.astype(rows.dtype).at[0].set(rows[0])}))

    return [(device_level, "central_release", remembered), (engine_round, "release", independent)]


@mutant("found", "copies for fairness have independent noise instead of nested")
def independent_copies_for_fairness():
    return [(server_steps, "nested", lambda levels, draws: draws)]


# Missed by the audit before this one


@mutant("missed", "biases get no noise")
def no_noise_on_biases():
    def wrong(source, tree, std, key):
        done = noised_tree(source, tree, std, key)
        return [{"weight": new["weight"], "bias": old["bias"]} for new, old in zip(done, tree, strict=True)]

    return [(private_training, "noised_tree", wrong)]


@mutant("missed", "one key for the noise of every leaf")
def one_key_for_every_leaf():
    def wrong(source, tree, std, key):
        return jax.tree.map(lambda leaf: noised(source, leaf, std, key), tree)

    return [(private_training, "noised_tree", wrong)]


@mutant("missed", "a tenth of the noise in every layer but the first")
def quiet_later_layers():
    def wrong(source, tree, std, key):
        done = noised_tree(source, tree, std, key)
        quiet = [jax.tree.map(lambda new, old: old + 0.1 * (new - old), *both) for both in zip(done, tree, strict=True)]
        return [done[0], *quiet[1:]]

    return [(private_training, "noised_tree", wrong)]


@mutant("missed", "each layer is clipped on its own")
def clipping_per_layer():
    def wrong(taps, counted, factor, bound):
        return [layer for tap in taps for layer in by_layer([tap], counted, factor, bound)]

    return [(per_sample, "_by_layer", wrong)]


@mutant("missed", "biases are left out of a gradient's length")
def bias_left_out_of_the_length():
    def wrong(taps, counted, factor, bound):
        pairs = [(seen.astype(jnp.float64), slope.astype(jnp.float64)) for seen, slope in taps]
        squares = sum(per_sample._squared(seen) * per_sample._squared(slope) for seen, slope in pairs)
        weight = jnp.where(counted, factor(jnp.sqrt(squares)), 0.0)[:, None]
        kept = [(jnp.where(weight > 0, seen, 0), jnp.where(weight > 0, weight * slope, 0)) for seen, slope in pairs]
        return [{"weight": seen.T @ slope, "bias": jnp.sum(slope, axis=0)} for seen, slope in kept]

    return [(per_sample, "_by_layer", wrong)]


@mutant("missed", "the sum of a batch is clipped instead of its records")
def sum_clipped_instead_of_records():
    everything = with_clip(lambda length, bound: jnp.where(jnp.isfinite(length), 1.0, 0.0))[0][2]

    def wrong(protection, *rest):
        total = everything(protection, *rest)
        length = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(total)))
        return jax.tree.map(lambda leaf: leaf * clip_factor(length, protection.clip_norm), total)

    return [(private_training, "_clipped_sum", wrong)]


@mutant("missed", "sums are divided by the realised batch size")
def division_by_the_realised_batch():
    kept = {}

    def counting(bits, count, probability, capacity):
        places, taken = poisson_batch(bits, count, probability, capacity)
        kept["size"] = jnp.maximum(jnp.sum(taken), 1).astype(jnp.float32)
        return places, taken

    def wrong(model, params, total, count):
        return mean_with_penalty(model, params, total, kept["size"])

    return [(private_training, "poisson_batch", counting), (private_training, "_mean_with_penalty", wrong)]


@mutant("missed", "noise is drawn for half of a leaf and used twice")
def noise_tiled_over_half_a_leaf():
    def wrong(source, values, std, key):
        rows = values.shape[0]
        if values.ndim < 2 or rows % 2:
            return noised(source, values, std, key)
        half = noised(source, jnp.zeros_like(values[: rows // 2]), std, key)
        return values + jnp.concatenate([half, half])

    return [(private_training, "noised", wrong)]


@mutant("missed", "uniform noise of the right variance")
def uniform_noise():
    edge = math.sqrt(3.0)
    return with_noise_drawn(lambda key, shape: jax.random.uniform(key, shape, jnp.float32, -edge, edge))


@mutant("missed", "noise and batches repeat after four rounds")
def noise_repeats_after_four_rounds():
    return with_key(lambda root, number, stream, index: device_key(root, number % 4, stream, index))


@mutant("missed", "one key for all devices")
def one_key_for_all_devices():
    return with_key(lambda root, number, stream, index: device_key(root, number, stream, 0 * index))


@mutant("missed", "batches of a fixed size, charged as Poisson")
def fixed_size_batches():
    def wrong(bits, count, probability, capacity):
        order = jnp.argsort(jnp.where(jnp.arange(bits.shape[0]) < count, bits.astype(jnp.float64), jnp.inf))
        places = jnp.pad(order, (0, max(0, capacity - bits.shape[0])))[:capacity]
        return places, jnp.arange(capacity) < jnp.rint(probability * count).astype(int)

    return with_batches(wrong)


@mutant("missed", "pairs of records share a coin")
def pairs_share_a_coin():
    def wrong(bits, count, probability, capacity):
        half = (bits.shape[0] + 1) // 2
        return poisson_batch(jnp.tile(bits[:half], 2)[: bits.shape[0]], count, probability, capacity)

    return with_batches(wrong)


@mutant("found", "noise divided by the square root of the batch size")
def noise_over_root_of_batch():
    return with_noise_scaled(lambda std: std / math.sqrt(128))


@mutant("found", "noise 5 % low")
def noise_five_percent_low():
    return with_noise_scaled(lambda std: 0.95 * std)


@mutant("found", "noise and batches are used again in every second step")
def keys_reused_on_alternate_steps():
    def fold(key, number):
        return jax.random.fold_in(key, number if isinstance(number, int) else number // 2)

    shim = types.SimpleNamespace(**{name: getattr(jax, name) for name in ("lax", "tree", "grad", "Array")})
    shim.random = types.SimpleNamespace(fold_in=fold)
    return [(private_training, "jax", shim)]


# Thought of after the audit was finished


@mutant("afterwards", "lengths of gradients in single precision, where small squares are zero")
def length_in_single_precision():
    def wrong(taps, counted, factor, bound):
        squares = sum((per_sample._squared(seen) + 1.0) * per_sample._squared(slope) for seen, slope in taps)
        weight = jnp.where(counted, factor(jnp.sqrt(squares)), 0.0)[:, None]
        kept = [(jnp.where(weight > 0, seen, 0), jnp.where(weight > 0, weight * slope, 0)) for seen, slope in taps]
        return [
            {"weight": (seen.T @ slope).astype(jnp.float64), "bias": jnp.sum(slope, axis=0).astype(jnp.float64)}
            for seen, slope in kept
        ]

    return [(per_sample, "_by_layer", wrong)]


@mutant("afterwards", "the length of the first layer's gradient is taken for that of all")
def length_of_the_first_layer_alone():
    def wrong(taps, counted, factor, bound):
        first = per_sample._squared(taps[0][1].astype(jnp.float64)) * (per_sample._squared(taps[0][0]) + 1.0)
        weight = jnp.where(counted, factor(jnp.sqrt(first)), 0.0)[:, None]
        kept = [(jnp.where(weight > 0, seen, 0), jnp.where(weight > 0, weight * slope, 0)) for seen, slope in taps]
        return [{"weight": seen.T @ slope, "bias": jnp.sum(slope, axis=0)} for seen, slope in kept]

    return [(per_sample, "_by_layer", wrong)]


@mutant("afterwards", "every coordinate is clipped to the length instead of the gradient")
def coordinates_clipped():
    def wrong(taps, counted, factor, bound):
        total = []
        for seen, slope in taps:
            own = jnp.where(counted[:, None], slope, 0.0)
            outer = jnp.clip(seen[:, :, None] * own[:, None, :], -bound, bound)
            bias = jnp.clip(own, -bound, bound)
            parts = {"weight": outer, "bias": bias}
            total.append({name: jnp.sum(part, axis=0, dtype=jnp.float64) for name, part in parts.items()})
        return total

    return [(per_sample, "_by_layer", wrong)]


@mutant("afterwards", "noise multiplied by the learning rate once too often")
def noise_scaled_by_the_learning_rate():
    return with_noise_scaled(lambda std: 0.5 * std)


@mutant("afterwards", "noise 1 % low")
def noise_one_percent_low():
    return with_noise_scaled(lambda std: 0.99 * std)


@mutant("afterwards", "records are taken twice as often as charged")
def sampling_probability_doubled():
    return with_batches(
        lambda bits, count, probability, capacity: poisson_batch(bits, count, jnp.minimum(2 * probability, 1), capacity)
    )


@mutant("afterwards", "records are taken 2 % more often than charged")
def sampling_probability_two_percent_high():
    return with_batches(
        lambda bits, count, probability, capacity: poisson_batch(bits, count, 1.02 * probability, capacity)
    )


@mutant("afterwards", "the last record is never taken")
def last_record_never_taken():
    return with_batches(
        lambda bits, count, probability, capacity: poisson_batch(bits, count - 1, probability, capacity)
    )


@mutant("afterwards", "places without a record count as records")
def absent_places_counted():
    return with_batches(
        lambda bits, count, probability, capacity: poisson_batch(bits, bits.shape[0], probability, capacity)
    )


@mutant("afterwards", "batches have no more places than their expected size")
def capacity_too_small():
    def wrong(bits, count, probability, capacity):
        places, taken = poisson_batch(bits, count, probability, capacity)
        return places, taken & (jnp.arange(capacity) < probability * count)

    return with_batches(wrong)


@mutant("afterwards", "the same batches in every round, with fresh noise")
def batches_repeat_in_every_round():
    return with_key(
        lambda root, number, stream, index: device_key(
            root, 0 * number if stream is device_side.Stream.BATCH else number, stream, index
        )
    )


@mutant("afterwards", "neighbouring values have noise of one sign")
def neighbours_share_a_sign():
    def draw(key, shape):
        flat = standard_normal(key, (math.prod(shape),))
        first = jnp.repeat(flat[::2], 2)[: flat.size]
        return (jnp.abs(flat) * jnp.sign(first)).reshape(shape)

    return with_noise_drawn(draw)


@mutant("afterwards", "noise cut off at two stds and stretched to the right variance")
def noise_truncated_at_two_stds():
    return with_noise_drawn(lambda key, shape: jax.random.truncated_normal(key, -2.0, 2.0, shape, jnp.float32) / 0.8796)


@mutant("afterwards", "Laplace noise of the right variance")
def laplace_noise():
    return with_noise_drawn(lambda key, shape: jax.random.laplace(key, shape, jnp.float32) / math.sqrt(2.0))


@mutant("afterwards", "noise drawn in half precision")
def noise_in_half_precision():
    return with_noise_drawn(lambda key, shape: standard_normal(key, shape).astype(jnp.float16).astype(jnp.float32))


@mutant("afterwards", "noise picked at random from a pool of 4,096 fresh values")
def noise_from_a_pool():
    def draw(key, shape):
        pool = standard_normal(key, (4_096,))
        return pool[jax.random.randint(jax.random.fold_in(key, 1), shape, 0, pool.size)]

    return with_noise_drawn(draw)


@mutant("afterwards", "noise of every second step is that of the step before with the other sign")
def antithetic_steps():
    fold_in, sign = jax.random.fold_in, {}

    def fold(key, number):
        if isinstance(number, int):
            return fold_in(key, number)
        sign["of step"] = jnp.where(number % 2, -1.0, 1.0)
        return fold_in(key, number // 2)

    def wrong(source, values, std, key):
        return values + sign["of step"] * noised(source, jnp.zeros_like(values), std, key)

    shim = types.SimpleNamespace(**{name: getattr(jax, name) for name in ("lax", "tree", "grad", "Array")})
    shim.random = types.SimpleNamespace(fold_in=fold)
    return [(private_training, "jax", shim), (private_training, "noised", wrong)]


@mutant("afterwards", "a device counts one step fewer than it makes in a round")
def one_step_not_charged():
    trained = client.DeviceClient._trained

    def wrong(self, state, *rest):
        after = trained(self, state, *rest)
        made = after.spent - state.spent
        return dataclasses.replace(after, spent=after.spent - (made > 1))

    return [(client.DeviceClient, "_trained", wrong)]


@mutant("afterwards", "the ledger charges half of the sampling probability")
def half_of_the_sampling_charged():
    enforcement = record_level.RecordLevel.enforcement

    def wrong(self, *given):
        right = enforcement(self, *given)
        return dataclasses.replace(right, sampling=right.sampling / 2)

    return [(record_level.RecordLevel, "enforcement", wrong)]


@mutant("afterwards", "devices are given a budget a hundred times too large")
def budget_too_large():
    most = privacy_filter.Budget._of_one_kind
    return [(privacy_filter.Budget, "_of_one_kind", lambda self, kind: 100 * most(self, kind))]
