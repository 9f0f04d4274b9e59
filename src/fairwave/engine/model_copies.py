"""Every device's copy of the model, in one of two forms.

`StoredCopies` are models, one per device: needed where something looks at copies, such as defences and rewards.
`AddressedCopies` are what copies are made of. Noise is addressed, not consumed: a copy is a model, a level of noise and
the round of its release, a few numbers for each device instead of a model each. It is made anew whenever the device
computes with it. A model is kept for as long as somebody holds a copy of it, which outlasts a round only for devices in
outage.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from fairwave.keys import Stream, device_key
from fairwave.learning.model import Model, Tree, flat_rows
from fairwave.policy.deviation import released_copy
from fairwave.privacy.noise import standard_normal
from fairwave.types import Count, FlagPerDevice, Key, Params, PerDevice, Scalar, UpdatePerDevice

ROOM = 8
"""Models that there is place for at first; doubled whenever all are held."""

MakeCopy: TypeAlias = Callable[[Tree, Key, Tree], Tree]
"""From the shared models, the root of noise and one device's part to the device's copy as a model."""


class Copies(eqx.Module):
    """All devices' copies."""

    @property
    @abc.abstractmethod
    def of_devices(self) -> Tree:
        """Each device's part, with a leading device axis: its copy, or what its copy is made of."""

    @property
    @abc.abstractmethod
    def shared_models(self) -> Tree | None:
        """The models that devices' parts refer to; None if they refer to none."""

    @property
    @abc.abstractmethod
    def make_copy(self) -> MakeCopy:
        """How one device's part becomes a model."""

    @abc.abstractmethod
    def as_models(self, root: Key) -> Tree:
        """Every device's copy as a model, with a leading device axis."""

    @abc.abstractmethod
    def after(
        self,
        params: Tree,
        std: PerDevice,
        served: FlagPerDevice,
        round_index: Count,
        rows: Callable[[], UpdatePerDevice],
    ) -> Copies:
        """The copies once the new ones went to the devices that are served; the others keep theirs.

        `rows` makes the new copies as flat vectors, for the form that stores them.
        """

    @abc.abstractmethod
    def with_room(self) -> Copies:
        """The same copies, with place for one more model."""

    @abc.abstractmethod
    def has_room(self, models: int) -> bool:
        """Whether there is place for that many more models."""

    @abc.abstractmethod
    def compact(self) -> Copies:
        """The same copies as they are stored in a checkpoint: equal copies give equal arrays."""

    @abc.abstractmethod
    def resized(self, places: int) -> Copies:
        """With that many places for models, the first of which stay."""

    @property
    @abc.abstractmethod
    def places(self) -> int:
        """Models that there is place for."""


class StoredCopies(Copies):
    """Copies that are kept as models."""

    models: Tree
    """With a leading device axis."""

    @property
    def of_devices(self) -> Tree:
        """Each device's model."""
        return self.models

    @property
    def shared_models(self) -> None:
        """There are none."""

    @property
    def make_copy(self) -> MakeCopy:
        """The part is the copy."""
        return as_it_is

    def as_models(self, root: Key) -> Tree:
        """The models themselves."""
        return self.models

    def after(
        self,
        params: Tree,
        std: PerDevice,
        served: FlagPerDevice,
        round_index: Count,
        rows: Callable[[], UpdatePerDevice],
    ) -> StoredCopies:
        """The new copies of those who are served, and the old ones of the others."""
        before, unravel = flat_rows(self.models)
        return StoredCopies(jax.vmap(unravel)(jnp.where(served[:, None], rows(), before)))

    def with_room(self) -> StoredCopies:
        """There is always room."""
        return self

    def has_room(self, models: int) -> bool:
        """There is always room."""
        return True

    def compact(self) -> StoredCopies:
        """They are as compact as can be."""
        return self

    def resized(self, places: int) -> StoredCopies:
        """Their number is that of the devices."""
        return self

    @property
    def places(self) -> int:
        """One for each device."""
        return int(jax.tree.leaves(self.models)[0].shape[0])


class CopyAddress(eqx.Module):
    """What one device's copy is made of, or with a leading axis several devices'."""

    place: Count
    """Which of the models it is a copy of."""
    released: Count
    """The round of its release; -1 before the first."""
    std: Scalar
    """Noise std."""
    noise_index: Count
    """The device whose noise it carries: its own, or the one whose noise everybody gets."""


