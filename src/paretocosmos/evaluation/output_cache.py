"""A cache of one network's outputs for one problem's data, passed to all that evaluates it."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, final

import numpy as np
from torch import Tensor

Value = TypeVar("Value")


@final
class OutputCache:
    """Outputs of a network at rays and what follows from them; the least recently used ones go.

    It is passed to whatever evaluates that network. The rays of a key are those that went through
    the network together, so whatever is chosen by cached outputs is what would be chosen without,
    bit for bit.

    Args:
        room: numbers to hold at most, a fourth of the bytes; with 0 everything is computed anew.
    """

    def __init__(self, room: int = 64_000_000) -> None:
        self.room, self._used = room, 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return a value, computed if it is not cached.

        Args:
            key: what the value depends on beside the network and the data, such as the split.
            compute: computes the value.
        """
        if key in self._entries:
            self._entries.move_to_end(key)
            cached: Value = self._entries[key][0]
            return cached
        value = compute()
        size = _count_numbers(value)
        if size <= self.room:  # a larger one would push out all others and then itself
            self._entries[key] = value, size
            self._used += size
            while self._used > self.room:
                self._used -= self._entries.popitem(last=False)[1][1]
        return value


NO_CACHE = OutputCache(0)
"""Holds nothing."""


def key_rays(rays: Tensor) -> Hashable:
    """Return a key for rays ``[N, J]``."""
    return tuple(rays.shape), rays.cpu().numpy().tobytes()


def _count_numbers(value: object) -> int:
    """Count the numbers in tensors and arrays, however they are packed."""
    if isinstance(value, Tensor | np.ndarray):
        return int(np.prod(value.shape))
    if isinstance(value, dict):
        return sum(map(_count_numbers, value.values()))
    return sum(map(_count_numbers, value)) if isinstance(value, tuple | list) else 1
