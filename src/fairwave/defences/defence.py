"""A defence: one step in how the access point judges a round's updates before it uses them.

Each takes the updates and the verdict so far, and returns both: it may refuse updates, change them, or change how they
are scored. It knows what the access point knows: updates, its own model, and the noise it put into each copy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fairwave.extensions import DEFENCES
from fairwave.policy.deviation import Yardstick, best_score
from fairwave.policy.updates import ServerKnowledge, Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, PerDevice, Scalar, UpdatePerDevice

PAST = 3
"""Rounds that defences look back."""
SKETCH = 1024
"""Length of a sketch: cosines are right to about 0.03."""


class Verdict(eqx.Module):
    """What the access point thinks of a round's updates, with a leading participant axis."""

    findings: dict[str, Bool[Array, " participant"]]
    """A mask for each defence that refuses updates, by its name: whose update it refused."""
    compared: UpdatePerDevice
    """The part of each update that is compared with the others' to score its device."""
    credit: PerDevice
    """The share of each score that counts."""
    yardstick: Yardstick = eqx.field(static=True)
    """The score by which all others are measured."""

    @property
    def caught(self) -> FlagPerDevice:
        """A mask of the updates that any defence has refused."""
        return jnp.any(jnp.stack(list(self.findings.values())), axis=0)


Judge: TypeAlias = Callable[[Defences, Updates, Verdict], tuple[Updates, Verdict]]


@dataclasses.dataclass(frozen=True)
class Defence:
    """One step of the judgement, and what it needs to have at hand."""

    extends: ClassVar[str] = "defences"

    name: str
    summary: str
    """What it does, and to whom."""
    order: int
    """When it acts: defences act in rising order. Those that refuse updates come first (below 100)."""
    judge: Judge
    """Updates and verdict before it, to updates and verdict after it."""
    refuses: bool = False
    """It refuses updates, which is reported under its name."""
    looks_back: bool = False
    """It needs the noise that devices were sent, or sketches of what they sent before."""
    finds_copy_noise: bool = False
    """It takes the noise of a copy in an update for a sign that the copy was sent back."""
    needs_copies: bool = False
    """It needs the copies that devices had before."""
    needs_server_data: bool = False
    """It needs data of the access point's own."""
    removes_devices: bool = False
    """Devices whose updates are refused again and again are removed for good."""


def in_use(settings: Defences) -> list[Defence]:
    """The defences of a scenario, in the order in which they act."""
    used: list[Defence] = [DEFENCES.get(name, "defences.use") for name in settings.use]
    return sorted(used, key=lambda defence: (defence.order, defence.name))


def first_verdict(updates: Updates, refused: dict[str, FlagPerDevice]) -> Verdict:
    """Before any defence: nothing is refused but what is given."""
    everything = jnp.ones(updates.arrived.shape)
    return Verdict(findings=refused, compared=updates.rows, credit=everything, yardstick=best_score)


def refusing(name: str, suspects: Callable[[Defences, Updates], FlagPerDevice]) -> Judge:
    """A judgement that refuses the updates of suspects: they are not used, and their devices deviate fully."""

    def judge(settings: Defences, updates: Updates, verdict: Verdict) -> tuple[Updates, Verdict]:
        caught = updates.arrived & suspects(settings, updates)
        rows = jnp.where(caught[:, None], 0.0, updates.rows)
        left = dataclasses.replace(updates, arrived=updates.arrived & ~caught, rows=rows)
        return left, dataclasses.replace(verdict, findings=verdict.findings | {name: caught}, compared=rows)

    return judge


def crediting(credits: Callable[[Defences, Updates], PerDevice]) -> Judge:
    """A judgement that lets a share of each score count."""

    def judge(settings: Defences, updates: Updates, verdict: Verdict) -> tuple[Updates, Verdict]:
        return updates, dataclasses.replace(verdict, credit=verdict.credit * credits(settings, updates))

    return judge


def changing(changed: Callable[[Defences, Updates], UpdatePerDevice]) -> Judge:
    """A judgement that changes the updates before they are used."""

    def judge(settings: Defences, updates: Updates, verdict: Verdict) -> tuple[Updates, Verdict]:
        rows = changed(settings, updates)
        return dataclasses.replace(updates, rows=rows), dataclasses.replace(verdict, compared=rows)

    return judge


def knowledge_of(updates: Updates) -> ServerKnowledge:
    """What the access point knows beside the updates; the engine provides it whenever a defence is in use."""
    if updates.knowledge is None:
        raise ValueError("a defence was called without the access point's knowledge")
    return updates.knowledge


def sketches(rows: UpdatePerDevice) -> Float[Array, "device sketch"]:
    """Short vectors whose cosines are nearly those of the updates: values with random signs, summed in groups."""
    signs = jax.random.rademacher(jax.random.key(0), rows.shape[1:], rows.dtype)
    padded = jnp.pad(rows * signs[None, :], ((0, 0), (0, -rows.shape[1] % SKETCH)))
    return jnp.sum(padded.reshape(rows.shape[0], -1, SKETCH), axis=1)


def median_of(values: PerDevice, counted: FlagPerDevice) -> Scalar:
    """The median of the devices that count; NaN if there are none."""
    return jnp.nanmedian(jnp.where(counted, values, jnp.nan))
