"""Samples that attackers have changed: marked copies of their own, of a class of the attackers' choice.

They stand behind the true samples, so that a device that trains on them holds other sample numbers and nothing else.
What honest devices hold stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from fairwave.adversaries.behaviour import Behaviour, Trigger
from fairwave.data.partition import Holdings
from fairwave.engine.active_behaviour import Active
from fairwave.extensions import BEHAVIOURS
from fairwave.scenario.cheating_parameters import Adversary

EVERY = 2
"""One of so many of an attacker's samples is marked; it trains on the others as they are."""

Held: TypeAlias = Int[Array, "device held"]


class PoisonedSamples:
    """The training data with marked copies behind them."""

    def __init__(self, samples: tuple[Array, Array], holdings: Holdings, entries: Sequence[Adversary]) -> None:
        inputs, labels = samples
        self._places: dict[str, Array] = {}
        """For each behaviour with a trigger, by its name: the number that replaces each true sample's."""
        for name in dict.fromkeys(entry.behaviour for entry in entries):
            trigger = BEHAVIOURS[name].trigger
            if trigger is None:
                continue
            attackers = [device for entry in entries if entry.behaviour == name for device in entry.devices]
            changed = np.unique(np.concatenate([_own(holdings, device)[::EVERY] for device in attackers]))
            places = np.arange(samples[1].shape[0])
            places[changed] = labels.shape[0] + np.arange(changed.size)
            self._places[name] = jnp.asarray(places, holdings.samples.dtype)
            inputs = jnp.concatenate([inputs, trigger.mark(samples[0][changed])])
            labels = jnp.concatenate([labels, jnp.full(changed.size, trigger.target, labels.dtype)])
        self.samples = (inputs, labels)

    def held(self, acting: Sequence[Active], held: Held) -> Held:
        """The sample numbers that devices train on in a round; `held` has those of the true samples that they hold."""
        given = held
        for each in acting:
            if each.behaviour.name in self._places:
                given = each.only(self._places[each.behaviour.name][held], given)
        return given


def _own(holdings: Holdings, device: int) -> np.ndarray:
    """All samples that a device ever holds."""
    return np.asarray(holdings.samples[device, : holdings.shares[device]])


def trigger_of(entries: Sequence[Adversary]) -> Trigger | None:
    """The trigger of the first entry that has one; None where no backdoor is played."""
    played: list[Behaviour] = [BEHAVIOURS[entry.behaviour] for entry in entries]
    return next((each.trigger for each in played if each.trigger is not None), None)


def marked_test(trigger: Trigger | None, test: tuple[Array, Array]) -> tuple[Array, Array] | None:
    """Marked test samples of all classes but the target, labelled as the attacker wants; None if there are none."""
    if trigger is None:
        return None
    inputs, labels = test
    others = np.flatnonzero(np.asarray(labels) != trigger.target)
    if others.size == 0:
        return None
    return trigger.mark(inputs[others]), jnp.full(others.size, trigger.target, labels.dtype)
