"""What every request passes: who may ask, and what is counted."""

import hmac
import time
from collections.abc import Collection
from typing import final

from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paretocosmos.serving._measures import Measures
from paretocosmos.serving._settings import is_loopback

__all__ = ["BEARER", "Framing", "Gate"]

BEARER = HTTPBearer(scheme_name="token", auto_error=False)

OPEN = "/health"
"""Whoever asks whether a server lives needs no token."""


@final
class Framing:
    """Refuses a body with two lengths: a proxy may have taken the other one (RFC 9112, 6.1).

    What follows it on the connection could then be a request that the proxy never saw.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        answering = self._app
        if scope["type"] == "http":
            names = {name for name, _ in scope["headers"]}
            alone = b"content-length" not in names and scope["http_version"] != "1.0"
            if b"transfer-encoding" in names and not alone:
                why = "a body has a Content-Length or, in HTTP/1.1, a Transfer-Encoding: send one"
                answering = JSONResponse({"error": why}, 400, {"Connection": "close"})
        await answering(scope, receive, send)


@final
class Gate:
    """Asks for the token, or for a loopback name where there is none; counts and times.

    It stands before all routes, so that nothing is said of them without the token. Starlette's
    `TrustedHostMiddleware` takes no address of IPv6, and refuses without a sentence.

    Args:
        app: what answers.
        measures: what is counted.
        paths: what is counted by itself; the rest is `other`.
        token: what clients must send.
    """

    def __init__(
        self, app: ASGIApp, measures: Measures, paths: Collection[str], token: str | None
    ) -> None:
        self._app, self._measures, self._paths = app, measures, paths
        self._wanted = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, answering = time.perf_counter(), 500, self._app

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._measures.open.inc()
        try:
            await self._check(HTTPConnection(scope))
        except HTTPException as error:
            answering = JSONResponse({"error": error.detail}, error.status_code, error.headers)
        try:
            await answering(scope, receive, sending)
        finally:
            self._measures.open.dec()
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._measures.request(path, status, time.perf_counter() - started)

    async def _check(self, request: HTTPConnection) -> None:
        if self._wanted is not None:
            given = await BEARER(request)
            sent = b"" if given is None else given.credentials.encode()
            if request.scope["path"] != OPEN and not hmac.compare_digest(sent, self._wanted):
                why = "a token is needed: send the header Authorization: Bearer TOKEN"
                raise HTTPException(401, why, {"WWW-Authenticate": "Bearer"})
            return
        # a page on the web can lead its own name to this machine, but not change the header
        host = request.headers.get("host", "localhost").lower()
        # an address of IPv6 stands in brackets
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if not is_loopback(name):
            why = "this server answers to localhost alone; start it with a token"
            raise HTTPException(421, why)
