"""Middleware of every request: authentication, framing, and counting."""

import hmac
import time
from collections.abc import Collection
from typing import final

from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paretocosmos.serving.metrics import Metrics
from paretocosmos.serving.settings import is_loopback

BEARER = HTTPBearer(scheme_name="token", auto_error=False)

# Probes of whether a server lives need no token.
OPEN = "/health"


@final
class FramingMiddleware:
    """Refuses a body with two lengths: a proxy may have taken the other one (RFC 9112, 6.1).

    What follows it on the connection could then be a request that the proxy never saw.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        responder = self._app
        if scope["type"] == "http":
            names = {name for name, _ in scope["headers"]}
            chunks_only = b"content-length" not in names and scope["http_version"] != "1.0"
            if b"transfer-encoding" in names and not chunks_only:
                why = "a body has a Content-Length or, in HTTP/1.1, a Transfer-Encoding: send one"
                responder = JSONResponse({"error": why}, 400, {"Connection": "close"})
        await responder(scope, receive, send)


@final
class AuthMiddleware:
    """Asks for the token, or for a loopback name where there is none; counts and times.

    It stands before all routes, so that nothing is said of them without the token. Starlette's
    `TrustedHostMiddleware` takes no address of IPv6, and refuses without a sentence.

    Args:
        app: what answers.
        metrics: what is counted.
        paths: what is counted by itself; the rest is `other`.
        token: what clients must send.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, paths: Collection[str], token: str | None
    ) -> None:
        self._app, self._metrics, self._paths = app, metrics, paths
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, responder = time.perf_counter(), 500, self._app

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        # Counted before the check: refused requests are load, too.
        self._metrics.open.inc()
        try:
            await self._check(HTTPConnection(scope))
        except HTTPException as error:
            responder = JSONResponse({"error": error.detail}, error.status_code, error.headers)
        try:
            await responder(scope, receive, send_counted)
        finally:
            self._metrics.open.dec()
            # A label per unknown path would let clients fill the memory with counters.
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.count_request(path, status, time.perf_counter() - started)

    async def _check(self, request: HTTPConnection) -> None:
        if self._token is not None:
            credentials = await BEARER(request)
            sent = b"" if credentials is None else credentials.credentials.encode()
            # In constant time, so that the token cannot be guessed letter by letter.
            if request.scope["path"] != OPEN and not hmac.compare_digest(sent, self._token):
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
