"""Rules that score contribution, side by side on the same updates; `SCORE_RULES` lists them, and one more is a line."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax

from fairwave.errors import ArgumentError
from fairwave.extensions import SCHEMES
from fairwave.learning.model import Tree
from fairwave.policy.contribution import Similarity, similarity
from fairwave.policy.updates import Updates
from fairwave.schemes.scheme import Memory, Scheme, SchemeSettings
from fairwave.types import Params, PerDevice


class RoundSeen(NamedTuple):
    """What rules see of a round, for all devices."""

    updates: Updates
    """The updates, each of which was also tried on samples of the access point's own."""
    new_model: Params
    """The model after the round."""
    deviation: PerDevice
    """The deviation factors after the round, by the scenario's own similarity, memory and defences."""
    noise_std: PerDevice | None
    """The std of training noise that devices report, where similarities are to leave it out."""


@dataclasses.dataclass(frozen=True)
class ScoreRule:
    """A way to score contribution: the more the better, in any unit."""

    name: str
    summary: str
    """What it looks at, in a line."""
    score: Callable[[SchemeSettings, RoundSeen, Memory], tuple[PerDevice, Memory]]
    """From a round, and what is remembered of earlier ones, to everybody's score and what is remembered next."""
    start: Callable[[SchemeSettings, int, Params], Memory] = lambda settings, num_devices, model: ()
    """What is remembered before the first round."""


def _agreement(kind: Similarity, summary: str) -> ScoreRule:
    def score(settings: SchemeSettings, seen: RoundSeen, memory: Memory) -> tuple[PerDevice, Memory]:
        updates = seen.updates
        return similarity(kind, seen.new_model, updates.rows, updates.arrived, seen.noise_std), memory

    return ScoreRule(kind, summary, score)


def scheme_rule(name: str) -> ScoreRule:
    """The scores by which a scheme rewards devices, its memory and its removals included."""
    scheme: Scheme = SCHEMES.get(name, "schemes")
    combine, scores = scheme.combine, scheme.scores
    if combine is None or scores is None:
        raise ArgumentError(f"scheme '{name}': has no scores of contribution; choose one that has 'scores'")

    def score(settings: SchemeSettings, seen: RoundSeen, memory: Memory) -> tuple[PerDevice, Memory]:
        _, memory = combine(settings, seen.updates, memory)
        return scores(settings, seen.updates, memory), memory

    return ScoreRule(name, scheme.summary, score, scheme.start)


def _own(settings: SchemeSettings, seen: RoundSeen, memory: Memory) -> tuple[PerDevice, Memory]:
    return 1.0 - seen.deviation, memory


def _alone(settings: SchemeSettings, seen: RoundSeen, memory: Memory) -> tuple[PerDevice, Memory]:
    return seen.updates.gain, memory


SCORE_RULES: tuple[ScoreRule, ...] = (
    _agreement("literal", "This is the cosine of the update with the new model, as the paper prints it."),
    _agreement("update", "This is the cosine of the update with the mean update."),
    _agreement("leave_one_out", "This is the cosine of the update with the mean of the others' updates."),
    ScoreRule(
        "deviation", "This is 1 minus the deviation factor of the scenario's own access point, with its defences.", _own
    ),
    ScoreRule(
        "alone",
        "This is the fall of the loss on the access point's own samples from the update alone, as in 'held_out'.",
        _alone,
    ),
    *map(scheme_rule, ("cgsv", "cffl", "rffl", "iafl")),
)
"""What is compared with the truth, in the order of tables."""


def first_memories(settings: SchemeSettings, num_devices: int, model: Params) -> tuple[Tree, ...]:
    """What every rule remembers before the first round."""
    return tuple(rule.start(settings, num_devices, model) for rule in SCORE_RULES)


@functools.partial(jax.jit, static_argnums=0)
def scores_of_all(
    settings: SchemeSettings, seen: RoundSeen, memories: tuple[Tree, ...]
) -> tuple[dict[str, PerDevice], tuple[Tree, ...]]:
    """Every rule's scores of a round by its name, and what each remembers next."""
    both = [rule.score(settings, seen, memory) for rule, memory in zip(SCORE_RULES, memories, strict=True)]
    return {rule.name: scores for rule, (scores, _) in zip(SCORE_RULES, both, strict=True)}, tuple(
        memory for _, memory in both
    )
