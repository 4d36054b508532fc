"""Private names of torch: all in one module, all there, and what happens without them."""

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules import batchnorm, conv, dropout

import paretocosmos
from paretocosmos.errors import RunError
from paretocosmos.pareto import sample_rays
from paretocosmos.runtime import torch_private
from paretocosmos.training.engine import Optimizer, UpdateRule

SOURCE = Path(paretocosmos.__file__).parent
HOME = SOURCE / "runtime" / "torch_private.py"
EXPERIMENTAL = ("torch.fx.experimental", "torch.distributed._", "functorch")
INSTANCES = {
    "torch.nn.Module": nn.Module(),
    "torch._ops.OpOverload": torch.ops.aten.add.Tensor,
}
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


@pytest.mark.parametrize(
    "source",
    [
        "import torch._dynamo",
        "from torch._ops import OpOverload",
        "from torch.nn.modules.conv import _ConvNd",
        "from torch import _C",
        "from torch.fx.experimental.proxy_tensor import make_fx",
        "torch._fused_adam_()",
        "aten._unsafe_view",
        "module._forward_hooks",
        "getattr(torch, '_fused_adam_')",
        "hasattr(layer, '_forward_hooks')",
        "name = 'torch._C._cuda_clearCublasWorkspaces'",
        "from triton._C import libtriton",
    ],
)
def test_the_search_finds_a_private_name(source: str) -> None:
    assert len(private(source)) == 1


@pytest.mark.parametrize(
    "source", ["self._rays", "torch.__version__", "from torch import nn", "row._replace(a=1)"]
)
def test_the_search_lets_others_be(source: str) -> None:
    assert private(source) == []


@pytest.mark.parametrize("name", torch_private.NAMES)
def test_this_torch_has_every_name(name: str) -> None:
    owner, _, last = name.rpartition(".")
    if "cuda" in last and torch.version.cuda is None:
        pytest.skip("a build without CUDA")
    if owner in INSTANCES:
        assert hasattr(INSTANCES[owner], last)
    else:
        assert torch_private._resolve(name) is not None


def test_every_name_is_listed_with_what_happens_without_it() -> None:
    every = set(torch_private.NAMES)
    source = HOME.read_text(encoding="utf-8")
    table = source[source.index("NAMES: Mapping") : source.index("class RequiredFunction")]
    for name in private(source.replace(table, "")):
        spelt = name if name.startswith("torch") else name.rpartition(".")[2]
        assert any(known in spelt or known.endswith(spelt) for known in every), name
    assert all(text.endswith(".") for text in torch_private.NAMES.values())


@pytest.fixture(autouse=True)
def _looked_up_anew() -> Iterator[None]:
    torch_private._resolve.cache_clear()
    yield
    torch_private._resolve.cache_clear()


def _without(monkeypatch: pytest.MonkeyPatch, *gone: tuple[Any, str]) -> ModuleType:
    """The module as it is read where torch lacks some names."""
    for owner, name in gone:
        monkeypatch.delattr(owner, name)
    spec = importlib.util.spec_from_file_location("torch_private_without", HOME)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "torch_private_without", module)
    spec.loader.exec_module(module)
    return module


def test_without_private_classes_torchs_own_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    without = _without(
        monkeypatch,
        (batchnorm, "_BatchNorm"),
        (batchnorm, "_NormBase"),
        (conv, "_ConvNd"),
        (dropout, "_DropoutNd"),
    )
    assert isinstance(nn.BatchNorm2d(3), without.BatchNorm)
    assert not isinstance(nn.InstanceNorm1d(3), without.BatchNorm)
    assert isinstance(nn.InstanceNorm1d(3), without.BatchOrInstanceNorm | without.Convolution)
    assert isinstance(nn.ConvTranspose1d(3, 3, 1), (nn.Linear, without.Convolution))
    assert isinstance(nn.AlphaDropout(), (without.Dropout, nn.RNNBase))


def test_without_a_needed_function_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("standard_gamma", "fused_adam_"):
        monkeypatch.setattr(getattr(torch_private, name), "_function", None)
    monkeypatch.delattr(torch, "_standard_gamma")
    monkeypatch.delattr(torch, "_fused_adam_")
    with pytest.raises(RunError, match=r"`torch\._standard_gamma`.*pip install"):
        sample_rays(2, 2)
    weight = {"a": torch.zeros(2)}
    with pytest.raises(RunError, match=r"torch\._fused_adam_"):
        Optimizer(weight, UpdateRule()).update(weight)


def test_without_the_rest_something_plainer_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    add, view = torch.ops.aten.add.Tensor, torch.ops.aten.view.default
    assert torch_private.unwrap_operation(add) is not add
    assert not torch_private.may_return_view(add)
    assert torch_private.may_return_view(view)
    assert torch_private.may_return_view(torch.ops.aten._unsafe_view.default)
    assert torch_private.may_return_view("placeholder")
    monkeypatch.delattr(torch._ops, "OpOverload")
    torch_private._resolve.cache_clear()
    assert torch_private.unwrap_operation(add) is add
    assert torch_private.may_return_view(add)
    monkeypatch.delattr(torch._C, "_cuda_clearCublasWorkspaces", raising=False)
    torch_private.release_workspaces()


def test_hooks_are_seen_and_taken_for_granted_where_torch_does_not_say() -> None:
    layer = nn.Linear(2, 2)
    assert not torch_private.has_hooks(layer, backward=True)
    layer.register_full_backward_hook(lambda *_: None)
    assert not torch_private.has_hooks(layer)
    assert torch_private.has_hooks(layer, backward=True)
    layer.register_forward_pre_hook(lambda *_: None)
    assert torch_private.has_hooks(layer)
    plain = nn.Linear(2, 2)
    del plain.__dict__["_forward_hooks"]
    assert torch_private.has_hooks(plain)
