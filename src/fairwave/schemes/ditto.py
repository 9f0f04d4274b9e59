"""Peer: Ditto (Li et al., ICML 2021): every device keeps a model of its own, pulled towards the shared one.

Half of a device's iterations go into either model, so that energy and deadline are those of the other schemes.
"""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import PersonalModels, Scheme

ditto = Scheme(
    name="ditto",
    summary="In Ditto (Li et al., ICML 2021), every device also keeps its own model, which is pulled towards the "
    "shared one.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
    personal_models=PersonalModels(beside=True, weight=lambda peers: peers.ditto_weight),
    exchanges_gradients=False,
)
