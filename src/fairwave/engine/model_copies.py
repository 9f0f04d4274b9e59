"""Every device's copy of the model, kept as what it is made of.

Noise is addressed, not consumed: a copy is a model, a level of noise and the round of its release, a few numbers for
each device instead of a model each. It is made anew whenever the device computes with it. A model is kept for as long
as somebody holds a copy of it, which outlasts a round only for devices in outage.
"""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from fairwave.keys import Stream, device_key
from fairwave.learning.model import Tree
from fairwave.policy.deviation import released_copy
from fairwave.privacy.noise import standard_normal
from fairwave.types import Count, FlagPerDevice, Key, Params, PerDevice, Scalar

ROOM = 8
"""Models at first; doubled whenever all are held."""


class Copy(eqx.Module):
    """One device's copy, or with a leading axis some devices'."""

    place: Count
    """Which of the models it is of."""
    released: Count
    """The round of its release; -1 before the first."""
    std: Scalar
    noise_index: Count
    """Whose noise it carries: the device's own, or everybody's."""


class Copies(eqx.Module):
    """All devices' copies."""

    models: Tree
    """With a leading axis."""
    each: Copy
    """With a leading device axis."""

    def after(self, params: Tree, std: PerDevice, served: FlagPerDevice, number: Count) -> Copies:
        """The copies once a new model went to some devices; the others keep theirs."""
        held = jnp.zeros(self.places, bool).at[jnp.where(served, self.places, self.each.place)].set(True, mode="drop")
        free = jnp.argmin(held)
        new = Copy(free, number, std, self.each.noise_index)
        return Copies(
            models=jax.tree.map(lambda kept, leaf: kept.at[free].set(leaf), self.models, params),
            each=jax.tree.map(lambda leaf, old: jnp.where(served, leaf, old).astype(old.dtype), new, self.each),
        )

    def compact(self) -> Copies:
        """Without the models that nobody holds, the oldest first: the same copies always give the same arrays."""
        _, first, new = np.unique(np.asarray(self.each.released), return_index=True, return_inverse=True)
        held = np.asarray(self.each.place)[first]
        models = jax.tree.map(lambda leaf: np.asarray(leaf)[held], self.models)
        place = new.reshape(-1).astype(self.each.place.dtype)
        compact: Copies = eqx.tree_at(lambda copies: (copies.models, copies.each.place), self, (models, place))
        return compact

    def with_room(self) -> Copies:
        """With place for one more model."""
        held, places = np.unique(np.asarray(self.each.place)).size, _first_places(self.each.place.size)
        while places <= held:
            places *= 2
        return self if places <= self.places else self.resized(places)

    def resized(self, places: int) -> Copies:
        """With so many places for models, the first of which stay."""

        def one(leaf: Array) -> Array:
            kept = leaf[:places]
            return jnp.zeros((places, *leaf.shape[1:]), leaf.dtype).at[: kept.shape[0]].set(kept)

        return dataclasses.replace(self, models=jax.tree.map(one, self.models))

    @property
    def places(self) -> int:
        """Models that there is place for."""
        return int(jax.tree.leaves(self.models)[0].shape[0])


def _first_places(num_devices: int) -> int:
    return min(ROOM, num_devices + 1)


def first_copies(params: Tree, devices: Array, alike: bool) -> Copies:
    """Before the first round: the same model for all, without noise."""
    places = _first_places(devices.size)
    none = jnp.zeros(devices.shape, devices.dtype)
    return Copies(
        models=jax.tree.map(lambda leaf: jnp.zeros((places, *leaf.shape), leaf.dtype).at[0].set(leaf), params),
        each=Copy(none, none - 1, jnp.zeros(devices.shape, jnp.float64), none if alike else devices),
    )


@jax.jit
def all_made(copies: Copies, root: Key) -> Tree:
    """Every device's copy as a model, with a leading device axis."""
    return jax.vmap(lambda each: made(copies.models, root, each))(copies.each)


def copy_noise(root: Key, number: Count, noise_index: Count, size: int) -> Params:
    """Standard noise of one copy that is released in a round."""
    return standard_normal(device_key(root, number, Stream.RELEASE_NOISE, noise_index), (size,))


def made(models: Tree, root: Key, copy: Copy) -> Tree:
    """One device's copy as a model."""
    flat, unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[copy.place], models))

    def noisy() -> Params:
        noise = copy_noise(root, copy.released, copy.noise_index, flat.size)
        return released_copy(flat, copy.std.astype(flat.dtype)[None], noise[None])[0]

    return unravel(jax.lax.cond(copy.std > 0.0, noisy, lambda: flat))
