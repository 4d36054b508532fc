"""Texts of others: nothing in them steers a terminal."""

import pytest

from paretocosmos.io.formatting import sanitize, sanitize_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é λ 表", "plain é λ 表"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\x00b\x7f\x9b", r"a\x00b\x7f\x9b"),
        ("\u202eright to left", r"\u202eright to left"),
        ("\ud800", r"\ud800"),
        ("two\nlines\u2028", r"two\nlines\u2028"),
    ],
)
def test_control_characters_become_escapes(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_line_breaks_stay_where_they_are_wanted() -> None:
    assert sanitize("a\nb\tc", keep="\n") == "a\nb\\tc"


def test_one_line_is_one_line() -> None:
    assert sanitize_line(" a\n\tb\r ") == "a b"
