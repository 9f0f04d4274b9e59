"""Peer: MR-MTL (Liu et al., NeurIPS 2022): devices train their own models alone, pulled towards the mean of them.

A device's own model begins as the initial one, makes all of its iterations, and is what it uses; it sends the change of
it. The access point adds the mean of the changes to its model, which thereby stays the mean of the devices' models as
long as every change arrives whole. What is sent comes from the same noised sums as with other schemes, so that a proof
about records covers it.
"""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import PersonalModels, Scheme

mr_mtl = Scheme(
    name="mr_mtl",
    summary="In MR-MTL (Liu et al., NeurIPS 2022), devices train only their own models, which are pulled towards "
    "their mean.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
    personal_models=PersonalModels(beside=False, weight=lambda peers: peers.mr_mtl_weight),
    exchanges_gradients=False,
)
