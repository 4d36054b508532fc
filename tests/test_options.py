"""What the library refuses it says in Python's words; the command line adds its own options."""

import ast
import re
from pathlib import Path

import pytest

import paretocosmos
from paretocosmos.cli import describe_options
from paretocosmos.errors import ConfigurationError

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


@pytest.mark.parametrize(
    ("command", "message", "said"),
    [
        ("train", "no", ""),
        ("train", "`a` exists; choose another `out`, or set resume=True", "--out ..., --resume"),
        ("train", "`epochs` must be at least 1, found 0", ""),
        ("train", "`resume` needs `out`", "--out ..."),
        ("train", '`cuda:9` does not exist: use device="cpu"', "--device cpu"),
        ("train", "lower `device`, or device=cpu", "--device cpu"),
        ("choose", "take a constant classifier with `allow_constant`", "--allow-constant"),
        ("choose", "add a bound, such as max={'tpr_gap': 0.02}", "--max ..."),
        ("train", "use rays_per_batch=1", "--set rays_per_batch=1"),
        ("train", "name it with `separator`, as in examples=3", "--set separator=..."),
        ("choose", "use rays_per_batch=1", ""),
        ("", "choose another `out`", ""),
        ("no command", "choose another `out`", ""),
    ],
)
def test_the_command_line_says_which_options_the_arguments_are(
    command: str, message: str, said: str
) -> None:
    expected = f" (on the command line: {said})" if said else ""
    assert describe_options(ConfigurationError(message), command) == expected
