"""Peer: FedNova (Wang et al., NeurIPS 2020): updates count per local step, whatever number of steps a device made.

A device divides its update by its own number of steps and multiplies it by the effective number, before it sends it:
the access point takes the mean, and learns nothing about steps. The effective number is a parameter that everybody
knows, `peers.effective_steps`, where the authors take the mean of the devices' own numbers; the method leaves it free.
"""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Scheme

fednova = Scheme(
    name="fednova",
    summary="In FedNova (Wang et al., NeurIPS 2020), devices scale their updates to the same number of local steps.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
    scales_to_steps=True,
    exchanges_gradients=False,
)
