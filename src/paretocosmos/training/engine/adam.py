"""Adam on named parameters, through torch's fused kernel.

`Optimizer.step` looks up groups, states and hooks anew each time, which a small network feels in
every step. Here the moments are plain tensors: a captured graph updates them in place, several
seeds share one update, and a checkpoint takes them by their names.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from paretocosmos.runtime.torch_private import fused_adam_

__all__ = ["Adam"]

# The CUDA kernel gives 65,536 numbers to one block, which is most of a small network: cut into
# pieces of this size it keeps a GPU's multiprocessors busy (LeNet, H200: 26 us in one piece).
PIECE = 4096
# It takes 36 pieces at a time: more of them cost more than they win (3.2 million numbers, H200:
# 115 us in pieces of 4096).
PIECES = 32


class Adam:
    """Adam (Kingma and Ba 2015) with its moments laid out before the first step.

    Args:
        parameters: by name; updated in place.
        weight_decay: added to the gradients, times the parameters.
        stacked: whether the parameters of several seeds are stacked along the first axis.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], *, weight_decay: float, stacked: bool = False
    ) -> None:
        self._names = tuple(parameters)
        self._parameters = [p.detach() for p in parameters.values()]
        self._weight_decay, self._stacked = weight_decay, stacked
        self._first = [torch.zeros_like(p) for p in self._parameters]
        self._second = [torch.zeros_like(p) for p in self._parameters]
        device = self._parameters[0].device
        self._step = torch.zeros((), device=device)
        # a captured graph reads the rate from the device; on a CPU a number is faster
        cuda = device.type == "cuda"
        self._rate: Tensor | float = torch.zeros((), device=device) if cuda else 0.0
        total = sum(p.numel() for p in self._parameters)
        self._piece = max(PIECE, total // PIECES) if cuda else None
        self._kept = [self._cut(k) for k in (self._parameters, self._first, self._second)]

    def set_learning_rate(self, rate: float) -> None:
        """The learning rate of the steps to come."""
        if isinstance(self._rate, Tensor):
            self._rate.fill_(rate)
        else:
            self._rate = rate

    @torch.no_grad()
    def update(self, gradients: Mapping[str, Tensor]) -> None:
        """One step, in place; gradients lie in memory as their parameters do."""
        parameters, first, second = self._kept
        self._step.add_(1)
        fused_adam_(
            parameters,
            self._cut([gradients[name] for name in self._names]),
            first,
            second,
            [],
            [self._step] * len(parameters),
            lr=self._rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self._weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def tensors(self) -> list[Tensor]:
        """Everything a step changes, parameters included."""
        return [*self._parameters, *self._first, *self._second, self._step]

    def state(self, seed: int = 0) -> dict[str, Tensor]:
        """One seed's moments by name, as views: what a checkpoint saves, and loads into.

        Args:
            seed: its place in the stack.
        """
        found = {"step": self._step}
        for moment, kept in (("exp_avg", self._first), ("exp_avg_sq", self._second)):
            for name, value in zip(self._names, kept, strict=True):
                found[f"{name}.{moment}"] = value[seed] if self._stacked else value
        return found

    def _cut(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Tensors as the kernel gets them: on a GPU flat and in pieces."""
        if self._piece is None:
            return list(tensors)
        # as they lie in memory, whatever their axes' order
        flat = (t.as_strided((t.numel(),), (1,), t.storage_offset()) for t in tensors)
        return [piece for tensor in flat for piece in tensor.split(self._piece)]