class AddressedCopies(Copies):
    """Copies that are made anew from models and addressed noise."""

    models: Tree
    """With a leading axis."""
    each: CopyAddress
    """With a leading device axis."""

    @property
    def of_devices(self) -> CopyAddress:
        """Each device's address."""
        return self.each

    @property
    def shared_models(self) -> Tree:
        """The models that addresses refer to."""
        return self.models

    @property
    def make_copy(self) -> MakeCopy:
        """Model plus noise."""
        return made

    def as_models(self, root: Key) -> Tree:
        """Every device's copy, made."""
        return _all_made(self, root)

    def after(
        self,
        params: Tree,
        std: PerDevice,
        served: FlagPerDevice,
        round_index: Count,
        rows: Callable[[], UpdatePerDevice],
    ) -> AddressedCopies:
        """The new model takes the place of one that nobody holds any more."""
        held = jnp.zeros(self.places, bool).at[jnp.where(served, self.places, self.each.place)].set(True, mode="drop")
        free = jnp.argmin(held)
        new = CopyAddress(free, round_index, std, self.each.noise_index)
        return AddressedCopies(
            models=jax.tree.map(lambda kept, leaf: kept.at[free].set(leaf), self.models, params),
            each=jax.tree.map(lambda leaf, old: jnp.where(served, leaf, old).astype(old.dtype), new, self.each),
        )

    def compact(self) -> AddressedCopies:
        """Without the models that nobody holds, the oldest first."""
        _, first, new = np.unique(np.asarray(self.each.released), return_index=True, return_inverse=True)
        held = np.asarray(self.each.place)[first]
        models = jax.tree.map(lambda leaf: np.asarray(leaf)[held], self.models)
        place: Any = new.reshape(-1).astype(self.each.place.dtype)  # stays on the host, where checkpoints are written
        return AddressedCopies(models, dataclasses.replace(self.each, place=place))

    def with_room(self) -> AddressedCopies:
        """With place for one more model."""
        held, places = self._held, _first_places(self.each.place.size)
        while places <= held:
            places *= 2
        return self if places <= self.places else self.resized(places)

    def has_room(self, models: int) -> bool:
        """Whether there is place for that many more models."""
        return self._held + models <= self.places

    @property
    def _held(self) -> int:
        """Models that somebody has a copy of."""
        return np.unique(np.asarray(self.each.place)).size

    def resized(self, places: int) -> AddressedCopies:
        """With that many places for models, the first of which stay."""

        def one(leaf: Array) -> Array:
            kept = leaf[:places]
            return jnp.zeros((places, *leaf.shape[1:]), leaf.dtype).at[: kept.shape[0]].set(kept)

        return dataclasses.replace(self, models=jax.tree.map(one, self.models))

    @property
    def places(self) -> int:
        """Models that there is place for."""
        return int(jax.tree.leaves(self.models)[0].shape[0])


def first_model(model: Model, zero: bool, root: Key) -> Tree:
    """The model that everybody begins with: random, or `zero` in every value."""
    params = model.init(device_key(root, 0, Stream.INITIAL_MODEL, 0))
    return jax.tree.map(jnp.zeros_like, params) if zero else params


def first_copies(params: Tree, devices: Array, alike: bool) -> AddressedCopies:
    """Before the first round: the same model for all, without noise; `alike` if all are to carry the same noise."""
    places = _first_places(devices.size)
    none = jnp.zeros(devices.shape, devices.dtype)
    return AddressedCopies(
        models=jax.tree.map(lambda leaf: jnp.zeros((places, *leaf.shape), leaf.dtype).at[0].set(leaf), params),
        each=CopyAddress(none, none - 1, jnp.zeros(devices.shape, jnp.float64), none if alike else devices),
    )


def _first_places(num_devices: int) -> int:
    return min(ROOM, num_devices + 1)


def as_it_is(models: Tree, root: Key, copy: Tree) -> Tree:
    """A copy that is kept as a model."""
    return copy


@jax.jit
def _all_made(copies: AddressedCopies, root: Key) -> Tree:
    return jax.vmap(lambda each: made(copies.models, root, each))(copies.each)


def copy_noise(root: Key, round_index: Count, noise_index: Count, size: int) -> Params:
    """Standard noise of one copy that is released in a round."""
    return standard_normal(device_key(root, round_index, Stream.RELEASE_NOISE, noise_index), (size,))


def made(models: Tree, root: Key, copy: CopyAddress) -> Tree:
    """One device's copy as a model."""
    flat, unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[copy.place], models))
    return unravel(_noised(root, copy, flat))


@jax.custom_batching.custom_vmap
def _noised(root: Key, copy: CopyAddress, flat: Params) -> Params:
    """One device's model with the noise of its copy."""

    def noisy() -> Params:
        noise = copy_noise(root, copy.released, copy.noise_index, flat.size)
        return released_copy(flat, copy.std.astype(flat.dtype)[None], noise[None])[0]

    either: Params = jax.lax.cond(copy.std > 0.0, noisy, lambda: flat)
    return either


@_noised.def_vmap
def _all_noised(
    size: int, mapped: Any, root: Key, copies: CopyAddress, flat: Params | UpdatePerDevice
) -> tuple[UpdatePerDevice, bool]:
    """Many devices' models with their noise. Mapped as it is, the condition above would draw noise for nothing."""
    axes = jax.tree.map(lambda each: 0 if each else None, mapped)
    together = jax.vmap(_noised.fun, in_axes=axes, axis_size=size)
    same = jax.vmap(lambda root, copy, one: one, in_axes=axes, axis_size=size)
    given = (root, copies, flat)
    return jax.lax.cond(jnp.any(copies.std > 0.0), together, same, *given), True
