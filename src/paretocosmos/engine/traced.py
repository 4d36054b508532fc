"""The traced engine: the step's tensor operations written down once and replayed without autograd.

Small networks on a CPU spend more time on bookkeeping than on arithmetic: autograd builds a graph
and walks it, and Python calls every layer. `make_fx` records the whole step, backward pass
included, as a flat list of operations; replaying it runs the same operations in the same order, so
the numbers are the same to the last bit. That is checked on the batch a trace was made from. Where
it does not hold, or tracing fails, the eager step goes on alone and `failure` says why.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.experimental.proxy_tensor import make_fx

from paretocosmos.engine.replay import straight_line
from paretocosmos.engine.step import Result, Step
from paretocosmos.methods import State
from paretocosmos.types import Batch, each

__all__ = ["Traced"]

aten = torch.ops.aten


class Traced:
    """A step that replays its operations; one trace per batch size."""

    def __init__(self, step: Step, model: nn.Module) -> None:
        self._step, self._model = step, model
        self._traces: dict[tuple[int, int], Step] = {}
        self.failure: str | None = None

    def __call__(
        self, parameters: Mapping[str, Tensor], batch: Batch, rays: Tensor, state: State
    ) -> Result:
        trace = self._traces.get((len(batch), len(rays)))
        if trace is not None:
            with torch.inference_mode():
                return trace(parameters, batch, rays, state)
        if self.failure is None:
            return self._first(parameters, batch, rays, state)
        return self._step(parameters, batch, rays, state)

    def _first(
        self, parameters: Mapping[str, Tensor], batch: Batch, rays: Tensor, state: State
    ) -> Result:
        """Trace on this batch, compare with the eager step, and give the eager result."""
        before = _drawn(rays.device)
        buffers = {name: buffer.clone() for name, buffer in self._model.named_buffers()}
        trace, replayed = None, None
        try:
            trace = _record(self._step, parameters, batch, rays, state)
            _draw_again(before, rays.device)
            replayed = trace(parameters, batch, rays, state)
        except Exception as error:  # whatever a network does that cannot be traced
            self.failure = f"the step cannot be traced ({type(error).__name__}: {error})"
        _draw_again(before, rays.device)
        for name, buffer in self._model.named_buffers():
            if not torch.equal(buffer, buffers[name]):
                self.failure = f"the network changes its buffer `{name}` as it goes"
                buffer.copy_(buffers[name])
        result = self._step(parameters, batch, rays, state)
        if self.failure is None and trace is not None and replayed is not None:
            if _same(replayed, result):
                self._traces[len(batch), len(rays)] = trace
            else:
                self.failure = "the traced step does not repeat the eager one"
        return result


def _drawn(device: torch.device) -> list[Tensor]:
    """Where the generators stand that a step on this device draws from."""
    there = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *there]


def _draw_again(before: list[Tensor], device: torch.device) -> None:
    torch.set_rng_state(before[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(before[1], device)


def _record(
    step: Step, parameters: Mapping[str, Tensor], batch: Batch, rays: Tensor, state: State
) -> Step:
    def flat_step(*tensors: Tensor) -> list[Tensor]:
        rest = iter(tensors)
        result = step(
            _like(parameters, rest),
            Batch(_like(batch.inputs, rest), _like(batch.targets, rest)),
            next(rest),
            _like(state, rest),
        )
        return [result.losses, *result.gradients.values(), *result.state.values()]

    flat = _flat(parameters, batch, rays, state)
    replay = _simplified(make_fx(flat_step)(*(tensor.detach() for tensor in flat)))

    def traced(
        parameters: Mapping[str, Tensor], batch: Batch, rays: Tensor, state: State
    ) -> Result:
        rest = iter(replay(*_flat(parameters, batch, rays, state)))
        return Result(next(rest), _like(parameters, rest), _like(state, rest))

    return traced


def _flat(
    parameters: Mapping[str, Tensor], batch: Batch, rays: Tensor, state: State
) -> list[Tensor]:
    inputs = [batch.inputs] if isinstance(batch.inputs, Tensor) else batch.inputs.values()
    return [*parameters.values(), *inputs, *batch.targets.values(), rays, *state.values()]


def _like(structure: Tensor | Mapping[str, Tensor], tensors: Iterator[Tensor]) -> Any:
    """The next tensors, arranged as `structure`."""
    return each(lambda _: next(tensors), structure)


def _simplified(graph: fx.GraphModule) -> Callable[..., list[Tensor]]:
    """Without what only autograd needed: aliases, and transposes of transposes."""
    for node in list(graph.graph.nodes):
        if node.target is aten.detach.default:
            node.replace_all_uses_with(node.args[0])
        elif node.target is aten.t.default and node.args[0].target is aten.t.default:
            node.replace_all_uses_with(node.args[0].args[0])
    graph.graph.eliminate_dead_code()
    return straight_line(graph.graph)


def _same(one: Result, two: Result) -> bool:
    pairs = [(one.losses, two.losses)]
    pairs += [(one.gradients[name], two.gradients[name]) for name in two.gradients]
    pairs += [(one.state[name], two.state[name]) for name in two.state]
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)
