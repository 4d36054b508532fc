"""No function over 60 lines and no file over 450: what is longer has more than one purpose."""

import ast
from pathlib import Path

import pytest

import paretocosmos

SOURCE = Path(paretocosmos.__file__).parent
LONGEST_FUNCTION = 60
LONGEST_FILE = 450
# A command has a line for each option, a kernel one for each tensor and size: of these only the
# body counts.
LONG_SIGNATURES = ("cli", "kernels")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def length(function: Function, *, signature: bool = True) -> int:
    """The lines of a function without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    end = function.end_lineno or 0
    if not body:
        return 0
    documented = body[0].lineno - function.body[0].lineno
    start = function.lineno + documented if signature else body[0].lineno
    return end - start + 1


def _functions() -> list[tuple[str, Function, bool]]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                signature = not {*inside.parts} & {*LONG_SIGNATURES}
                found.append((f"{inside}: {node.name}", node, signature))
    return found


def test_no_function_is_too_long() -> None:
    lengths = {name: length(node, signature=signature) for name, node, signature in _functions()}
    assert len(lengths) > 1000
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}


def test_no_file_is_too_long() -> None:
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in SOURCE.rglob("*.py")
    }
    assert {name: n for name, n in lengths.items() if n > LONGEST_FILE} == {}


@pytest.mark.parametrize(
    ("source", "whole", "body"),
    [
        ("def f():\n    return 1", 2, 1),
        ('def f():\n    """Two\n\n    lines."""\n    return 1', 2, 1),
        ('def f(\n    a,\n    b,\n):\n    """One."""\n    a = b\n    return a', 6, 2),
        ('def f():\n    """Nothing else."""', 0, 0),
    ],
)
def test_lengths_leave_docstrings_out(source: str, whole: int, body: int) -> None:
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert (length(function), length(function, signature=False)) == (whole, body)
