"""Outputs that are kept, for whoever evaluates one network again and again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar, final

import numpy as np
from torch import Tensor, nn

from paretocosmos.types import Inputs, Outputs, first

__all__ = ["KeptOutputs", "keeping", "kept_for", "kept_numbers", "kept_or"]

Value = TypeVar("Value")


class _Entry(NamedTuple):
    owners: tuple[object, ...]
    value: Any
    size: int


@final
class KeptOutputs:
    """Outputs of networks at rays and what follows from them, those that were asked for last.

    The same inputs are the same tensors, and the same rays are those that went through the network
    together: so whatever is chosen by kept outputs is what would be chosen without, bit for bit.

    Args:
        numbers: to keep at most; a fourth of the bytes.
    """

    def __init__(self, numbers: int = 64_000_000) -> None:
        self.room, self._used = numbers, 0
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, owners: tuple[object, ...], key: Hashable, compute: Callable[[], Value]) -> Value:
        """A value, computed where it is not held.

        Args:
            owners: the objects whose places in memory the key names. An entry holds on to them, so
                that no other object can have their places.
            key: what the value depends on.
            compute: gives the value.
        """
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            held: Value = entry.value
            return held
        value = compute()
        size = _size(value)
        if size <= self.room:
            self._entries[key] = _Entry(owners, value, size)
            self._used += size
            while self._used > self.room:
                self._used -= self._entries.popitem(last=False)[1].size
        return value


def _size(value: object) -> int:
    """Numbers in tensors and arrays, however they are packed."""
    if isinstance(value, Tensor | np.ndarray):
        return int(np.prod(value.shape))
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, tuple | list) else 1


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
    """Kept outputs of a network at rays, within a block of `keeping`; else they are computed."""
    some = first(inputs)
    key = id(model), some.data_ptr(), len(some), rays.shape, rays.cpu().numpy().tobytes()
    return kept_for((model, inputs), key, compute)


def kept_for(owners: tuple[object, ...], key: Hashable, compute: Callable[[], Value]) -> Value:
    """A kept value (`KeptOutputs.get`), within a block of `keeping`; else it is computed."""
    kept = _KEPT.get()
    return compute() if kept is None else kept.get(owners, key, compute)
