"""What the library refuses it says in Python's words; the command line adds its own options."""

import ast
import re
from pathlib import Path

import pytest

import paretocosmos
from paretocosmos.cli import describe_options
from paretocosmos.errors import ConfigurationError, RunError

SOURCE = Path(paretocosmos.__file__).parent
OF_THE_COMMAND_LINE = ("cli", "printing", "__main__.py")
# Of other programs: pip, git, Ray, torchrun.
# of other programs, and custom properties of a page's style
OF_OTHERS = {"--upgrade", "--porcelain", "--head", "--rdzv-endpoint", "--run-"}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def flags(source: str) -> list[str]:
    """Options that a module's texts name, but for its docstrings."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in docstrings
    ]
    return [flag for text in texts for flag in FLAG.findall(text) if flag not in OF_OTHERS]


def test_no_text_of_the_library_names_an_option() -> None:
    found = {
        str(path.relative_to(SOURCE)): named
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in OF_THE_COMMAND_LINE
        if (named := flags(path.read_text(encoding="utf-8")))
    }
    assert found == {}


def test_the_search_finds_an_option() -> None:
    assert flags('"""Uses --out."""\nraise E(f"`{a}` exists; choose another --out")') == ["--out"]
    assert flags('run("git", "--porcelain")') == []


def test_an_error_carries_the_arguments_that_lead_out() -> None:
    error = RunError("`a` exists").with_hint({"out": None, "resume": True})
    assert str(error) == "`a` exists"
    assert error.hints == {"out": None, "resume": True}
    assert RunError("plain").hints == {}  # none is shared


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        ({}, ""),
        ({"out": None, "resume": True}, " (on the command line: --out ..., --resume)"),
        ({"device": "cpu"}, " (on the command line: --device cpu)"),
        ({"allow_constant": True}, " (on the command line: --allow-constant)"),
        ({"max": "NAME=VALUE"}, " (on the command line: --max NAME=VALUE)"),
        ({"rays_per_batch": 1}, " (on the command line: --set rays_per_batch=1)"),
        ({"skip": True}, " (on the command line: --set skip=true)"),
        ({"cosmos.penalty": 2.0}, " (on the command line: --set cosmos.penalty=2.0)"),
        ({"label": None}, " (on the command line: --set label=...)"),
    ],
)
def test_the_command_line_says_which_options_those_are(ways: dict[str, object], said: str) -> None:
    assert describe_options(ConfigurationError("no").with_hint(ways)) == said
