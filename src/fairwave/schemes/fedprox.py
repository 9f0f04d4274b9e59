"""Peer: FedProx (Li et al., MLSys 2020): devices train from their copy with a pull back towards it.

The pull is towards the model that training starts from, so that it does not bring the noise of a copy into the update.
That slow devices may do less, the other half of FedProx, is up to plans here, in every scheme.
"""

from __future__ import annotations

from fairwave.policy.deviation import uniform_levels
from fairwave.policy.rules.max_power import max_power as rule
from fairwave.schemes.scheme import Scheme

fedprox = Scheme(
    name="fedprox",
    summary="In FedProx (Li et al., MLSys 2020), devices train from their copy and are pulled back towards it.",
    plan=rule,
    noise_levels=uniform_levels,
    same_noise_for_all=True,
    copy_pull=lambda peers: peers.fedprox_weight,
    exchanges_gradients=False,
)
