"""Every kind of file with every wrong kind of value in every place: one sentence, no traceback.

What is wrong is told by JSON alone: a text where a number was written, a list where a text was.
"""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.io.schema.odd import GONE, ODD, changed, kind_of, places

from paretocosmos.errors import ConfigurationError, DataError, ParetoCosmosError, RunError
from paretocosmos.io.formatting import sanitize
from paretocosmos.paper.experiment import SavedStatus, read_saved_status
from paretocosmos.paper.recipe import parse_recipe
from paretocosmos.pareto import Front
from paretocosmos.problems.tables import Table
from paretocosmos.runs.schema import check_record

RESULTS = Path(__file__).parents[3] / "results"
FILE = Path("file")


class Kind(NamedTuple):
    """A file that is right, how it is read, what reading refuses, and what is free in it."""

    content: dict[str, Any]
    read: Callable[[Any], object]
    refuses: type[ParetoCosmosError]
    free: frozenset[str]


def toml(value: Any) -> str:
    """A value as TOML has it in one line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def _read_toml(content: dict[str, Any]) -> object:
    lines = (f"{json.dumps(key)} = {toml(value)}\n" for key, value in content.items())
    return parse_recipe("mine.toml", "".join(lines))


@pytest.fixture(scope="module")
def kinds(toy: Path) -> dict[str, Kind]:
    record, front = (json.loads((toy / f"{n}.json").read_text()) for n in ("run", "front"))
    people = pd.DataFrame({"age": [20, None, 40], "work": ["a", "b", "a"]})
    recipe = {
        "title": "Toys",
        "section": "none",
        "shows": "fronts",
        "seeds": [1, 2],
        "grid": [
            {
                "problems": ["toy_convex"],
                "methods": ["cosmos"],
                "protocols": ["clean"],
                "seeds": [1],
                "settings": {"epochs": 2},
                "vary": {"penalty": [0.5, 1.0]},
            }
        ],
    }
    told = {"about", "machine", "versions", "git", "settings", "provenance", "varied"}
    unread = {"format", "losses", "hypervolume_val", "seconds_training", "ray", "centre"}
    return {
        "record": Kind(
            record, lambda c: check_record(c, FILE), RunError, frozenset(told | unread | {"rays"})
        ),
        "front": Kind(front, Front.from_dict, DataError, frozenset({"provenance"})),
        "table": Kind(Table.fit(people).to_dict(), Table.from_dict, DataError, frozenset()),
        "recipe": Kind(
            recipe,
            _read_toml,
            ConfigurationError,
            frozenset({"vary", "epochs"}),  # which settings take as text, too
        ),
    }


KINDS = ("record", "front", "table", "recipe")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_is_read_and_not_touched(kinds: dict[str, Kind], kind: str) -> None:
    content, read, _, _ = kinds[kind]
    before = copy.deepcopy(content)
    read(content)
    assert content == before


@pytest.mark.system
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_kind_of_value_is_one_sentence_in_every_place(
    kinds: dict[str, Kind], kind: str
) -> None:
    content, read, refuses, free = kinds[kind]
    accepted, said = [], []
    for at in places(content):
        found: Any = content
        for key in at:
            found = found[key]
        for odd in ODD:
            if "null" in (kind_of(odd), kind_of(found)) or kind_of(odd) == kind_of(found):
                continue
            try:
                read(changed(content, at, odd))
                accepted.append((at, odd))
            except refuses as error:
                said.append(str(error))
    assert len(said) > 50
    assert [sentence for sentence in said if not sentence.isprintable()] == []
    surprising = [one for one in accepted if not free & {*map(str, one[0])}]
    # one number, or one for each name
    assert all(at == ("outputs",) and odd == {} for at, odd in surprising), surprising


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", [one for one in KINDS if one != "recipe"])
@given(number=st.integers(0, 10_000), inside=JSON, instead=JSON)
def test_whatever_json_says_is_read_or_one_sentence(
    kinds: dict[str, Kind], kind: str, number: int, inside: Any, instead: Any
) -> None:
    content, read, refuses, _ = kinds[kind]
    every = list(places(content))
    for one in (changed(content, every[number % len(every)], inside), instead):
        said = ""
        try:
            read(one)
        except refuses as error:
            said = str(error)
        assert said == sanitize(said)


def test_what_a_cell_keeps_is_used_or_let_be(tmp_path: Path) -> None:
    good: dict[str, Any] = {
        "problem": "toy_convex",
        "protocol": None,
        "method": "cosmos",
        "settings": {},
        "error": "why",
        "seconds": 2.5,
        "share": 1,
        "rehearsal": 1,
    }
    file = tmp_path / "cell.json"
    assert read_saved_status(tmp_path) == SavedStatus()
    for at in places(good):
        for odd in (*ODD, GONE):
            file.write_text(json.dumps(changed(good, at, odd)))
            kept = read_saved_status(tmp_path)
            assert kept == SavedStatus() or at == ("error",) or kept.error == "why" or odd == GONE
    file.write_text(json.dumps(good))
    assert (kept := read_saved_status(tmp_path)).error == "why"
    assert (kept.seconds, kept.share) == (2.5, 1.0)
    for damaged in ("{", "[]", '{"seconds": "long"}'):
        file.write_text(damaged)
        assert read_saved_status(tmp_path) == SavedStatus()


@pytest.mark.parametrize("name", ["front", "front_val"])
def test_committed_fronts_are_right(name: str) -> None:
    text = (RESULTS / "demo" / f"{name}.json").read_text()
    assert Front.from_json(text).to_dict() == json.loads(text)
