"""Which tasks a device answers: those of its scenario, in the order of a round, with a copy that can be honest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairwave.federate.client_state import ClientState
from fairwave.federate.protocol import Phase, Task, fits
from fairwave.learning.named_arrays import NamedArrays
from fairwave.privacy.modes.mode import mode_of
from fairwave.runs.experiment import digest
from fairwave.scenario.parameters import Scenario

_NOT_AGREED: Any = {
    "plugins": True,
    "run": {"num_rounds", "seed", "keep_models"},
    "learning": {"late_rounds", "late_decay"},
}
"""Parts of a scenario that change nothing for a device."""
LONGEST = 1e6
"""Length of a copy, or of a mean gradient, beyond which a device does not compute with it: no honest model is near."""


def is_hostile(task: Task, like: Mapping[str, np.ndarray]) -> bool:
    """Whether what the access point sent has another layout than agreed, is not finite, or is too long to be honest."""
    return not 0.0 <= task.deviation <= 1.0 or any(
        not fits(flat, like) or not _length(flat) <= LONGEST
        for flat in (task.copy, task.mean_gradient)
        if flat is not None
    )


def _length(flat: np.ndarray) -> float:
    """The length of an array; not at most any number where anything is not finite."""
    return float(np.sqrt(np.sum(np.square(flat, dtype=np.float64))))


def is_unforeseen(task: Task, exchanges: bool) -> bool:
    """Whether the scenario has no such exchange: a gradient without the noise that it would need stays here."""
    if task.phase is Phase.GRADIENT:
        return not exchanges or task.copy is None
    return (task.copy is None) != exchanges  # the copy comes with the first exchange of a round, and only with that


def is_out_of_turn(task: Task, copy: NamedArrays | None, state: ClientState, exchanges: bool) -> bool:
    """Whether a task belongs to a round that is over, not begun, or begun with another `copy` of the model."""
    if task.round < state.round:
        return True
    if copy is None:
        return task.round != state.round or (exchanges and state.gradient is None)
    return task.round == state.round and digest_of(copy) != digest_of(state.copy)


_LATER = {
    "learning": (
        "update_bits",
        "features",
        "activation",
        "rate_decay",
        "optimizer",
        "momentum",
        "views",
        "mirrored_views",
    ),
    "data": ("classes", "target", "label_noise", "input_gain", "input_offset"),
    "peers": (
        "mr_mtl_weight",
        "fedprox_weight",
        "feddyn_weight",
        "effective_steps",
        "server_rate",
        "server_momentum",
        "adaptive_rate",
        "second_moment_decay",
        "adaptive_tau",
    ),
    "defences": (
        "aggregator",
        "attacker_share",
        "bounding_ratio",
        "bounding_length",
        "bounding_noise",
        "reference_iterations",
        "false_alarm",
    ),
}
"""Parameters that scenarios did not have at first: at their defaults they are left out, so that federations go on."""


def agreement_digest(scenario: Scenario, scheme: str, noise: str) -> bytes:
    """A digest of all that decides what a device releases. How many rounds there are to be may be changed later, and
    what the access point does with late answers.

    A federation that proves something has one scheme and one seed; others may have several.
    """
    described = scenario.model_dump(mode="json", exclude=_NOT_AGREED)
    for group, names in _LATER.items():
        fields = type(getattr(scenario, group)).model_fields
        for name in names:
            if getattr(getattr(scenario, group), name) == fields[name].default:
                del described[group][name]
    track = [scheme, scenario.run.seed] if mode_of(scenario.privacy).proves else []
    return hashlib.blake2b(json.dumps([described, track, noise], sort_keys=True).encode(), digest_size=16).digest()


def digest_of(*parts: NamedArrays | None) -> bytes:
    """A digest of what a device is asked: the same digest, the same question."""
    taken = hashlib.blake2b(digest_size=16)
    for arrays in parts:
        named = sorted((arrays or {}).items())
        taken.update(repr((arrays is None, [name for name, _ in named])).encode())
        taken.update(digest(*(array for _, array in named)))
    return taken.digest()
