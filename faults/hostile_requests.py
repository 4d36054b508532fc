"""Hostile requests: what no client would send, and what a bad one does with its connection."""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from paretocosmos.serving.schemas import make_criteria_model

__all__ = ["Ask", "asks"]

End = Literal["answer", "half", "abort", "leave"]


@dataclass(frozen=True)
class Ask:
    """What is sent on one connection.

    Attributes:
        kind: of its fault, in words.
        sent: the bytes.
        end: what comes then: it waits for the answer; sends no more, which it says; aborts; or
            leaves without a word.
        alone: whether it must get a 400 and nothing more: what follows is no request.
    """

    kind: str
    sent: bytes
    end: End = "answer"
    alone: bool = False


PATHS = ("/", "/predict", "/choose", "/front", "/health", "/metrics", "/openapi.json")
METHODS = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "X-Y",
    "BREW",
]
ODD_PATHS = (
    *("/", "//", "/predict/", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/predict%00", "*"),
    *(
        "/predict?x=" + "a" * 5000,
        "/" + "a" * 60_000,
        "/%",
        "/%zz",
        "/%ff%fe",
        "/\x7f",
        "/predict#a",
    ),
    *("http://example.org/predict", "/predict;x", "/PREDICT", "/é", "\\predict", "/.", "/ /", ""),
)
LARGE = 10**400
WRONG: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, 5e-324, 2**63, -(2**63) - 1, LARGE),
    *("", "x", "nan", "1", "🙂", "\ud800", "\0", "x" * 5000, [], {}, [[]], [{}], {"": 0}, [None]),
    *([1], [[1]], [[[1]]], ["a", "b"], [True, False], [0.5, 0.6], [-1, 2], [1, 0, 0], [0, 0]),
    *([1e308, 1e308], [0.5, None], {"a": [1]}, [[0.5, 0.5]] * 3, [[1, 0], [1]], [LARGE, 0]),
)
RAW = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-1e999",
    b"9" * 6000,
    b"01",
    b"+1",
    b".5",
    b"1.",
)
KEYS = [*make_criteria_model(()).model_fields, "inputs"]


def asks(seed: int, good: dict[str, Any], token: str | None) -> Iterator[Ask]:
    """Hostile requests without end.

    Args:
        seed: chooses them.
        good: the JSON of a right prediction, to spoil.
        token: what a server wants; most have it, so that they come further.
    """
    draw = random.Random(seed)
    kinds: list[tuple[Callable[[random.Random, dict[str, Any], bytes], Ask], float]] = [
        (_no_http, 2),
        (_spoil_head, 2),
        (_path, 1),
        (_framing, 2),
        (_smuggled, 1),
        (_field, 6),
        (_column, 3),
        (_wish, 3),
        (_text, 3),
        (_large, 0.3),
        (_left, 1.5),
    ]
    makers, weights = zip(*kinds, strict=True)
    known = b"" if token is None else b"Authorization: Bearer %b\r\n" % token.encode()
    while True:
        if token is not None and draw.random() < 0.1:
            yield _token(draw, good)
        else:
            (maker,) = draw.choices(makers, weights)
            yield maker(draw, good, known)


def _head(path: str, known: bytes, *more: bytes, method: str = "POST") -> bytes:
    first = f"{method} {path} HTTP/1.1\r\n".encode("utf-8", "surrogateescape")
    named = b"".join(line + b"\r\n" for line in more)
    return first + b"Host: localhost\r\nConnection: close\r\n" + known + named


def _post(path: str, known: bytes, body: bytes, *more: bytes) -> bytes:
    kind = b"Content-Type: application/json"
    return _head(path, known, kind, b"Content-Length: %d" % len(body), *more) + b"\r\n" + body


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()


def _no_http(draw: random.Random, _good: dict[str, Any], _known: bytes) -> Ask:
    noise = draw.randbytes(draw.choice((1, 10, 1000, 70_000)))
    sent = draw.choice(
        (
            noise,
            noise + b"\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise,
            b"SSH-2.0-x\r\n\r\n",
            b"\0" * 1000 + b"\r\n\r\n",
            b"\r\n" * 5000,
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1 x\r\n\r\n",
            b"GET  /  HTTP/1.1\r\n\r\n",
            b" GET / HTTP/1.1\r\n\r\n",
            b"G\xc3\x89T / HTTP/1.1\r\n\r\n",
            b"GET / \r\n\r\n",
            b"POST /predict HTTP/1.0\r\n\r\n",
            b"a" * 200_000,
        )
    )
    return Ask("no HTTP", sent, "half")


