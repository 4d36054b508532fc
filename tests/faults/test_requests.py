"""A few hostile requests; `make faults` sends thousands."""

from itertools import islice
from pathlib import Path

import pytest
from faults.hostile_requests import asks
from faults.requests import answered, inflict

GOOD = {"inputs": [[0.5, 0.5]], "preference": [0.5, 0.5]}


@pytest.mark.system
def test_hostile_requests_break_nothing(tmp_path: Path) -> None:
    made = inflict(120, seed=7, folder=tmp_path)
    assert made.broken == []
    assert made.done.total() == 120


def test_requests_are_of_every_kind() -> None:
    kinds = {ask.kind for ask in islice(asks(1, GOOD, "a token of sixteen"), 3000)}
    assert len(kinds) == 12


def test_answers() -> None:
    refused = b'HTTP/1.1 422 x\r\nA: b\r\n\r\n{"error":"no"}'
    busy = b'HTTP/1.1 503 x\r\n\r\n{"error":"the server is too busy: try again later"}'
    assert answered(refused * 2) == ["422", "422"]
    assert answered(busy) == ["503: too busy, and it says so"]
    assert answered(b"") == []
    for said in (b"HTTP/1.1 502 x\r\n\r\n", busy.replace(b"busy", b"odd")):
        assert answered(said)[0].startswith("BROKEN")
    assert answered(b"HTTP/1.1 404 x\r\n\r\n<html>") == ["BROKEN: 404 without a sentence"]
