"""Whatever is wrong with a request is a 4xx and one sentence, and the next one is answered."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paretocosmos.serving import Settings

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "the body must be JSON"),
        (b"{", 400, "the body must be JSON"),
        (b"\xff\xfe\xff", 400, "the body must be JSON"),
        (b"[" * 50_000, 400, "recursion limit exceeded"),
        (
            b'{"inputs": {"skill": NaN}, "preference": [1, 0]}',
            400,
            "write null for a missing value",
        ),
        (b'{"inputs": {"skill": -Infinity}}', 400, "the body must be JSON"),
        (b'{"inputs": ' + b"9" * 5000 + b"}", 400, "the body must be JSON"),
        (b"[]", 422, "the body must be a JSON object, found []"),
        (b"null", 422, "found null"),
        (b"{}", 422, "found no `inputs`"),
        (b'{"inputs": {}}', 422, "found no `preference`"),
        (b'{"inputs": {}, "preference": [1, 0]}', 422, "row 0 lacks `skill`"),
        (
            b'{"inputs": {}, "preference": [1, 0], "preferense": 1}',
            422,
            'unknown key "preferense"; known: inputs, preference',
        ),
        (b'{"\\ud800": 1}', 400, "the body must be JSON"),
        (b'{"inputs": "\\ud800", "preference": [1, 0]}', 400, "the body must be JSON"),
    ],
    ids=range(15),
)
def test_bodies(server: Any, body: bytes, status: int, says: str) -> None:
    answer = server.ask("/predict", body=body)
    assert (answer.status, says in answer.error) == (status, True), answer.body


def test_numbers_too_large_for_json(server: Any, rows: list[dict[str, Any]]) -> None:
    text = json.dumps({"inputs": rows[0] | {"skill": 0.5}, "preference": [1, 0]})
    answer = server.ask("/predict", body=text.replace("0.5", "1e999").encode())
    assert answer.status == 422
    assert (
        answer.error == "row 0 needs a finite number or null in the column `skill`, found Infinity"
    )
    for number in ("1e307", "-1e307", "3.5e38", "-3.5e38"):  # of either sign
        finite = server.ask("/predict", body=text.replace("0.5", number).encode())
        assert finite.status == 422
        assert finite.error.startswith("row 0 has numbers too large for the network")


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "POST", 405),
        ("/predict", "GET", 405),
        ("/choose", "GET", 405),
        ("/front", "POST", 405),
        ("/predict/", "POST", 404),
        ("/../../../../etc/passwd", "GET", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", "GET", 404),
        ("/run.json", "GET", 404),
        ("/<script>alert(1)</script>", "GET", 404),
        ("/" + "a" * 5000, "GET", 404),
    ],
    ids=range(10),
)
def test_paths(server: Any, path: str, method: str, status: int) -> None:
    answer = server.ask(path, body=b"{}" if method == "POST" else None, method=method)
    assert answer.status == status
    assert answer.error.endswith("is not answered here: see /openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert len(answer.error) < 150


def test_other_types_of_bodies(server: Any) -> None:
    for headers, says in (
        ({"Content-Type": "text/plain"}, "send it with the header Content-Type: application/json"),
        ({"Content-Type": ""}, "the body must be JSON"),
        ({"Content-Encoding": "gzip"}, "not packed"),
    ):
        answer = server.ask("/predict", body=b"{}", headers=headers)
        assert answer.status == 415
        assert says in answer.error
    typed = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert server.ask("/predict", body=b"{}", headers=typed).status == 422


@pytest.mark.parametrize(
    ("criteria", "says"),
    [
        ({}, "needs to know what to choose by"),
        ({"knee": None}, "needs to know what to choose by"),
        ({"knee": 1}, "`knee` must be true or false, found 1"),
        ({"max": 1}, "`max` must be an object of names and numbers"),
        ({"max": {"tpr_gap": "1"}}, "`max` must be an object of names and numbers"),
        ({"max": {"tpr_gap": 10**400}}, "`max` must be an object of names and numbers"),
        ({"max": {"gap": 1}}, "unknown objective or metric `gap`; did you mean `tpr_gap`?"),
        ({"max": {"tpr_gap": -1}}, "no ray has `tpr_gap` at most -1 on val"),
        ({"max": {"tpr_gap": 2}}, "did you mean 0.02?"),
        ({"minimize": ["loss"]}, "`minimize` must be the name of an objective or a metric"),
        ({"weights": [1]}, "one number per objective, here 2"),
        ({"weights": [-1, 1]}, "not be negative"),
        ({"weights": {}}, "`weights` must be a list with a number per objective"),
        ({"near": [0.1, True]}, "`near` must be a list"),
        ({"near": {"gap": 1}}, "unknown objective or metric"),
        ({"knee": True, "evaluations": 1}, "`evaluations` must be a whole number from 2 to 100"),
        ({"knee": True, "evaluations": 10**9}, "`evaluations` must be a whole number"),
        ({"knee": True, "maximize": "accuracy"}, "one criterion"),
        ({"problem": "adult"}, 'unknown key "problem"'),
    ],
    ids=range(19),
)
def test_wishes(server: Any, criteria: dict[str, Any], says: str) -> None:
    answer = server.ask("/choose", criteria)
    assert (answer.status, says in answer.error) == (422, True), answer.body


@pytest.mark.system  # the server writes the log
def test_a_fault_of_ours_is_told_without_its_traceback(
    serving_on_a_port: Callable[..., Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from paretocosmos.serving.batching import Network

    def broken(*_given: object) -> None:
        raise ArithmeticError("secret")

    with serving_on_a_port(Settings(folder=folder, port=0)) as server:
        monkeypatch.setattr(Network, "run_pass", broken)
        row = dict.fromkeys(("skill", "<b>pay</b>", "rooms")) | dict.fromkeys(("city", "old"))
        answer = server.ask("/predict", {"inputs": row, "preference": [1, 0]})
        assert server.ask("/health").status == 200
    assert answer.status == 500
    assert answer.error == "this is a fault of the server; its log says more"
    assert "ArithmeticError: secret" in capfd.readouterr().err
