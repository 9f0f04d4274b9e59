"""Peer: FedAdagrad (Reddi et al., ICLR 2021): the more a value has moved, the less it is moved; without momentum."""

from __future__ import annotations

from fairwave.policy.server_optimizers import adagrad_second_moment
from fairwave.schemes.adaptive_server import adaptive_server

fedadagrad = adaptive_server(
    name="fedadagrad",
    summary="In FedAdagrad (Reddi et al., ICLR 2021), the access point moves its model with Adagrad, without momentum.",
    second_moment=lambda peers, second, mean: adagrad_second_moment(second, mean),
    momentum=lambda peers: 0.0,
)
