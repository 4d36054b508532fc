"""Whether a recorded step would freeze something that Python decides."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["FrozenError", "changes_refused", "reading_refused"]

# What gives Python a number that depends on a tensor's values, or a shape that does, and that
# `make_fx` lets pass: it refuses `item`, `float` and `if` itself.
READING = frozenset(
    {
        *(Tensor.tolist, Tensor.numpy, Tensor.__array__, Tensor.__dlpack__),
        *(Tensor.equal, Tensor.allclose, torch.equal, torch.allclose),
        *(Tensor.nonzero, Tensor.argwhere, Tensor.masked_select, Tensor.unique),
        *(torch.nonzero, torch.argwhere, torch.masked_select, torch.unique),
    }
)
PLAIN = (bool, int, float, complex, str, bytes, type(None))


class FrozenError(Exception):
    """A step that a recording would not repeat, since Python has a say in it."""


class reading_refused(TorchFunctionMode):  # noqa: N801, a context like those of contextlib
    """Refuses whatever lets Python see a tensor's values, be it as a shape."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in READING or (func is Tensor.__getitem__ and _selects(args[1])):
            name = getattr(func, "__name__", str(func))
            raise FrozenError(f"the step reads values of tensors in Python (`{name}`)")
        return func(*args, **(kwargs or {}))


def _selects(index: object) -> bool:
    """Whether an index takes as many entries as a mask has."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, Tensor) and part.dtype == torch.bool for part in parts)


@contextmanager
def changes_refused(things: Iterable[object]) -> Iterator[None]:
    """Refuse things that change an attribute of their own inside.

    Args:
        things: those that promise to keep no state between steps.
    """
    every = [thing for thing in things if hasattr(thing, "__dict__")]
    marks = [_marks(vars(thing)) for thing in every]
    yield
    for thing, mark in zip(every, marks, strict=True):
        now = _marks(vars(thing))
        changed = [name for name in {**mark, **now} if mark.get(name) != now.get(name)]
        if changed:
            raise FrozenError(
                f"`{type(thing).__name__}` changes its `{changed[0]}` from step to step in Python"
            )


def _marks(attributes: Mapping[str, object]) -> dict[str, object]:
    """What tells that an attribute was changed: a plain value, the length of a container."""
    return {name: _mark(value) for name, value in attributes.items()}


def _mark(value: object) -> object:
    if isinstance(value, PLAIN):
        return type(value).__name__, repr(value)  # which is equal for two NaNs
    if isinstance(value, list | dict | set | tuple):
        return id(value), len(value)
    return id(value)
