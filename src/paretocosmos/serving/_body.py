"""Bodies of requests: read with limits, and never more of them than there is room for."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar, final

from starlette.requests import Request

from paretocosmos.serving._refusal import refuse, shown

__all__ = ["Bodies", "parsed"]

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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reader")

    async def read(self, request: Request, understand: Callable[[bytes], Understood]) -> Understood:
        """What a body says; the room it takes is free again afterwards.

        Args:
            request: whose body has not been read.
            understand: refuses, or gives what is wanted; in a thread where that takes long.
        """
        self._check_head(request)
        parts: list[bytes] = []
        size, more = 0, True
        try:
            async with asyncio.timeout(self._timeout):
                while more:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        refuse("the client left before its body was complete", status=400)
                    part, more = message.get("body", b""), message.get("more_body", False)
                    size += len(part)
                    self._held += len(part)
                    if size > self._max:
                        self._refuse_size(f"{size:,} and more")
                    if self._held > max(ROOM, self._max):
                        refuse("too many large requests at once: try again", status=429)
                    parts.append(part)
            body = b"".join(parts)
            if size <= SMALL:
                return understand(body)
            return await asyncio.get_running_loop().run_in_executor(self._thread, understand, body)
        except TimeoutError:
            refuse(f"the body did not arrive within {self._timeout:g} s", status=408)
        finally:
            self._held -= size

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _check_head(self, request: Request) -> None:
        headers = request.headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            refuse(
                f"the body is JSON, found {shown(kind)}: send it with the header Content-Type: "
                "application/json",
                status=415,
            )
        if headers.get("content-encoding", "identity").lower() != "identity":
            refuse("the body is sent as it is, not packed", status=415)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._max:
            self._refuse_size(f"{int(length[:20]):,}")

    def _refuse_size(self, found: str) -> NoReturn:
        refuse(f"a body has at most {self._max:,} bytes, found {found}: send several", status=413)


def parsed(body: bytes, keys: tuple[str, ...]) -> dict[str, Any]:
    """The JSON object in a body, with no other keys than these.

    >>> parsed(b'{"knee": true}', ("knee", "max"))
    {'knee': True}
    """
    try:
        content = json.loads(body, parse_constant=_no_number)
    except RecursionError:
        refuse("the body is JSON, found lists in lists too deep to read", status=400)
    except ValueError as error:  # malformed, no UTF-8, NaN, or a number with thousands of digits
        refuse(f"the body is JSON, which this is not: {str(error)[:100]}", status=400)
    if not isinstance(content, dict):
        refuse(f"the body is a JSON object, found {shown(content)}")
    for key in content:
        if key not in keys:
            refuse(f"unknown key {shown(key)}; known: {', '.join(keys)}")
    return content


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON; write null for a missing value")
