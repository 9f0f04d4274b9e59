"""What a defence is: which of the access point's acts it changes. Whatever it leaves out stays as it was.

Every act is of the access point, from what it knows: updates, its own model, the noise it put into each copy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairwave.policy.deviation import Yardstick
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, Params, PerDevice, Scalar, UpdatePerDevice

PAST = 3
"""Rounds that are looked back."""
SKETCH = 1024
"""Length of a sketch: cosines are right to about 0.03."""


class Evidence(eqx.Module):
    """What the access point knows of a round's participants when their updates are in."""

    updates: UpdatePerDevice
    arrived: FlagPerDevice
    """Whose update is there to be judged."""
    told_noise_std: PerDevice
    """What each device says about the noise of its training; 0 without."""
    model: Params
    """The access point's own, of which the copies were made."""
    copy_noise: Float[Array, "past device param"]
    """What was added to it in each device's latest copies, the newest first; zero before there was one."""
    copy_change: UpdatePerDevice
    """How each device's copy differs from its copy before; zero unless a defence asks for it."""
    last_sketches: Float[Array, "past device sketch"]
    """Sketches of what each device sent last, the newest first; zero before it sent anything."""
    gain: PerDevice
    """By how much each update alone lowers the loss on the access point's own samples; NaN where it has none."""


Suspects: TypeAlias = Callable[[Defences, Evidence], FlagPerDevice]
Amends: TypeAlias = Callable[[Defences, Evidence], UpdatePerDevice]
Believes: TypeAlias = Callable[[Defences, Evidence], PerDevice]


@dataclasses.dataclass(frozen=True)
class Defence:
    """One small file each."""

    name: str
    summary: str
    """What it does, and to whom."""
    suspects: Suspects | None = None
    """Who is caught: the update is not used, and the device deviates fully."""
    amends: Amends | None = None
    """What is made of the updates before they are used."""
    compares: Amends | None = None
    """What of each update is compared with others' to score its device; the rest counts as disagreement."""
    believes: Believes | None = None
    """What is believed of the noise that devices say their training has."""
    credits: Believes | None = None
    """Share of each score that counts."""
    yardstick: Yardstick | None = None
    """By which score all are measured."""
    looks_back: bool = False
    """Needs the noise that devices were sent, or sketches of what they sent before."""
    needs_copies: bool = False
    """Needs the copies that devices had before."""
    needs_samples: bool = False
    """Needs data of the access point's own."""
    removes: bool = False
    """Devices that are caught again and again are removed for good."""


def sketches(updates: UpdatePerDevice) -> Float[Array, "device sketch"]:
    """Short vectors whose cosines are nearly those of the updates: values with random signs, summed in groups."""
    signs = jax.random.rademacher(jax.random.key(0), updates.shape[1:], updates.dtype)
    padded = jnp.pad(updates * signs[None, :], ((0, 0), (0, -updates.shape[1] % SKETCH)))
    return jnp.sum(padded.reshape(updates.shape[0], -1, SKETCH), axis=1)


def median_of(values: PerDevice, counted: FlagPerDevice) -> Scalar:
    """Of the devices that count; NaN if there are none."""
    return jnp.nanmedian(jnp.where(counted, values, jnp.nan))
