"""Only what a device could not have copied from what it was sent is compared with others' work."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from fairwave.defences.defence import Defence, Verdict, knowledge_of
from fairwave.policy.rows import lengths, without_span
from fairwave.policy.updates import Updates
from fairwave.scenario.defence_parameters import Defences
from fairwave.types import Params, UpdatePerDevice


def _judge(settings: Defences, updates: Updates, verdict: Verdict) -> tuple[Updates, Verdict]:
    """Compares the remainders; what an update shares with its device's copies counts as disagreement."""
    known = knowledge_of(updates)

    def one(update: Params, noise: Params, change: Params) -> Params:
        return without_span(update, (known.model, noise, change))

    remainder: UpdatePerDevice = jax.vmap(one)(updates.rows, known.copy_noise[0], known.copy_change)
    whole = lengths(updates.rows)
    new = jnp.where(whole > 0.0, lengths(remainder) / jnp.where(whole > 0.0, whole, 1.0), 0.0)
    return updates, dataclasses.replace(verdict, compared=remainder, credit=verdict.credit * new)


projection = Defence(
    name="projection",
    summary="The access point scores only the part of an update that its device could not copy: not the model, "
    "its noise or its change.",
    order=140,
    judge=_judge,
    looks_back=True,
    needs_copies=True,
)
