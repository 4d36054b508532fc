"""From pydantic's words to ours."""

from datetime import date
from typing import Annotated

import pytest
from pydantic import AfterValidator, Field, ValidationError

from paretocosmos.errors import RunError
from paretocosmos.io.formatting import sanitize_line
from paretocosmos.io.schema.models import (
    ByName,
    Model,
    NonEmpty,
    Size,
    check_content,
    mistakes_in,
    path_of,
    shorten,
)


def _even(value: int) -> int:
    if value % 2:
        raise ValueError(f"an even\nnumber, found {value}")
    return value


MANY = {str(n): 0 for n in range(10_000)}


class Inner(Model, extra="forbid"):
    count: Size = 1
    even: Annotated[int, AfterValidator(_even)] = 0


class Outer(Model, extra="forbid"):
    inner: list[Inner] = Field(default_factory=list)
    names: ByName[NonEmpty[str]] = Field(default_factory=dict)
    day: date = date(2020, 1, 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "it must be a mapping, found []"),
        ({"inner": 3}, "`inner` must be a list, found 3"),
        ({"inner": [{}, 3]}, "`inner[1]` must be a mapping, found 3"),
        ({"inner": [{"count": 1.5}]}, "`inner[0].count` must be a whole number, found 1.5"),
        ({"inner": [{"count": 10**7}]}, "`inner[0].count` must be at most 1000000, found 10000000"),
        ({"inner": [{"even": 3}]}, "`inner[0].even`: an even number, found 3"),
        (
            {"inner": [{"cuont": 1}]},
            "`inner[0]`: unknown key `cuont`; did you mean `count`? known: count, even",
        ),
        ({"iner": 1}, "unknown key `iner`; did you mean `inner`? known: day, inner, names"),
        ({"names": {"a": []}}, "`names.a` must have at least 1 entries, found []"),
        ({"names": {1: ["a"]}}, "a name in `names` must be text, found 1"),
        ({"names": {"a\n\x1b[2J": 1}}, "`names.a \\x1b[2J` must be a list, found 1"),
        ({"names": MANY | {"one": 0}}, "`names`: at most 10000 entries, found 10001"),
        ({"names": MANY}, "it is wrong in 10,000 places"),
        # what no rule of ours is for, in pydantic's words
        (
            {"day": "{soon}"},
            "`day` is invalid (Input should be a valid date), found '{soon}'",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_is_one_sentence(content: object, says: str) -> None:
    with pytest.raises(RunError) as refused:
        check_content(Outer, content, RunError)
    assert str(refused.value) == says


def test_all_mistakes_are_told() -> None:
    with pytest.raises(ValidationError) as refused:
        Outer.model_validate({"inner": [{"count": 0}, {"odd": 1}], "names": []})
    places = [place for place, _ in mistakes_in(refused.value, Outer)]
    assert places == [("inner", 0, "count"), ("inner", 1, "odd"), ("names",)]


def test_what_was_found_is_short_and_in_one_line() -> None:
    for value in ("x" * 1000, ["x" * 100] * 100, {"a": "b\n" * 100}, 10**5000, "\x1b[2J", "\n"):
        assert len(shorten(value)) <= 60
        assert shorten(value).isprintable()
    assert path_of(("a", 0, "b" * 1000)) == f"a[0].{'b' * 60}"
    assert sanitize_line("one\n two\tthree") == "one two three"
