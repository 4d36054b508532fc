"""Private names of torch: all in one module, and what happens without them."""

import ast
import runpy
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import paretocosmos
from paretocosmos.errors import RunError
from paretocosmos.runtime import torch_private

SOURCE = Path(paretocosmos.__file__).parent
HOME = SOURCE / "runtime" / "torch_private.py"
EXPERIMENTAL = ("torch.fx.experimental", "torch.distributed._", "functorch")
OWN_OF_TUPLES = {"_replace", "_asdict", "_fields"}


def private(source: str) -> list[str]:
    """What a module takes of torch that is private, however it asks for it.

    An attribute with an underscore counts unless it is of an object of ours: of `self`, `cls` or
    `super()`, or one that the module, or a class of ours, gives its name to.
    """
    tree = ast.parse(source)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if _is_private(alias.name)]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name for name in names if _is_private(name)]
        elif isinstance(node, ast.Attribute) and _is_private(f"torch.{node.attr}"):
            of = ast.unparse(node.value)
            ours = of in ("self", "cls", "super()") or node.attr in OWN_OF_TUPLES | _ours()
            theirs = of in sys.stdlib_module_names  # Python's own
            found += [] if ours or theirs else [f"{of}.{node.attr}"]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            name = node.args[1]
            text = name.value if isinstance(name, ast.Constant) else ""
            if (
                isinstance(text, str)
                and _is_private(f"torch.{text}")
                and text not in OWN_OF_TUPLES | _ours()
            ):
                found.append(f"{ast.unparse(node.args[0])}.{text}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            dotted = node.value.startswith("torch.") and node.value.replace(".", "").isidentifier()
            found += [node.value] if dotted and _is_private(node.value) else []
    return found


def _is_private(name: str) -> bool:
    parts = name.split(".")
    if parts[0] not in ("torch", "functorch", "triton"):
        return False
    under = any(part.startswith("_") and not part.startswith("__") for part in parts)
    return under or name.startswith(EXPERIMENTAL)


def _ours(known: set[str] = set()) -> set[str]:  # noqa: B006 - kept between calls
    """Attributes with an underscore that classes of the package give their instances."""
    if not known:
        for path in SOURCE.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    known.add(node.name)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    known.add(node.attr)
    return known


def test_no_other_module_touches_a_private_name() -> None:
    wrong = {
        str(path.relative_to(SOURCE)): names
        for path in sorted(SOURCE.rglob("*.py"))
        if path != HOME and (names := private(path.read_text(encoding="utf-8")))
    }
    assert not wrong


def test_without_a_name_the_error_says_which_torch_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(torch, "_standard_gamma")
    with pytest.raises(RunError, match=r"_standard_gamma.*pip install"):
        runpy.run_path(str(HOME))


def test_operations_are_told_apart_by_what_they_return() -> None:
    add, view = torch.ops.aten.add.Tensor, torch.ops.aten.view.default
    assert torch_private.unwrap_operation(add) is not add
    assert not torch_private.may_return_view(add)
    assert torch_private.may_return_view(view)
    assert torch_private.may_return_view(torch.ops.aten._unsafe_view.default)
    assert torch_private.may_return_view("placeholder")


def test_hooks_are_seen() -> None:
    layer = nn.Linear(2, 2)
    assert not torch_private.has_hooks(layer, backward=True)
    layer.register_full_backward_hook(lambda *_: None)
    assert not torch_private.has_hooks(layer)
    assert torch_private.has_hooks(layer, backward=True)
    layer.register_forward_pre_hook(lambda *_: None)
    assert torch_private.has_hooks(layer)