def _spoil_head(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    body = _json(good)
    lines = (
        (b"NoColon",),
        (b": empty",),
        (b" folded: x",),
        (b"X: a\r\n b",),
        (b"X: \0",),
        (b"X: \xff\xfe\x80",),
        (b"X\xff: a",),
        (b"X Y: a",),
        (b"X: " + b"a" * 100_000,),
        tuple(b"X-%d: y" % n for n in range(draw.choice((100, 1000, 5000)))),
        (b"Host: example.org",),
        (b"Content-Type: text/plain",),
        (b"Content-Encoding: gzip",),
        (b"Expect: 100-continue",),
        (b"Expect: nonsense",),
        (b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Key: x"),
        (b"Upgrade: h2c", b"HTTP2-Settings: x"),
        (b"Cookie: " + b"a=b;" * 2000,),
        (b"Range: bytes=0-0,-1",),
        (b"Accept: application/xml",),
        (b"X-Forwarded-For: 1.2.3.4", b"Forwarded: for=x"),
        (b"Authorization: Basic \xff",),
    )
    sent = _post("/predict", known, body, *draw.choice(lines))
    hosts = (b"example.org", b"", b"[::1", b"127.0.0.1.example.org", b"\xff", b"localhost:99999")
    match draw.randrange(6):
        case 0:
            sent = sent.replace(b"\r\n", b"\n")
        case 1:
            at = draw.randrange(len(sent) - len(body))
            sent = sent[:at] + draw.randbytes(1) + sent[at + 1 :]
        case 2:
            sent = _post("/predict", known, body)
            sent = sent.replace(b"Host: localhost", b"Host: " + draw.choice(hosts))
    return Ask("a spoilt head", sent, "half")


def _path(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    path = draw.choice((*ODD_PATHS, *PATHS))
    method = draw.choice(METHODS)
    body = draw.choice((b"", _json(good), b"{}"))
    head = _head(path, known, b"Content-Length: %d" % len(body), method=method)
    return Ask("another method or path", head + b"\r\n" + body, "half")


def _framing(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    body = _json(good)
    kind = b"Content-Type: application/json"
    chunked = b"Transfer-Encoding: chunked"
    path = draw.choice(("/predict", "/choose", "/health"))
    length = draw.choice(
        (
            b"-1",
            b"+5",
            b"1e3",
            b"0x10",
            b"",
            b"5, 6",
            b"10" * 12,
            b"\xd9\xa3",
            b"1 0",
            b"99999999",
            b"3",
        )
    )
    chunks = draw.choice(
        (
            b"zz\r\n" + body,
            b"-1\r\n",
            b"f" * 30 + b"\r\n" + body,
            b"5\r\nabc\r\n0\r\n\r\n",
            b"1;" + b"x" * 50_000 + b"\r\n{\r\n0\r\n\r\n",
            b"".join(b"1\r\n%c\r\n" % byte for byte in body[:300]) + b"0\r\n\r\n",
            b"0\r\n" + b"X: y\r\n" * 3000 + b"\r\n",
            b"%x\r\n%b\r\n0\r\nContent-Length: 5\r\n\r\n" % (len(body), body),
            b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        )
    )
    sent = draw.choice(
        (
            _head(path, known, kind, b"Content-Length: " + length) + b"\r\n" + body,
            _head(path, known, kind, chunked) + b"\r\n" + chunks,
            _head(path, known, kind, b"Content-Length: 1", b"Content-Length: 2") + b"\r\n" + body,
            _head(path, known, kind, b"Transfer-Encoding: gzip, chunked") + b"\r\n" + chunks,
            _head(path, known, kind, b"Transfer-Encoding: \x0bchunked") + b"\r\n" + chunks,
            _post("/predict", known, body).replace(b"Connection: close\r\n", b"") * 20,
        )
    )
    return Ask("lies about its length", sent, "half")


def _smuggled(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    """A body with two lengths, and behind it a request that a proxy takes for a part of it."""
    body = _json(good)
    lengths = [
        b"Transfer-Encoding: chunked",
        b"Content-Length: %d" % draw.choice((0, 4, len(body))),
    ]
    draw.shuffle(lengths)
    method = draw.choice(("POST", "GET", "OPTIONS"))
    head = _head(draw.choice(PATHS), known, *lengths, method=method)
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    behind = _head("/metrics", known, method="GET") + b"\r\n"
    sent = head.replace(b"Connection: close\r\n", b"") + b"\r\n" + chunks + behind
    return Ask("a smuggled request", sent, "half", alone=True)


def _field(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    spoilt = {**good, draw.choice(("inputs", "preference")): draw.choice(WRONG)}
    match draw.randrange(6):
        case 0:
            spoilt = {key: value for key, value in good.items() if key != draw.choice(list(good))}
        case 1:
            spoilt = {**good, draw.choice(("extra", "", "Inputs", "__class__")): draw.choice(WRONG)}
        case 2:
            parts = [draw.choice((0.5, -0.1, 1e-320, 1e308, 0, 1, 2, 1e-9)) for _ in range(2)]
            spoilt = {**good, "preference": draw.choice((parts, parts * draw.randint(1, 500)))}
    return Ask("a wrong field", _post("/predict", known, _json(spoilt)))


def _column(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    inputs = json.loads(json.dumps(good["inputs"]))
    at = draw.randrange(len(inputs))
    row = inputs[at]
    if isinstance(row, dict):
        name = draw.choice(sorted(row))
        if draw.random() < 0.2:
            del row[name]
        else:
            row[draw.choice((name, name.upper(), "\ud800"))] = draw.choice(WRONG)
    else:
        inputs[at] = draw.choice((draw.choice(WRONG), [*row, 1], row[:-1], [draw.choice(WRONG)]))
    return Ask("a wrong column", _post("/predict", known, _json({**good, "inputs": inputs})))


def _wish(draw: random.Random, _good: dict[str, Any], known: bytes) -> Ask:
    names = ("first", "second", "bce", "deo", "accuracy", "tpr_gap", "", "x" * 1000, "\ud800")
    value = draw.choice((*WRONG, {draw.choice(names): draw.choice(WRONG)}, draw.choice(names)))
    wish = {draw.choice(KEYS): value for _ in range(draw.randint(1, 3))}
    wish.setdefault("evaluations", 2)  # what is in truth a wish is to be answered soon
    return Ask("a wrong wish", _post("/choose", known, _json(wish)))


def _text(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    body = _json(good)
    at = draw.randrange(len(body))
    spoilt = draw.choice(
        (
            body[:at],
            body + b"x",
            body[:at] + draw.randbytes(1) + body[at + 1 :],
            body.decode().encode("utf-16"),
            b"\xef\xbb\xbf" + body,
            b"\xff\xfe" + body,
            gzip.compress(body),
            b"",
            b"null",
            b"[]",
            b'""',
            b"[" * draw.choice((100, 5000, 100_000)),
            b'{"inputs":' * draw.choice((100, 5000, 100_000)),
            body.replace(b"0.", draw.choice(RAW) + b"0.", 1),
            b'{"inputs": [' + draw.choice(RAW) + b'], "preference": [0.5, 0.5]}',
            b'{"inputs": {}, "preference": [' + draw.choice(RAW) + b", 0]}",
            body[:-1] + b", " + body[1:],
            b"{" + b",".join(b'"%d":0' % n for n in range(5000)) + b"}",
            b'{"\\ud800": 1}',
            b"<x/>",
            b"inputs=1&preference=2",
        )
    )
    return Ask("no JSON, or odd JSON", _post(draw.choice(("/predict", "/choose")), known, spoilt))


def _large(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    row = good["inputs"][0]
    size = draw.choice((1 << 19, 3 << 20, 6 << 20))
    body = draw.choice(
        (
            b" " * size,
            b'"' + b"x" * size + b'"',
            b"[" + b"1," * (size // 2) + b"1]",
            b"[" * (size // 2) + b"]" * (size // 2),
            b'{"inputs": [' + b"{}," * (size // 3) + b'{}], "preference": [1, 0]}',
            b'{"inputs": ' + b"9" * size + b', "preference": [1, 0]}',
            _json({**good, "inputs": [row] * 10_001}),
            _json({**good, "inputs": [row] * 5000, "preference": [[0.5, 0.5]] * 5000}),
            _json({**good, "preference": [[0.5, 0.5]] * 50_000}),
        )
    )
    return Ask("a large body", _post("/predict", known, body))


def _left(draw: random.Random, good: dict[str, Any], known: bytes) -> Ask:
    sent = _post("/predict", known, _json(good))
    at = draw.randrange(1, len(sent) + 1)
    end: End = draw.choice(("abort", "leave", "half"))
    return Ask("a client that leaves", sent[:at], end)


def _token(draw: random.Random, good: dict[str, Any]) -> Ask:
    given = draw.choice(
        (
            *(
                b"",
                b"Bearer",
                b"Bearer ",
                b"Bearer x",
                b"Basic eDp4",
                b"bearer \xff\xfe",
                b"\xc3\xa9",
            ),
            *(
                b"Bearer " + b"x" * 30_000,
                b"Bearer " + draw.randbytes(8).hex().encode(),
                b"Digest x",
            ),
        )
    )
    line = draw.choice(
        (b"Authorization: " + given, b"X-Token: " + given, b"Cookie: token=" + given)
    )
    path = draw.choice(PATHS)
    return Ask("a wrong token", _post(path, b"", _json(good), line))
