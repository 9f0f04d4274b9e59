"""Peer: tilted empirical risk (Li et al., ICLR 2021): weights exponential in the loss."""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.performance_fairness import tilted_weights
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Inbox, Memory, Scheme, Terms
from fairwave.types import Params


def _combine(terms: Terms, inbox: Inbox, memory: Memory) -> tuple[Params, Memory]:
    return tilted_weights(inbox.told_loss, inbox.used, terms.peers.term_tilt) @ inbox.updates, memory


term = Scheme(
    name="term",
    plan=rule,
    levels=uniform_levels,
    combine=_combine,
    same_for_all=True,
    told_losses=True,
    exchanges=False,
)
