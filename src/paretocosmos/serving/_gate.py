"""What every request passes: who may ask, and what is counted."""

import hmac
import time
from typing import final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paretocosmos.serving._answer import json_response
from paretocosmos.serving._measures import Measures
from paretocosmos.serving._settings import is_loopback

__all__ = ["OPEN", "PATHS", "Gate"]

PATHS = ("/predict", "/front", "/choose", "/health", "/metrics", "/docs", "/openapi.json")
OPEN = "/health"
"""Whoever asks whether a server lives needs no token."""


@final
class Gate:
    """Asks for the token, or for a loopback name where there is none; counts and times.

    Args:
        app: what answers.
        measures: what is counted.
        token: what clients must send.
    """

    def __init__(self, app: ASGIApp, measures: Measures, *, token: str | None) -> None:
        self._app, self._measures = app, measures
        self._wanted = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500
        path = scope["path"] if scope["path"] in PATHS else "other"

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._measures.open += 1
        try:
            refused = self._refused(scope, path)
            if refused is None:
                await self._app(scope, receive, sending)
            else:
                code, why = refused
                await json_response({"error": why}, status=code)(scope, receive, sending)
        finally:
            self._measures.open -= 1
            self._measures.request(path, status, time.perf_counter() - started)

    def _refused(self, scope: Scope, path: str) -> tuple[int, str] | None:
        if self._wanted is not None and path != OPEN:
            given = next((v for name, v in scope["headers"] if name == b"authorization"), b"")
            scheme, _, sent = given.partition(b" ")
            known = hmac.compare_digest(sent.strip(), self._wanted)
            if scheme.lower() != b"bearer" or not known:
                return 401, "a token is needed: send the header Authorization: Bearer TOKEN"
        if self._wanted is None:
            # a page on the web can lead its own name to this machine, but not change the header
            host = next((v for name, v in scope["headers"] if name == b"host"), b"localhost")
            if not is_loopback(_name_of(host.decode("latin-1").lower())):
                return 421, "this server answers to localhost alone; start it with a token"
        return None


def _name_of(host: str) -> str:
    """A host without its port; one of IPv6 stands in brackets."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
