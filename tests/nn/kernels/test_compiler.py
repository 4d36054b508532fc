"""The fused kernels are asked for only where Triton can build them."""

import importlib.util
import shutil

import pytest
import torch
from torch import Tensor

from paretocosmos.errors import EngineWarning
from paretocosmos.nn import kernels


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.delenv("CC", raising=False)
    kernels.has_c_compiler.cache_clear()


def test_without_a_compiler_the_library_goes_on_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.warns(EngineWarning, match="need a C compiler, found none"):
        assert not kernels.runs_on("cuda")
    assert not kernels.runs_on("cuda")  # a second warning would be an error here
    kernels.has_c_compiler.cache_clear()
    monkeypatch.setenv("CC", "my-compiler")
    assert kernels.runs_on("cuda")
    assert not kernels.runs_on("cpu")


def test_without_triton_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert not kernels.runs_on("cuda")


def test_a_compiler_from_outside_gets_the_library_s_operations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "runs_on", lambda device: True)

    def which(x: Tensor) -> Tensor:
        return x + 1 if kernels.supports_tensors(x) else x - 1

    compiled = torch.compile(which, backend="eager", fullgraph=True)
    assert which(torch.zeros(2)).tolist() == [1, 1]
    assert compiled(torch.zeros(2)).tolist() == [-1, -1]
    assert which(torch.zeros(2)).tolist() == [1, 1]
