"""Optimisers on named parameters: Adam and AdamW through torch's fused kernel, and SGD.

`torch.optim.Optimizer.step` looks up groups, states and hooks anew each time, which a small network
feels in every step. Here moments and averages are plain tensors: a captured graph updates them in
place, several seeds share one update, and a checkpoint takes them by their names.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.runtime.torch_private import fused_adam_, lerp_all_, scale_all_

# The CUDA kernel gives 65,536 numbers to one block, which is most of a small network: cut into
# pieces of this size it keeps a GPU's multiprocessors busy (LeNet, H200: 26 us in one piece).
PIECE = 4096
# It takes 36 pieces at a time: more of them cost more than they win (3.2 million numbers, H200:
# 115 us in pieces of 4096).
PIECES = 32
# As usual for SGD; also the factor by which Nesterov's step looks ahead.
MOMENTUM = 0.9


@dataclass(frozen=True)
class UpdateRule:
    """How parameters are updated.

    Attributes:
        optimizer: ``"adam"``, ``"adamw"`` or ``"sgd"``.
        weight_decay: for `adam`, added to the gradients, times the parameters; for `adamw` and
            `sgd` decoupled: parameters shrink by rate x decay in every step.
        undecayed: the parameters that decoupled decay leaves alone, by name.
        average: how far the averaged weights move towards the weights in a step; 0: no average.
        clip: the largest norm of all gradients of a network together; 0: any.
    """

    optimizer: str = "adam"
    weight_decay: float = 0.0
    undecayed: Collection[str] = ()
    average: float = 0.0
    clip: float = 0.0


def find_undecayed(model: nn.Module) -> frozenset[str]:
    """Return the parameters that decoupled decay leaves alone, by name.

    Biases and scales, and what reads the ray: shrunk, the ray would have less influence.
    """
    vectors = {name for name, parameter in model.named_parameters() if parameter.ndim < 2}
    reads = model.ray_parameters if isinstance(model, Conditioning) else ()
    return frozenset(vectors.union(reads))


class Optimizer:
    """An optimiser with its moments laid out before the first step.

    Args:
        parameters: by name; updated in place.
        rule: how.
        stacked: whether the parameters of several seeds are stacked along the first axis.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], rule: UpdateRule, *, stacked: bool = False
    ) -> None:
        self._names = tuple(parameters)
        # detached tensors share the memory, and in-place changes of them are not recorded
        self._parameters = [p.detach() for p in parameters.values()]
        self._rule, self._stacked = rule, stacked
        count = 1 if rule.optimizer == "sgd" else 2
        self._moments = [[torch.zeros_like(p) for p in self._parameters] for _ in range(count)]
        self._average = [p.clone() for p in self._parameters] if rule.average else []
        device = self._parameters[0].device
        # a tensor, which the fused kernel reads for the bias correction
        self._step = torch.zeros((), device=device)
        self._step_index = torch.zeros(1, dtype=torch.long, device=device)
        """The step within the epoch, where the rate changes from step to step."""
        self._rates: Tensor | None = None
        # a captured graph reads the rate from the device; on a CPU a number is faster
        self._cuda = device.type == "cuda"
        self._device_rate = torch.zeros(1, device=device)
        self._rate: Tensor | float = self._device_rate[0] if self._cuda else 0.0
        total = sum(p.numel() for p in self._parameters)
        self._piece = max(PIECE, total // PIECES) if self._cuda else None
        # views of the same memory, cut once: cutting costs more than a small update
        self._live = [self._cut(k) for k in (self._parameters, *self._moments, self._average)]
        decayed = rule.optimizer != "adam" and rule.weight_decay > 0
        self._decayed = self._cut(
            [
                p
                for name, p in zip(self._names, self._parameters, strict=True)
                if decayed and name not in rule.undecayed
            ]
        )

    def set_rates(self, rates: Sequence[float]) -> None:
        """Set the learning rates of an epoch's steps: one each, or one for all of them."""
        self._step_index.zero_()
        if len(rates) == 1:
            self._rates = None
            if self._cuda:
                self._device_rate.fill_(rates[0])
            else:
                self._rate = rates[0]
            return
        values = torch.tensor(rates)
        if self._rates is None:
            self._rates = values.to(self._step_index.device)
        else:  # where a captured graph reads them
            self._rates.copy_(values)

    @torch.no_grad()
    def update(self, gradients: Mapping[str, Tensor]) -> None:
        """Update once, in place; gradients lie in memory as their parameters do."""
        ordered = [gradients[name] for name in self._names]
        if self._rule.clip:
            ordered = self._clip(ordered)
        if self._rates is not None:
            self._advance_rate(self._rates)
        self._step.add_(1)
        # before the update, as in `torch.optim.AdamW`
        if self._decayed:
            factor = 1 - self._rate * self._rule.weight_decay
            scale_all_(self._decayed, factor)
        parameters, *moments, average = self._live
        change = self._sgd if self._rule.optimizer == "sgd" else self._adam
        change(parameters, ordered if self._piece is None else self._cut(ordered), moments)
        if average:  # an exponential moving average of the weights
            lerp_all_(average, parameters, self._rule.average)

    def _advance_rate(self, rates: Tensor) -> None:
        if self._cuda:  # on the device: a captured graph has no numbers of Python's
            torch.index_select(rates, 0, self._step_index, out=self._device_rate)
        else:
            self._rate = float(rates[int(self._step_index)])
        self._step_index.add_(1)

    def _adam(
        self, parameters: list[Tensor], gradients: list[Tensor], moments: list[list[Tensor]]
    ) -> None:
        """Adam (Kingma and Ba 2015), and AdamW, whose decay is done."""
        coupled = self._rule.optimizer == "adam"
        fused_adam_(
            parameters,
            gradients,
            *moments,
            [],  # the maxima of AMSGrad, which is off
            [self._step] * len(parameters),
            lr=self._rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self._rule.weight_decay if coupled else 0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def _sgd(
        self, parameters: list[Tensor], gradients: list[Tensor], moments: list[list[Tensor]]
    ) -> None:
        """Stochastic gradient descent with Nesterov's momentum."""
        (velocity,) = moments
        for parameter, gradient, speed in zip(parameters, gradients, velocity, strict=True):
            speed.mul_(MOMENTUM).add_(gradient)
            parameter.sub_(torch.add(gradient, speed, alpha=MOMENTUM) * self._rate)

    def _clip(self, gradients: list[Tensor]) -> list[Tensor]:
        """Scale gradients to be no longer than the limit, all of a network's together."""
        axes = [tuple(range(int(self._stacked), g.ndim)) for g in gradients]
        squares = [
            # no axes to sum over: `dim=()` would sum over all, seeds included
            g.square().sum(dim=dims) if dims else g.square()
            for g, dims in zip(gradients, axes, strict=True)
        ]
        norm = torch.stack(squares).sum(dim=0).sqrt()
        # without a branch, which would read the norm back from the device: 1 for a shorter norm
        factor = self._rule.clip / norm.clamp(min=self._rule.clip)
        shapes = [(-1, *[1] * len(dims)) if self._stacked else () for dims in axes]
        return [g * factor.reshape(shape) for g, shape in zip(gradients, shapes, strict=True)]

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the networks, inside, their averaged weights, where there is an average."""
        self._exchange()  # a swap: the weights that train on wait in the place of the average
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        if not self._average:
            return
        for parameter, average in zip(self._parameters, self._average, strict=True):
            copy = parameter.clone()
            parameter.copy_(average)  # in place: the networks' parameters are these tensors
            average.copy_(copy)

    def tensors(self) -> list[Tensor]:
        """Return everything a step changes, parameters included."""
        moments = [tensor for moment in self._moments for tensor in moment]
        return [*self._parameters, *moments, *self._average, self._step, self._step_index]

    def state(self, seed: int = 0) -> dict[str, Tensor]:
        """Return one seed's moments and averages by name, as views: a checkpoint's part.

        Args:
            seed: its index in the stack.
        """
        # torch.optim's names; SGD has one moment, its velocity, under the first of them
        kinds = dict(zip(("exp_avg", "exp_avg_sq"), self._moments, strict=False))
        if self._average:
            kinds["average"] = self._average
        state = {"step": self._step}
        for kind, values in kinds.items():
            for name, value in zip(self._names, values, strict=True):
                state[f"{name}.{kind}"] = value[seed] if self._stacked else value
        return state

    def _cut(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return tensors as the kernel gets them: on a GPU flat and in pieces."""
        if self._piece is None:
            return list(tensors)
        # as they lie in memory, whatever their axes' order
        flat = (t.as_strided((t.numel(),), (1,), t.storage_offset()) for t in tensors)
        return [piece for tensor in flat for piece in tensor.split(self._piece)]
