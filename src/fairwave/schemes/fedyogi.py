"""Peer: FedYogi (Reddi et al., ICLR 2021): as FedAdam, with a second moment that falls more slowly."""

from __future__ import annotations

from fairwave.policy.server_optimizers import yogi_second_moment
from fairwave.schemes.adaptive_server import adaptive_server

fedyogi = adaptive_server(
    name="fedyogi",
    summary="In FedYogi (Reddi et al., ICLR 2021), the access point moves its model with Yogi.",
    second_moment=lambda peers, second, mean: yogi_second_moment(second, mean, peers.second_moment_decay),
    momentum=lambda peers: peers.server_momentum,
)
