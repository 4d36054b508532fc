"""Who may ask: this machine, or whoever has the token."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paretocosmos.errors import ConfigurationError
from paretocosmos.serving import Settings

TOKEN = "a-long-enough-token"
ASKED = ("/", "/front", "/metrics", "/openapi.json", "/predict", "/choose", "/nothing")


@pytest.fixture(scope="module")
def closed(serving: Callable[..., Any], folder: Path) -> Iterator[Any]:
    with serving(Settings(folder=folder, port=0, host="0.0.0.0", token=TOKEN)) as server:
        yield server


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"Authorization": ""},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer \xff"},
    ],
    ids=range(7),
)
def test_without_the_token(closed: Any, path: str, given: dict[str, str]) -> None:
    answer = closed.ask(path, headers=given)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.error == "a token is needed: send the header Authorization: Bearer TOKEN"


def test_with_the_token(closed: Any, rows: list[dict[str, Any]]) -> None:
    given = {"Authorization": f"Bearer {TOKEN}", "Host": "example.org"}
    assert closed.ask("/front", headers=given).status == 200
    body = {"inputs": rows[:2], "preference": [1, 0]}
    assert closed.ask("/predict", body, headers=given).status == 200
    described = closed.ask("/openapi.json", headers=given).json
    assert described["components"]["securitySchemes"] == {
        "token": {"type": "http", "scheme": "bearer"}
    }
    for verbs in described["paths"].values():
        assert all(operation["security"] == [{"token": []}] for operation in verbs.values())


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_body_of_two_lengths_is_refused(method: str, server: Any) -> None:
    lengths = {"Transfer-Encoding": "chunked", "Content-Length": "5"}
    answer = server.ask("/predict", method=method, body=b"0\r\n\r\n", headers=lengths)
    assert (answer.status, answer.headers["Connection"]) == (400, "close")
    assert "Content-Length" in answer.error


PAGE = "https://example.org"


def test_browsers_may_not_let_other_pages_ask(server: Any) -> None:
    answer = server.ask("/front", headers={"Origin": PAGE})
    assert "Access-Control-Allow-Origin" not in answer.headers
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    assert server.ask("/predict", method="OPTIONS", headers=asked).status == 405


def test_pages_that_were_named_may_ask(serving: Callable[..., Any], folder: Path) -> None:
    settings = Settings(folder=folder, port=0, token=TOKEN, origins=(PAGE,))
    key, sent = "Access-Control-Allow-Origin", {"Authorization": f"Bearer {TOKEN}"}
    asked = {"Access-Control-Request-Method": "POST"}
    asked["Access-Control-Request-Headers"] = "authorization,content-type"
    with serving(settings) as server:
        may = server.ask("/predict", method="OPTIONS", headers={**asked, "Origin": PAGE})
        other = server.ask(
            "/predict", method="OPTIONS", headers={**asked, "Origin": "https://e.org"}
        )
        front = server.ask("/front", headers={**sent, "Origin": PAGE})
        closed = server.ask("/front", headers={"Origin": PAGE})
        strange = server.ask("/front", headers={**sent, "Origin": "https://example.org.evil"})
    assert (may.status, may.headers.get(key)) == (200, PAGE)
    assert "authorization" in may.headers["Access-Control-Allow-Headers"].lower()
    assert (other.status, other.headers.get(key)) == (400, None)
    assert (front.status, front.headers.get(key)) == (200, PAGE)
    assert (closed.status, closed.headers.get(key)) == (401, PAGE)
    assert strange.headers.get(key) is None


def test_refusals_are_counted_by_path(closed: Any) -> None:
    closed.ask("/front")
    known = {"Authorization": f"Bearer {TOKEN}"}
    text = closed.ask("/metrics", headers=known).body.decode()
    assert 'path="/front",process=' in text
    assert 'status="401"' in text


def test_health_needs_none(closed: Any) -> None:
    assert closed.ask("/health", headers={"Host": "example.org"}).json["status"] == "ok"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:8000", "[::1]:8000"])
def test_names_of_this_machine(server: Any, host: str) -> None:
    assert server.ask("/front", headers={"Host": host}).status == 200


@pytest.mark.parametrize("host", ["example.org", "example.org:8000", "127.0.0.1.example.org", "["])
def test_a_page_that_leads_its_name_here_is_not_answered(server: Any, host: str) -> None:
    answer = server.ask("/front", headers={"Host": host})
    assert answer.status == 421
    assert "localhost alone" in answer.error


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"host": "0.0.0.0"}, "`0.0.0.0` can be reached from other machines"),
        ({"host": "::"}, "clients need a token"),
        ({"host": "example.org"}, "clients need a token"),
        ({"token": ""}, "a token needs at least 16"),
        ({"token": "short"}, "a token needs at least 16"),
        ({"token": "with a space inside"}, "no space"),
        ({"token": "längeres-wort-als-sechzehn"}, "a token needs"),
        ({"port": 65536}, "`port` must be from 0 to 65535"),
        ({"port": -1}, "`port` must be from 0"),
        ({"workers": 0}, "`workers` must be from 1 to 256, found 0"),
        ({"max_rows": 0}, "`max_rows` must be from 1"),
        ({"max_bytes": -5}, "`max_bytes` must be from 1"),
        ({"timeout": 0}, "`timeout` must be from 0.1"),
        ({"timeout": float("nan")}, "`timeout` must be from 0.1"),
        ({"origins": ("*",)}, "an origin must be a scheme and a host"),
        ({"origins": ("https://a.org/",)}, "without a path"),
        ({"origins": ("a.org",)}, "found `a.org`"),
    ],
    ids=range(17),
)
def test_settings_that_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says.replace(".", r"\.")):
        Settings(folder=Path("run"), **given)


def test_the_token_is_not_in_the_repr() -> None:
    assert TOKEN not in repr(Settings(folder=Path("run"), token=TOKEN))
