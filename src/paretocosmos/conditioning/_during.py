"""What is set on a network's modules while it is called, and once more while gradients come back.

A ray has to reach layers in the middle of a network that nobody here wrote, through a `forward`
that passes no ray on. So something is set on modules for the time of a call: on each `Listener`
what the ray amounts to there, or, by a hypernetwork, the weights. This file is the one place where
that happens.

Who sets. A conditioning, in its `forward`: it hands `Held.call` the tensors, a function `put` that
sets such tensors and returns a function that takes them back, and the computation. Who reads: the
layers, during the computation (`Listener.heard`), and nobody else.

When it is taken back. At the end of the call, also where the call raises. A layer that is called
outside of a call finds nothing and says so.

In the backward pass. Gradient checkpointing computes parts of a call again there. So the outputs
of a call carry a gradient hook that sets the call's tensors again. Nodes of later calls run before
those of earlier ones: until the pass comes by the outputs of another call, what is computed again
belongs to this one. The end of the pass takes back what was set last. The hook sets copies that
pass their gradient on (`_apart`), since `use_reentrant=True` goes back through each part at once.

Exceptions in the backward pass. Its end is then not reached, and the tensors stay set. The next
call outside of a backward pass takes them back before it begins, and so does the next hook.

Nesting. A call inside a call (a network inside a conditioned network, a whole call computed again)
sets its own tensors and leaves those that it found. What a hook sets inside of a call is taken back
to what the call had set.

Many backward passes at once (`is_grads_batched`, TorchJD). The hook runs inside a `vmap`, and sets
the tensors as they are: `use_reentrant=True` is not possible there anyway.

torch.func, `vmap`, `torch.compile`. Tensors are set and taken back as everywhere. Inside torch.func
tensors have no hooks, and a compiled graph computes nothing again in Python: no hooks there.

Threads. Modules are shared by threads, and so is what is set on them: one conditioned network is
called by one thread at a time, as the server does; threads that want more take copies. A GPU's
backward pass runs in a thread of torch's own, while its caller waits.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from paretocosmos.runtime.torch_private import (
    after_backward,
    in_backward_pass,
    is_functorch_wrapped,
)

__all__ = ["Held", "Put"]

Put = Callable[[Sequence[Tensor]], Callable[[], None]]
"""Set tensors on modules, and return what takes them back."""

Result = TypeVar("Result")


class Held:
    """What the backward pass has set on the modules of one conditioned network."""

    def __init__(self) -> None:
        self._undo: Callable[[], None] | None = None
        self._redo: Callable[[], Callable[[], None]] | None = None

    def call(self, compute: Callable[[], Result], tensors: Sequence[Tensor], put: Put) -> Result:
        """Compute with tensors set, and have them set again in the backward pass.

        Args:
            compute: sets the tensors and takes them back by itself.
            tensors: what it sets.
            put: how they are set again.
        """
        if torch.compiler.is_compiling():
            return compute()
        if not in_backward_pass():
            self.take_back()  # what a backward pass left that raised
        outputs = compute()
        if torch.is_grad_enabled():
            self._set_again(outputs, tensors, put)
        return outputs

    def take_back(self) -> None:
        """Leave the modules as they were."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def without(self, read: Callable[[], Result]) -> Result:
        """Read what the modules have of their own, which may be covered by what is set."""
        if self._undo is None or self._redo is None:
            return read()
        self._undo()
        try:
            return read()
        finally:
            self._undo = self._redo()

    def _set_again(self, outputs: object, tensors: Sequence[Tensor], put: Put) -> None:
        def hook(grad: Tensor | None) -> None:
            self.take_back()
            # many backward passes at once, by `vmap`: no tensor can ask for gradients in there
            at_once = grad is not None and is_functorch_wrapped(grad)
            # one each, though used twice
            ours = {tensor: tensor if at_once else _apart(tensor) for tensor in tensors}
            self._redo = partial(put, [ours[tensor] for tensor in tensors])
            self._undo = self._redo()
            after_backward(self.take_back)

        for tensor in _every_tensor(outputs):
            # not on a parameter, where it would stay
            if tensor.grad_fn is not None and not is_functorch_wrapped(tensor):
                tensor.register_hook(hook)

    def __deepcopy__(self, _: object) -> "Held":
        return Held()  # of other modules, on which nothing is set

    def __reduce__(self) -> tuple[type["Held"], tuple[()]]:
        return Held, ()


def _apart(tensor: Tensor) -> Tensor:
    """The same numbers for a part of the graph that is built during the backward pass.

    Reentrant checkpointing goes back through every part that it computed again, each time on into
    what gave the numbers, which must not be used up by the first.
    """
    if not tensor.requires_grad:
        return tensor
    leaf = tensor.detach().requires_grad_()
    leaf.register_hook(lambda grad: torch.autograd.backward(tensor, grad, retain_graph=True))
    return leaf


def _every_tensor(outputs: object) -> Iterator[Tensor]:
    """Every tensor of what a network gives, however it is packed."""
    if isinstance(outputs, Tensor):
        yield outputs
    elif isinstance(outputs, Mapping):
        yield from (tensor for part in outputs.values() for tensor in _every_tensor(part))
    elif isinstance(outputs, list | tuple):
        yield from (tensor for part in outputs for tensor in _every_tensor(part))
    elif dataclasses.is_dataclass(outputs):
        yield from _every_tensor(vars(outputs))
