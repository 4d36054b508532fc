"""Bodies of requests: read with limits, and never more of them than there is room for."""

import asyncio
from collections.abc import Callable
from typing import TypeVar, final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from paretocosmos.serving._refusal import shown

__all__ = ["Bodies"]

# Bytes of bodies that are being read at once, of all clients together.
ROOM = 256 * 1024 * 1024
# Bytes of a body that is understood on the event loop; a larger one would hold up the others.
SMALL = 65_536

Understood = TypeVar("Understood")


@final
class Bodies:
    """Reads bodies.

    Args:
        max_bytes: of one.
        timeout: seconds that one may take to arrive.
    """

    def __init__(self, *, max_bytes: int, timeout: float) -> None:
        self._max, self._timeout = max_bytes, timeout
        self._held = 0
        self._large = asyncio.Lock()

    async def read(self, request: Request, understand: Callable[[bytes], Understood]) -> Understood:
        """What a body says; the room it takes is free again afterwards.

        Args:
            request: whose body has not been read.
            understand: refuses, or gives what is wanted; in a thread where that takes long.
        """
        self._check_head(request)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._timeout):
                async for part in request.stream():
                    size += len(part)
                    self._held += len(part)
                    if size > self._max:
                        raise self._too_large(f"{size:,} and more")
                    if self._held > max(ROOM, self._max):
                        raise HTTPException(429, "too many large requests at once: try again")
                    parts.append(part)
            body = b"".join(parts)
            if size <= SMALL:
                return understand(body)
            async with self._large:
                return await asyncio.to_thread(understand, body)
        except TimeoutError as error:
            why = f"the body did not arrive within {self._timeout:g} s"
            raise HTTPException(408, f"{why}: send it faster, or in parts") from error
        except ClientDisconnect as error:
            raise HTTPException(400, "the client left before its body was complete") from error
        finally:
            self._held -= size

    def _check_head(self, request: Request) -> None:
        headers = request.headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            how = "send it with the header Content-Type: application/json"
            raise HTTPException(415, f"the body must be JSON, found {shown(kind)}: {how}")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "the body is sent as it is, not packed")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._max:
            raise self._too_large(f"{int(length[:20]):,}")

    def _too_large(self, found: str) -> HTTPException:
        return HTTPException(
            413, f"a body has at most {self._max:,} bytes, found {found}: send several"
        )
