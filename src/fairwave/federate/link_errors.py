"""What can go wrong between a device and the SuperLink, in words for whoever runs the device."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from typing import TypeVar

import httpx

from fairwave.errors import FederationError

_PAUSES_S = (0.5, 1.0, 2.0)
_PASSING = (408, 413, 429)
"""HTTP codes of a gate that is busy."""
_BUSY = (429, 502, 503, 504)
_Asked = TypeVar("_Asked")
_Answered = TypeVar("_Answered")


class Trouble(enum.Enum):
    """Why a request failed; all of them may pass."""

    UNREACHABLE = "unreachable"
    """No connection, or an answer that says that the SuperLink is not there."""
    UNTRUSTED = "untrusted"
    """The server's certificate is not one of the federation's authority."""
    REFUSED = "refused"
    """The SuperLink does not know this device's key or its node, or not yet again."""
    UNREADABLE = "unreadable"
    """An answer that is not as Flower makes them."""


class LinkError(FederationError):
    """A request that failed."""

    def __init__(self, trouble: Trouble, why: str) -> None:
        super().__init__(why)
        self.trouble = trouble


class named:
    """Turns what Flower and HTTP raise into errors that say what is the matter."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, LinkError):
            return
        raise _in_words(self._address, error) from error


def persistently(request: Callable[[_Asked], _Answered], content: _Asked) -> _Answered:
    """Make a request that may be repeated; again, if the connection breaks or the gate is busy."""
    for pause_s in _PAUSES_S:
        try:
            return request(content)
        except httpx.HTTPStatusError as error:
            if error.response.status_code not in _BUSY:
                raise
        except httpx.TransportError:
            pass
        time.sleep(pause_s)
    return request(content)


def _in_words(address: str, error: Exception) -> LinkError:
    if isinstance(error, httpx.HTTPStatusError):
        code = error.response.status_code
        if code in range(400, 500) and code not in _PASSING:
            return LinkError(
                Trouble.REFUSED,
                f"{address}: the SuperLink refuses this device (HTTP {code}): its key is not registered or was "
                "revoked, or the SuperLink was restarted",
            )
        return LinkError(Trouble.UNREACHABLE, f"{address}: HTTP {code}")
    if isinstance(error, httpx.TransportError):
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return LinkError(
                Trouble.UNTRUSTED,
                f"{address}: its certificate is not vouched for by this federation's authority, or is not valid now; "
                "check the address, this machine's clock and the certificate",
            )
        return LinkError(Trouble.UNREACHABLE, f"{address}: no connection ({type(error).__name__})")
    return LinkError(Trouble.UNREADABLE, f"{address}: an answer that is not as Flower makes them")
