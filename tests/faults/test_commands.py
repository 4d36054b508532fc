"""A few bad command lines; `make faults` tries hundreds."""

import typing
from itertools import islice
from pathlib import Path

import pytest
from faults.bad_lines import GOOD, _commands, lines
from faults.command_calls import Ended
from faults.commands import find_broken_promise, inflict

REFUSED = Ended(2, "", "error: unknown problem `adlut`\n", 0.1, 300.0)


@pytest.mark.system
def test_bad_command_lines_are_refused(tmp_path: Path) -> None:
    made = inflict(16, seed=7, folder=tmp_path)
    assert made.broken == []
    assert made.done.total() == 16


def test_lines_are_many_and_different() -> None:
    found = list(islice(lines(1), 3000))
    assert len(set(found)) == 3000
    commands = _commands()
    assert set(GOOD) == set(commands)
    tried = {line.kind for line in found}
    for name, command in commands.items():
        for option in command.params:
            if option.param_type_name == "option":
                assert f"{name} {option.opts[0]}" in tried


@pytest.mark.parametrize(
    ("changed", "left", "says"),
    [
        ({}, [], None),
        ({"code": 0}, [], "exit code 0"),
        ({"code": 1, "err": "Traceback (most recent call last):\nKeyError"}, [], "a traceback"),
        ({"code": -11}, [], "exit code -11"),
        ({"code": None}, [], "did not end within"),
        ({"err": ""}, [], "not a word"),
        ({"out": "{"}, [], "on stdout"),
        ({"err": "error: \x1b[31m"}, [], "control characters"),
        ({"err": "error: " + "x" * 5000}, [], "letters"),
        ({"err": "a\n" * 30}, [], "lines"),
        ({"megabytes": 2000.0}, [], "2000 MB"),
        ({"left": True}, [], "a process behind"),
        ({}, ["runs"], "it left runs behind"),
    ],
)
def test_what_is_wrong_with_an_end(
    changed: dict[str, typing.Any], left: list[str], says: str | None
) -> None:
    wrong = find_broken_promise(Ended(**{**REFUSED.__dict__, **changed}), left)
    assert wrong is None if says is None else says in str(wrong)
