"""What a defence is: which of the access point's acts it changes. Whatever it leaves out stays as it was.

Every act is of the access point, from what it knows: updates, its own model, the noise it put into each copy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp

from fairwave.policy.access_point import Yardstick
from fairwave.scenario.defences import Defences
from fairwave.types import FlagPerDevice, Params, PerDevice, Scalar, UpdatePerDevice


class Evidence(eqx.Module):
    """What the access point knows of a round's participants when their updates are in."""

    updates: UpdatePerDevice
    arrived: FlagPerDevice
    """Whose update is there to be judged."""
    told_noise_std: PerDevice
    """What each device says about the noise of its training; 0 without."""
    model: Params
    """The access point's own, of which the copies were made."""
    copy_noise: UpdatePerDevice
    """What was added to it in each device's copy."""
    copy_change: UpdatePerDevice
    """How each device's copy differs from its copy before."""
    last_updates: UpdatePerDevice
    """What each device sent last; zero if nothing yet."""
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
    """Needs what devices were sent and what they sent before."""
    needs_samples: bool = False
    """Needs data of the access point's own."""
    removes: bool = False
    """Devices that are caught again and again are removed for good."""


def lengths(updates: UpdatePerDevice) -> PerDevice:
    """Euclidean length of each update."""
    return jnp.sqrt(jnp.sum(updates**2, axis=1))


def median_of(values: PerDevice, counted: FlagPerDevice) -> Scalar:
    """Of the devices that count; NaN if there are none."""
    return jnp.nanmedian(jnp.where(counted, values, jnp.nan))


def cosine(one: UpdatePerDevice, other: UpdatePerDevice) -> PerDevice:
    """Of each pair of rows; 0 where either has no length."""
    product = lengths(one) * lengths(other)
    return jnp.where(product > 0.0, jnp.sum(one * other, axis=1) / jnp.where(product > 0.0, product, 1.0), 0.0)
