"""From a batch to the scalar that a loop of another library back-propagates."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.integrations._batches import as_batch, targets_of
from paretocosmos.integrations._checks import checked_model, checked_objectives, method_of
from paretocosmos.methods import Gram, Method
from paretocosmos.objectives import Objective
from paretocosmos.training.engine.gradients import LossGradients, head_modules
from paretocosmos.training.engine.losses import group_losses
from paretocosmos.training.engine.step import as_called, weigh
from paretocosmos.types import Batch, Outputs, map_tensors

Ranks = Literal["differ", "agree"]


class Weighed(NamedTuple):
    """What a batch gives.

    Attributes:
        total: the scalar to back-propagate; its gradient is the method's, its value means little.
        losses: ``[J]``, without gradient, the mean over the ray groups.
        outputs: the network's.
    """

    total: Tensor
    losses: Tensor
    outputs: Outputs


class Weighing:
    """Draws rays, weighs losses, and keeps what the method remembers.

    A ray is a function of the seed and the place of its batch in the training, so that a training
    that is resumed draws what it would have drawn.

    Args:
        model: ``forward(inputs, ray)``; it is only looked at.
        objectives: what is traded.
        method: how losses become weights, or its name.
        settings: of a method by name.
        targets: those that objectives of one's own read beside their `target`.
        groups: rays per batch, each for an equal share of it.
        ranks: whether the rays of several processes differ or agree.
        seed: of the rays.
    """

    def __init__(
        self,
        model: nn.Module,
        objectives: Sequence[Objective],
        *,
        method: str | Method,
        settings: Mapping[str, Any] | None,
        targets: Sequence[str],
        groups: int,
        ranks: Ranks,
        seed: int,
    ) -> None:
        self.objectives = checked_objectives(objectives)
        self.method = method_of(method, settings, len(self.objectives))
        checked_model(model, len(self.objectives))
        if groups < 1:
            raise ConfigurationError(f"`groups` must be at least 1, found {groups}")
        if ranks not in get_args(Ranks):
            raise unknown("`ranks`", ranks, get_args(Ranks))
        if type(seed) is not int or seed < 0:
            raise ConfigurationError(f"`seed` is a whole number of at least 0, found {seed!r}")
        self.targets = targets_of(self.objectives, targets)
        self.groups, self.ranks, self.seed = groups, ranks, seed
        self.epoch = -1  # none has begun
        self.state = dict(self.method.init(len(self.objectives)))

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives' names."""
        return tuple(objective.name for objective in self.objectives)

    def batch(self, given: Any) -> Batch:
        """A batch of theirs as ours."""
        return as_batch(given, self.targets)

    def rays(self, place: Sequence[int], rank: int, groups: int) -> Tensor:
        """Rays ``[G, J]`` of the batch at a place in the training, for one of several processes."""
        own = [rank] if self.ranks == "differ" else []
        mixed = np.random.SeedSequence([self.seed, *place, *own]).generate_state(1)
        generator = torch.Generator().manual_seed(int(mixed[0]))
        return self.method.sample(len(self.objectives), groups, generator)

    def __call__(
        self,
        model: nn.Module,
        batch: Batch,
        *,
        epoch: int,
        place: Sequence[int],
        rank: int = 0,
        network: nn.Module | None = None,
        mean: Callable[[Tensor], Tensor] | None = None,
    ) -> Weighed:
        """Draw rays, call the network, and weigh its losses.

        Args:
            model: what is called, the network or something around it.
            batch: inputs and targets, on the network's device.
            epoch: of the training, the first being 0.
            place: numbers that no other batch of the training has.
            rank: the number of the process.
            network: the network itself, where `model` is something around it.
            mean: over processes; where their rays agree, the losses of all are weighed.
        """
        network = model if network is None else network
        parameter = next(p for p in network.parameters() if p.is_floating_point())
        groups = math.gcd(len(batch), self.groups)
        rays = self.rays(place, rank, groups).to(parameter.device)
        given = as_called(network, rays.to(parameter.dtype), len(batch))
        outputs: Outputs = model(batch.inputs, given)
        with torch.autocast(parameter.device.type, enabled=False):
            losses = group_losses(self.objectives, full(outputs), batch.targets, groups)
            seen = losses.detach()
            if mean is not None and self.ranks == "agree":
                seen = mean(seen)
            self._begin(epoch, seen)
            state = {name: value.to(rays.device) for name, value in self.state.items()}
            gram = self._gram(losses, network)
            weights, after = weigh(self.method, seen, rays, gram, state, groups=groups)
            total = (weights.detach() * losses).sum()
        self.state = dict(after)
        return Weighed(total, losses.detach().mean(dim=0), outputs)

    def _begin(self, epoch: int, losses: Tensor) -> None:
        if self.epoch < 0:
            self.method.check(losses.mean(dim=0), self.names)
        if epoch != self.epoch:
            self.state = dict(self.method.at_epoch(epoch, self.state))
            self.epoch = epoch

    def _gram(self, losses: Tensor, network: nn.Module) -> Gram:
        def gram() -> Tensor:
            leaves = {name: p for name, p in network.named_parameters() if p.requires_grad}
            apart = head_modules(network, self.method)
            return LossGradients(losses, leaves, apart, stacked=False).gram()

        return gram

    def kept(self) -> dict[str, Any]:
        """What a checkpoint holds of it, in plain numbers and lists."""
        state = {name: value.tolist() for name, value in self.state.items()}
        return {"epoch": self.epoch, "state": state}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """The inverse of `kept`."""
        fresh = self.method.init(len(self.objectives))
        if kept["state"].keys() != fresh.keys():
            raise ConfigurationError(
                f"the checkpoint's method remembers {', '.join(kept['state']) or 'nothing'}, found "
                f"one that remembers {', '.join(fresh) or 'nothing'}: resume with the same `method`"
            )
        self.state = {
            name: torch.tensor(kept["state"][name], dtype=value.dtype).reshape(value.shape)
            for name, value in fresh.items()
        }
        self.epoch = int(kept["epoch"])


def full(outputs: Any) -> Any:
    """Outputs in float32 where they are in half precision: no loss is computed in less."""
    half = (torch.bfloat16, torch.float16)
    return map_tensors(lambda out: out.float() if out.dtype in half else out, outputs)
