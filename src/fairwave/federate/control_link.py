"""Devices' keys are made known to a SuperLink, all of them over one connection; Flower's command takes a second each.

Beside `fleet_link` and `grid_pace` this is the only file that uses modules of Flower which it does not document.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.proto.control_pb2 import RegisterNodeRequest
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from fairwave.errors import FederationError
from fairwave.federate.link_errors import named

_REFUSED, _KNOWN = 412, "already in use"
"""Flower refuses many things with this code: its words tell which."""


def register_keys(address: str, authority: Path, public_keys: Iterable[Path]) -> dict[Path, str | None]:
    """Make keys known; the number of each one's node, or None for a key that the SuperLink has already."""
    nodes: dict[Path, str | None] = {}
    version = RuntimeVersionHttpInterceptor(component_name="flwr")
    with ControlHttpClient.from_server_address(address, False, authority.read_bytes(), [version]) as client:
        for path in public_keys:
            key = serialization.load_ssh_public_key(path.read_bytes())
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise FederationError(f"{path}: no elliptic-curve key; make one with 'fairwave federate init'")
            try:
                with named(address):
                    answer = client.RegisterNode(RegisterNodeRequest(public_key=public_key_to_bytes(key)))
                nodes[path] = str(answer.node_id)
            except FederationError as error:
                cause = error.__cause__
                if not (isinstance(cause, httpx.HTTPStatusError) and _is_known(cause.response)):
                    raise
                nodes[path] = None
    return nodes


def _is_known(answer: httpx.Response) -> bool:
    return answer.status_code == _REFUSED and _KNOWN in answer.text
