"""`paretocosmos sweep` as a person meets it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

SMALL = ("--epochs", "1", "--device", "cpu", "--engine", "eager")


def test_values_are_divided_by_spaces(cli: Callable[..., Any]) -> None:
    grid = ("--grid", "hidden=8 16,16", "--grid", "method='linear' cosmos")
    ended = cli("sweep", "toy_convex", *grid, *SMALL, "--out", "here", "--json")
    assert ended.code == 0, ended.err
    rows = json.loads(ended.out)["rows"]
    assert sorted((row["hidden"], row["method"]) for row in rows) == [
        *(("16,16", "cosmos"), ("16,16", "linear"), ("8", "cosmos"), ("8", "linear"))
    ]
    again = cli("sweep", "toy_convex", *grid, *SMALL, "--out", "here", "--resume")
    assert again.out.rstrip().endswith(f"explore here/{rows[0]['trial']}/seed-1")


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        (["hidden"], "--grid takes KEY=VALUE"),
        (["hidden=8", "hidden=16"], "`hidden` twice"),
        (["hidden='8"], "close the quote"),
    ],
)
def test_bad_grids_are_one_sentence(cli: Callable[..., Any], grid: list[str], says: str) -> None:
    ended = cli("sweep", "toy_convex", *(word for text in grid for word in ("--grid", text)))
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.strip().splitlines()
    assert says in line
