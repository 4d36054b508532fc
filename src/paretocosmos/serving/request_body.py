"""Bodies of requests: read within limits, parsed, or refused in one sentence."""

import asyncio
import json
from collections.abc import Callable, Collection
from typing import Any, TypeVar, final

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

Model = TypeVar("Model", bound=BaseModel)
# Letters of what a client sent, in a sentence that answers it, and mistakes that are looked at.
MAX_LETTERS, MAX_MISTAKES = 60, 1000


def shorten_json(value: object) -> str:
    """Format a value of a client's JSON in few letters, however large it is.

    >>> shorten_json({"knee": None})
    '{"knee": null}'
    """
    text = json.dumps(value)
    return text if len(text) <= MAX_LETTERS else f"{text[:MAX_LETTERS]}..."


def parse_body(model: type[Model], body: bytes, *, columns: Collection[str] = ()) -> Model:
    """Parse a body; raise one sentence about whatever is wrong with it.

    Args:
        model: of the body, each field described as the rest of "`field` must be ...".
        body: the JSON.
        columns: of the rows in `inputs`, where they are a table's.
    """
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        why = f"the body must be JSON ({error})"
        raise HTTPException(400, f"{why}; write null for a missing value") from error
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _explain(error, model, columns) from error


def _explain(
    error: ValidationError, model: type[BaseModel], columns: Collection[str]
) -> HTTPException:
    # Listing every mistake of a body with a million of them would take longer than predicting.
    if error.error_count() > MAX_MISTAKES:
        return HTTPException(
            422, f"the body is wrong in {error.error_count():,} places: see /openapi.json"
        )
    mistakes: list[Any] = list(error.errors(include_url=False))
    # Mistakes deeper inside are often consequences of one further out.
    first = min(mistakes, key=lambda mistake: len(mistake["loc"]))  # the one nearest to the top
    location, kind, fields = first["loc"], first["type"], model.model_fields
    name, value, status = location[0] if location else "", shorten_json(first["input"]), 422
    if not location:
        why = f"the body must be a JSON object, found {value}"
    elif kind == "extra_forbidden":
        why = f"unknown key {shorten_json(name)}; known: {', '.join(fields)}"
    elif kind == "missing" and len(location) == 1:
        why = f"the body needs {' and '.join(f'`{key}`' for key in fields)}, found no `{name}`"
    elif kind == "too_long" and location == ("inputs",):
        status, limits = 413, first["ctx"]
        count = f"found {limits['actual_length']:,}: send several"
        why = f"a request can have at most {limits['max_length']:,} rows, {count}"
    elif len(location) > 2 and location[2] in columns:
        rule = "one category" if kind == "string_type" else "a finite number"
        why = f"row {location[1]} needs {rule} or null in the column `{location[2]}`, found {value}"
        if kind == "missing":
            why = f"row {location[1]} lacks `{location[2]}`: name every column, with null for none"
    else:
        where = f" in row {location[1]}" if len(location) > 1 and "inputs" in fields else ""
        why = f"`{name}` must be {fields[name].description}, found {value}{where}"
    return HTTPException(status, why)


# Bytes of bodies that are being read at once, of all clients together.
MAX_TOTAL_BYTES = 256 * 1024 * 1024
# Bytes of a body that is parsed on the event loop; a larger one would hold up the others.
MAX_INLINE_BYTES = 65_536

Parsed = TypeVar("Parsed")


@final
class BodyReader:
    """Reads bodies of requests within limits of size and time.

    Args:
        max_bytes: of one.
        timeout: seconds that one may take to arrive.
    """

    def __init__(self, *, max_bytes: int, timeout: float) -> None:
        self._max, self._timeout = max_bytes, timeout
        self._bytes_in_memory = 0
        self._large = asyncio.Lock()

    async def read(self, request: Request, parse: Callable[[bytes], Parsed]) -> Parsed:
        """Read and parse a body; the memory it takes counts until it is parsed.

        Args:
            request: whose body has not been read.
            parse: raises, or returns what is wanted; runs in a thread if the body is large.
        """
        self._check_head(request)
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._timeout):
                async for chunk in request.stream():
                    size += len(chunk)
                    # Counted over all clients: many requests below the limit could fill the memory
                    # together.
                    self._bytes_in_memory += len(chunk)
                    if size > self._max:
                        raise self._too_large(f"{size:,} and more")
                    if self._bytes_in_memory > max(MAX_TOTAL_BYTES, self._max):
                        raise HTTPException(429, "too many large requests at once: try again")
                    chunks.append(chunk)
            body = b"".join(chunks)
            if size <= MAX_INLINE_BYTES:
                return parse(body)
            # One large body at a time: parsing holds the interpreter's lock and takes memory.
            async with self._large:
                return await asyncio.to_thread(parse, body)
        except TimeoutError as error:
            why = f"the body did not arrive within {self._timeout:g} s"
            raise HTTPException(408, f"{why}: send it faster, or in parts") from error
        except ClientDisconnect as error:
            raise HTTPException(400, "the client left before its body was complete") from error
        finally:
            self._bytes_in_memory -= size

    def _check_head(self, request: Request) -> None:
        headers = request.headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            how = "send it with the header Content-Type: application/json"
            raise HTTPException(415, f"the body must be JSON, found {shorten_json(kind)}: {how}")
        # A compressed body could unpack to any size.
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "the body is sent as it is, not packed")
        # Refuse by the announced length before reading; the count while reading is what protects
        # us. The slice keeps `int` from parsing thousands of digits, which takes quadratic time.
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._max:
            raise self._too_large(f"{int(length[:20]):,}")

    def _too_large(self, size: str) -> HTTPException:
        return HTTPException(
            413, f"a body has at most {self._max:,} bytes, found {size}: send several"
        )
