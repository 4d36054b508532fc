"""Outputs that are kept, for whoever evaluates one network again and again."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, final

from torch import Tensor, nn

from paretocosmos.types import Inputs, Outputs, first

__all__ = ["KeptOutputs", "keeping", "kept_numbers", "kept_or"]


class _Entry(NamedTuple):
    model: nn.Module
    inputs: Inputs
    outputs: Outputs


@final
class KeptOutputs:
    """Outputs of networks at rays, those that were asked for last.

    The same inputs are the same tensors, and the same rays are those that went through the network
    together: so whatever is chosen by kept outputs is what would be chosen without, bit for bit.

    Args:
        numbers: to keep at most; a fourth of the bytes.
    """

    def __init__(self, numbers: int = 64_000_000) -> None:
        self.room = numbers
        self._entries: OrderedDict[tuple[int, int, bytes], _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(
        self, model: nn.Module, inputs: Inputs, rays: Tensor, compute: Callable[[], Outputs]
    ) -> Outputs:
        """Those of a network for inputs at rays, computed where they are not held."""
        # an entry holds on to its network and inputs, so that no other can have their places
        key = id(model), first(inputs).data_ptr(), rays.cpu().numpy().tobytes()
        entry = self._entries.get(key)
        if entry is not None and len(first(entry.inputs)) == len(first(inputs)):
            self._entries.move_to_end(key)
            return entry.outputs
        outputs = compute()
        size = _size(outputs)
        if size <= self.room:
            self._entries[key] = _Entry(model, inputs, outputs)
            while sum(_size(one.outputs) for one in self._entries.values()) > self.room:
                self._entries.popitem(last=False)
        return outputs


def _size(outputs: Outputs) -> int:
    return sum(
        out.numel() for out in ([outputs] if isinstance(outputs, Tensor) else outputs.values())
    )


_KEPT: ContextVar[KeptOutputs | None] = ContextVar("kept", default=None)


@contextmanager
def keeping(kept: KeptOutputs) -> Iterator[None]:
    """Take outputs from there, and put them there, within this block."""
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)


def kept_numbers() -> int:
    """How many numbers are kept at most, within a block of `keeping`; else 0."""
    kept = _KEPT.get()
    return 0 if kept is None else kept.room


def kept_or(
    model: nn.Module, inputs: Inputs, rays: Tensor, compute: Callable[[], Outputs]
) -> Outputs:
    """Kept outputs, within a block of `keeping`; else they are computed."""
    kept = _KEPT.get()
    return compute() if kept is None else kept.get(model, inputs, rays, compute)
