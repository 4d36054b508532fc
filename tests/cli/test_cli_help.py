"""`--help`, `list` and what is refused before a command begins, as a person meets them."""

import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from paretocosmos.cli import COMMANDS, GROUPS

Call = Callable[..., Any]  # of `cli`: gives the code, what went out, and the errors
NAMES = [name for entries in GROUPS.values() for name in entries]


@pytest.fixture
def columns() -> int:
    """As wide as a terminal is at least."""
    return 80


def test_every_command_is_listed_in_a_group_with_all_of_its_summary(cli: Call) -> None:
    ended = cli("--help")
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 80
    for group, entries in GROUPS.items():
        section = ended.out.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
        listed = [line.split(maxsplit=1) for line in section.splitlines()]
        assert listed == [[name, entry.summary] for name, entry in entries.items()]


def test_no_argument_shows_the_same_list(cli: Call) -> None:
    ended = cli()
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.strip() == cli("--help").out.strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_two_examples_that_it_understands(cli: Call, name: str) -> None:
    ended = cli(name, "--help")
    assert ended.code == 0
    examples = re.findall(rf"^ +paretocosmos {name}\b(.*)$", ended.out, re.MULTILINE)
    assert len(examples) == len(set(examples)) == 2
    assert max(map(len, ended.out.splitlines())) <= 80
    for example in examples:
        COMMANDS[name].make_context(name, shlex.split(example))  # refuses what is wrong


def test_options_are_shown_in_groups(cli: Call) -> None:
    shown = cli("train", "--help").out
    heads = re.findall(r"^(\w+):$", shown, re.MULTILINE)
    assert heads == ["Arguments", "Training", "Tables", "Machine", "Options"]
    tables = shown.partition("Tables:")[2].partition("Machine:")[0]
    assert {"--target", "--sensitive", "--positive"} <= set(re.findall(r"--[a-z-]+", tables))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("trian",), "Did you mean 'train'?"),
        (("train",), "Missing argument 'PROBLEM'"),
        (("train", "adult", "--epochs", "many"), "Invalid value for '--epochs'"),
        (("train", "adult", "--methd", "epo"), "No such option: --methd"),
        (("list", "problems", "methods"), "unexpected extra argument"),
        (("list", "problem"), "did you mean `problems`?"),
    ],
)
def test_an_error_is_spelled_in_one_way(cli: Call, arguments: tuple[str, ...], says: str) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    last = ended.err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert says in last
    assert "Error" not in ended.err
