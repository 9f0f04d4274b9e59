"""Devices' keys are made known to a SuperLink, all of them over one connection; Flower's command takes a second each.

Beside `fleet_link` this is the only file that uses modules of Flower which it does not document.
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

_KNOWN = 409


def register_keys(address: str, authority: Path, public_keys: Iterable[Path]) -> None:
    """Admit the devices with these keys; keys that the SuperLink knows already stay admitted."""
    version = RuntimeVersionHttpInterceptor(component_name="flwr")
    with ControlHttpClient.from_server_address(address, False, authority.read_bytes(), [version]) as client:
        for path in public_keys:
            key = serialization.load_ssh_public_key(path.read_bytes())
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise FederationError(f"{path}: no elliptic-curve key; make one with 'fairwave federate init'")
            try:
                with named(address):
                    client.RegisterNode(RegisterNodeRequest(public_key=public_key_to_bytes(key)))
            except FederationError as error:
                cause = error.__cause__
                if not (isinstance(cause, httpx.HTTPStatusError) and cause.response.status_code == _KNOWN):
                    raise
