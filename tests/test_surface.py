"""The public names and their signatures, against the committed `surface.txt`.

After a change that is meant: `python -m tests.test_surface --write`, and a line in CHANGELOG.md.
"""

import ast
import difflib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import paretocosmos

COMMITTED = Path(__file__).with_name("surface.txt")
UPDATE = "if this is meant, run `python -m tests.test_surface --write` and add a changelog line"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def surface() -> str:
    """One line per public name and per public member of a class, annotations as written.

    Read from the source: what annotations evaluate to differs between versions of numpy and torch.
    """
    lines = [line for name in sorted(paretocosmos.__all__) for line in _describe(name)]
    return "\n".join(lines) + "\n"


def _node(thing: object) -> ast.stmt:
    assert inspect.isclass(thing) or inspect.isfunction(thing)
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def _describe(name: str) -> Iterator[str]:
    thing = getattr(paretocosmos, name)
    node = _node(thing)
    if isinstance(node, Function):
        yield f"{name}{_signature(node)}"
        return
    assert isinstance(node, ast.ClassDef)
    decorators = "".join(f"@{ast.unparse(d)} " for d in node.decorator_list)
    yield f"{decorators}class {name}({', '.join(ast.unparse(base) for base in node.bases)})"
    members: dict[str, str] = {}  # as the class ends up with them; fields keep their order
    for part in reversed(thing.__mro__):
        if part.__module__.startswith("paretocosmos"):
            part_node = _node(part)
            assert isinstance(part_node, ast.ClassDef)
            members |= dict(_members(part_node))
    yield from (f"    {text}" for text in members.values())


def _members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for part in node.body:
        if isinstance(part, Function):
            if part.name == "__init__" or not part.name.startswith("_"):
                marks = (ast.unparse(d) for d in part.decorator_list)
                shown = "".join(f"@{mark} " for mark in marks if mark != "abstractmethod")
                yield part.name, f"{shown}{part.name}{_signature(part)}"
        elif isinstance(part, ast.AnnAssign) and not ast.unparse(part.target).startswith("_"):
            yield ast.unparse(part.target), ast.unparse(part)


def _signature(node: Function) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({ast.unparse(node.args)}){returns}"


def test_the_public_surface_is_the_committed_one() -> None:
    committed = COMMITTED.read_text(encoding="utf-8") if COMMITTED.exists() else ""
    found = surface()
    difference = difflib.unified_diff(
        committed.splitlines(), found.splitlines(), "surface.txt", "the package", lineterm=""
    )
    assert committed == found, "\n".join([*difference, "", UPDATE])


def test_public_names_are_sorted_and_about_twenty() -> None:
    names = paretocosmos.__all__
    assert sorted(set(names)) == list(names)
    assert len(names) <= 25  # DESIGN.md: about 20 public names, nothing else


def test_no_public_signature_takes_arbitrary_keywords() -> None:
    """Those of `choose` are declared once, in a typed dictionary."""
    typed = "**criteria: Unpack[CriteriaOptions]", "**criteria: 'Unpack[CriteriaOptions]'"
    text = surface()
    for keywords in typed:
        text = text.replace(keywords, "")
    assert "**" not in text


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.test_surface --write")
    COMMITTED.write_text(surface(), encoding="utf-8")
