"""Where samples are, found once for every shape that a conditioned network is called with."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from paretocosmos.conditioning._batch import ALONE, FIRST, Layout, every_tensor
from paretocosmos.conditioning._probe import layout_of, quiet, tells_apart
from paretocosmos.runtime.torch_private import (
    in_backward_pass,
    is_dispatch_watched,
    is_functorch_wrapped,
)
from paretocosmos.types import Inputs, Outputs, first

__all__ = ["Layouts", "in_processes", "may_look", "samples_first", "samples_of"]


class Layouts:
    """The layouts of one conditioned network's calls, by the shapes of its inputs."""

    def __init__(self) -> None:
        self._known: dict[object, Layout | None] = {}
        self._last: Layout | None = None
        self.heeded = False
        """Whether it was tried out that a ray matters."""

    def of(
        self,
        network: nn.Module,
        listeners: Sequence[Any],
        run: Callable[[Inputs], Outputs],
        inputs: Inputs,
        told: Sequence[Tensor] = (),
    ) -> Layout | None:
        """The layout of a call; found by running the network where it is not known.

        While a call is recorded, compiled or mapped nothing can be tried out: the layout found last
        holds, and where there is none, that samples come first everywhere.

        Args:
            network: what `run` calls.
            listeners: the modules to look at.
            run: the network under one ray.
            inputs: of the call.
            told: what listeners are told.
        """
        first_everywhere = Layout(0, (FIRST,) * len(listeners), (FIRST,))
        if samples_first(network):
            return first_everywhere
        if not may_look([*every_tensor(inputs), *told]):
            return self._last if self._known else first_everywhere
        key = _key(inputs)
        if key not in self._known:
            with quiet(network, inputs):
                found = layout_of(run, listeners, inputs)
                if found is ALONE and not tells_apart(inputs):
                    return ALONE  # of this call, not of others of its shape
            if found is not ALONE and not all(
                listener.follows(lead)
                for listener, lead in zip(listeners, found.blocks, strict=True)
            ):
                found = ALONE
            self._known[key] = self._last = found
        return self._known[key]


def samples_first(network: nn.Module) -> bool:
    """Whether a network says that samples come first everywhere, as a `Backbone` does."""
    return bool(getattr(network, "samples_first", False))


def samples_of(inputs: Inputs, axis: int) -> int:
    """How many samples inputs have; not `len`, which an exported model would keep."""
    return first(inputs).shape[axis]


def may_look(tensors: Sequence[Tensor]) -> bool:
    """Whether a network may be run to look at its numbers: not while a call is recorded."""
    return not (
        torch.compiler.is_compiling()
        or in_backward_pass()
        or is_dispatch_watched()
        or any(is_functorch_wrapped(tensor) for tensor in tensors)
        or any(type(tensor) not in (Tensor, nn.Parameter) for tensor in tensors)
        or (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
    )


def in_processes() -> bool:
    """Whether several processes train together."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _key(inputs: Inputs) -> object:
    # processes that share a network must look at the same time, whatever the shapes of each
    together = in_processes()
    return tuple((one.ndim if together else one.shape, one.dtype) for one in every_tensor(inputs))
