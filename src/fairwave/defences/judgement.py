"""All defences of a scenario together: who is caught, and what of each update is used, compared and believed."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairwave.defences import ALL
from fairwave.defences.defence import Defence, Evidence
from fairwave.policy.deviation import Yardstick, best_score
from fairwave.policy.rows import lengths
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import FlagPerDevice, PerDevice, UpdatePerDevice


class Judgement(eqx.Module):
    """What comes of the evidence."""

    updates: UpdatePerDevice
    """As they are aggregated."""
    compared: UpdatePerDevice
    """As they are compared with each other."""
    credit: PerDevice
    """Share of each score that counts."""
    told_noise_std: PerDevice
    findings: Int[Array, " device"]
    """Bits, one per defence in the order of the registry; 0 for a device that was not caught."""
    yardstick: Yardstick = eqx.field(static=True)

    @property
    def caught(self) -> FlagPerDevice:
        """Whose update is not used."""
        return self.findings > 0


def in_use(settings: Defences) -> list[tuple[int, Defence]]:
    """The defences of a scenario with their bits, in the order in which they act."""
    return [(bit, defence) for bit, (name, defence) in enumerate(ALL.items()) if name in settings.use]


def judge(settings: Defences, evidence: Evidence) -> Judgement:
    """Suspicion first, each among those who are not caught yet; then what is made of the rest."""
    used = in_use(settings)
    findings = jnp.zeros(evidence.arrived.shape, jnp.int32)
    for bit, defence in used:
        if defence.suspects is not None:
            caught = evidence.arrived & defence.suspects(settings, evidence)
            findings = findings | (caught.astype(jnp.int32) << bit)
            evidence = dataclasses.replace(
                evidence,
                arrived=evidence.arrived & ~caught,
                updates=jnp.where(caught[:, None], 0.0, evidence.updates),
            )
    compared, credit = evidence.updates, jnp.ones(evidence.arrived.shape)
    yardstick: Yardstick = best_score
    for _, defence in used:
        if defence.believes is not None:
            evidence = dataclasses.replace(evidence, told_noise_std=defence.believes(settings, evidence))
        if defence.credits is not None:
            credit = credit * defence.credits(settings, evidence)
        if defence.amends is not None:
            evidence = dataclasses.replace(evidence, updates=defence.amends(settings, evidence))
            compared = evidence.updates
        if defence.compares is not None:
            compared = defence.compares(settings, evidence)
            whole = lengths(evidence.updates)
            credit = credit * jnp.where(whole > 0.0, lengths(compared) / jnp.where(whole > 0.0, whole, 1.0), 0.0)
        yardstick = defence.yardstick or yardstick
    return Judgement(evidence.updates, compared, credit, evidence.told_noise_std, findings, yardstick)
