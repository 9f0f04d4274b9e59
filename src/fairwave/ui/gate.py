"""Who may see the page: a check of every request, before anything else looks at it.

Whoever runs the dashboard has its token. Other pages in the same browser do not: they are refused by what browsers say
of them (Host against rebound names, Origin, Sec-Fetch-Site), and by a cookie that is not sent for them.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"
"""The parameter of an address that carries the token."""
CONTENT_POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
"""Scripts, styles, pictures and connections from this server alone, and none inline."""
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer that does not say otherwise."""


@dataclasses.dataclass(frozen=True)
class Door:
    """Where the page is served, and what opens it."""

    token: str
    port: int
    names: frozenset[str] = frozenset()
    """Names of this machine by which it may be called, besides localhost."""
    loopback: bool = True
    """Only this machine can reach it; else an address of any of its networks may be in the Host header."""

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers send those of all ports."""
        return f"fairwave-ui-{self.port}"

    def knows(self, host: str) -> bool:
        """Whether a Host header names this machine. A numeric address cannot be rebound, as a name can."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name == "localhost" or name in self.names
        return address.is_loopback or not self.loopback

    def opened_by(self, token: str) -> bool:
        """Whether it is the right token, in a time that does not depend on where it differs."""
        return secrets.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


class Gate:
    """Lets those requests through that are to read, come from no other page, and have the token."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, _guarded(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request goes no further; None if it does."""
        headers = Headers(scope=scope)
        if not self._door.knows(headers.get("host", "")):
            return _refused("not called by a name of this machine; open the address that 'fairwave ui' printed")
        if _from_elsewhere(headers):
            return _refused("asked by another page")
        if scope["method"] != "GET":
            return PlainTextResponse("this page is for reading alone\n", 405, {"Allow": "GET"})
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in asked if name == TOKEN]
        if given:
            if not self._door.opened_by(given[-1]):
                return _refused("wrong token; open the address that 'fairwave ui' printed")
            return self._welcome(scope, [(name, value) for name, value in asked if name != TOKEN])
        if not self._door.opened_by(_cookie(headers, self._door.cookie)):
            return _refused("no token; open the address that 'fairwave ui' printed")
        return None

    def _welcome(self, scope: Scope, asked: Iterable[tuple[str, str]]) -> Response | None:
        """From the page's address with the token to that without, which may be kept; other addresses are answered."""
        if scope["path"] != "/":
            return None
        query = urlencode(list(asked))
        response = RedirectResponse(f"/?{query}" if query else "/", 303)
        response.set_cookie(self._door.cookie, self._door.token, httponly=True, samesite="strict", path="/")
        return response


def _from_elsewhere(headers: Headers) -> bool:
    """Whether another page asks. Following a link is allowed: only whoever has the token gets further."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return True
    site, reason = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "navigate")
    return site not in ("none", "same-origin") and reason != "navigate"


def _cookie(headers: Headers, name: str) -> str:
    try:
        cookies: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[name].value if name in cookies else ""


def _refused(why: str) -> Response:
    return PlainTextResponse(f"fairwave: {why}\n", 403)


def _guarded(send: Send) -> Send:
    """Adds to every answer the headers that it does not have."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded
