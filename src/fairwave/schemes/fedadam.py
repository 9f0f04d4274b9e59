"""Peer: FedAdam (Reddi et al., ICLR 2021): the access point takes the mean update for a gradient of Adam."""

from __future__ import annotations

from fairwave.policy.server_optimizers import adam_second_moment
from fairwave.schemes.adaptive_server import adaptive_server

fedadam = adaptive_server(
    name="fedadam",
    summary="In FedAdam (Reddi et al., ICLR 2021), the access point moves its model with Adam.",
    second_moment=lambda peers, second, mean: adam_second_moment(second, mean, peers.second_moment_decay),
    momentum=lambda peers: peers.server_momentum,
)
