"""Middleware of every request: authentication, framing, and counters in Prometheus's format."""

import hmac
import os
import time
from collections.abc import Collection
from typing import Any, final

from fastapi.security import HTTPBearer
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paretocosmos.serving.settings import is_loopback

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


@final
class Metrics:
    """Counters of one process; several workers have one each, told apart by `process`."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the series
        # A registry of its own: the default one is global, and tests start several servers.
        self.registry, self._process = CollectorRegistry(), str(os.getpid())

        def make(kind: Any, name: str, about: str, *labels: str, **options: Any) -> Any:
            full_name, label_names = f"paretocosmos_{name}", ("process", *labels)
            metric = kind(full_name, about, label_names, registry=self.registry, **options)
            return metric if labels else metric.labels(self._process)

        self._requests = make(Counter, "requests", "Requests answered.", "path", "status")
        self._errors = make(Counter, "errors", "Requests answered with 4xx or 5xx.")
        self._rows = make(Counter, "rows", "Rows predicted.")
        self.open = make(Gauge, "open_requests", "Requests being answered.")
        self.waiting = make(Gauge, "waiting_rows", "Rows in the queue.")
        about = "From the request's head to its answer."
        self._seconds = make(Histogram, "request_seconds", about, "path", buckets=SECONDS)
        about = "Rows of a pass through the network."
        self._batch_rows = make(Histogram, "batch_rows", about, buckets=SIZES)
        about = "Requests of a pass."
        self._batch_requests = make(Histogram, "batch_requests", about, buckets=SIZES)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(self._process, path, status).inc()
        self._seconds.labels(self._process, path).observe(seconds)
        if status >= 400:
            self._errors.inc()

    def count_batch(self, rows: int, *, requests: int) -> None:
        """Count a batch that goes through the network."""
        self._rows.inc(rows)
        self._batch_rows.observe(rows)
        self._batch_requests.observe(requests)


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
