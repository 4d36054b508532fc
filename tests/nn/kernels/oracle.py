"""What the tests of all kernels share: where they run, and the comparison in float64."""

import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

__all__ = [
    *("DEVICE", "INTERPRETED", "check_capture", "check_gradients_at_once", "check_recording"),
    *("compare", "leaves", "needs_cuda", "needs_triton"),
]

TRITON = importlib.util.find_spec("triton") is not None
INTERPRETED = TRITON and os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
needs_triton = pytest.mark.skipif(
    not (INTERPRETED or (TRITON and DEVICE == "cuda")),
    reason="needs Triton, and a CUDA device or TRITON_INTERPRET=1",
)

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def doubled(tensors: Sequence[Tensor | None]) -> list[Any]:
    return [
        None if t is None else t.detach().double().requires_grad_(t.requires_grad) for t in tensors
    ]


def leaves(tensors: Sequence[Tensor | None]) -> list[Tensor]:
    return [t for t in tensors if t is not None and t.requires_grad]


def close(mine: Tensor, reference: Tensor) -> None:
    assert mine.shape == reference.shape
    assert mine.dtype == torch.float32
    error = (mine.double() - reference).norm() / reference.norm().clamp_min(1e-12)
    assert error < 1e-5  # NaN fails too


def compare(
    function: Callable[..., Tensor],
    reference: Callable[..., Tensor],
    inputs: Sequence[Tensor | None],
) -> None:
    """Values and all gradients, for a random gradient of the output."""
    exact = doubled(inputs)
    mine, wanted = function(*inputs), reference(*exact)
    close(mine, wanted)
    grad = torch.randn_like(mine)
    got = torch.autograd.grad(mine, leaves(inputs), grad)
    for one, other in zip(
        got, torch.autograd.grad(wanted, leaves(exact), grad.double()), strict=True
    ):
        close(one, other)


def check_gradients_at_once(
    function: Callable[..., Tensor],
    reference: Callable[..., Tensor],
    inputs: Sequence[Tensor | None],
) -> None:
    """One per loss, as a method that needs the Gram matrix asks: vmap over the backward."""
    exact = doubled(inputs)
    mine, wanted = function(*inputs), reference(*exact)
    grads = torch.randn(3, *mine.shape, device=DEVICE)
    got = torch.autograd.grad(mine, leaves(inputs), grads, is_grads_batched=True)
    for i, grad in enumerate(grads.double()):
        one = torch.autograd.grad(wanted, leaves(exact), grad, retain_graph=True)
        for a, b in zip(got, one, strict=True):
            close(a[i], b)


def check_recording(
    function: Callable[..., Tensor], inputs: Sequence[Tensor | None], operators: Sequence[str]
) -> None:
    """`make_fx` sees these operators, and replaying them repeats the step (engine/recorded.py)."""

    def step(*tensors: Tensor) -> tuple[Tensor, ...]:
        first, *parameters = (t.detach() for t in tensors)
        wanted = [p.requires_grad_() for p in parameters]
        return torch.autograd.grad(function(first, *wanted).square().sum(), wanted)

    given = [t.detach() for t in inputs if t is not None]
    graph = make_fx(step)(*given)
    names = [str(node.target) for node in graph.graph.nodes if "paretocosmos" in str(node.target)]
    assert names == [f"paretocosmos.{name}.default" for name in operators]
    fresh = [torch.randn_like(t) for t in given]
    with torch.inference_mode():
        replayed = graph(*fresh)
    assert all(torch.equal(a, b) for a, b in zip(replayed, step(*fresh), strict=True))


def check_capture(function: Callable[..., Tensor], inputs: Sequence[Tensor | None]) -> None:
    """A CUDA graph of values and gradients, replayed on other numbers, gives those."""

    def step() -> tuple[Tensor, ...]:
        return torch.autograd.grad(function(*inputs).square().sum(), leaves(inputs))

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        for tensor in leaves(inputs):
            tensor.copy_(torch.randn_like(tensor))
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(captured, step(), strict=True))
