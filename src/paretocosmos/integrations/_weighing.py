"""From a batch to the scalar that a loop of another library back-propagates."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.config.presets import loop_groups
from paretocosmos.errors import ConfigurationError, DataError, unknown
from paretocosmos.integrations._batches import as_batch, batch_of_each, targets_of
from paretocosmos.integrations._checks import (
    checked_model,
    checked_objectives,
    method_of,
    training_of,
)
from paretocosmos.methods import Gram, Method
from paretocosmos.objectives import Objective
from paretocosmos.training.engine.gradients import LossGradients, head_modules
from paretocosmos.training.engine.step import SCALES, as_called, group_losses, weigh
from paretocosmos.training.loss_scales import pulls
from paretocosmos.types import Batch, Outputs, Targets, first, map_tensors

Ranks = Literal["differ", "agree"]


class Weighed(NamedTuple):
    """What a batch gives.

    Attributes:
        total: the scalar to back-propagate; its gradient is the method's, its value means little.
        losses: ``[J]``, without gradient, the mean over the ray groups.
        outputs: the network's; those for the first objective, where each has a loader.
        samples: how many there were.
    """

    total: Tensor
    losses: Tensor
    outputs: Outputs
    samples: int


class Part(NamedTuple):
    """Objectives that read the same batch, and what the network gave for it."""

    objectives: Sequence[Objective]
    outputs: Outputs
    targets: Targets


class Weighing:
    """Draws rays, weighs losses, and keeps what the method remembers.

    A ray is a function of the seed and the place of its batch in the training, so that a training
    that is resumed draws what it would have drawn.

    Args:
        model: ``forward(inputs, ray)``; it is only looked at.
        objectives: what is traded.
        preset: what is not said is as this has it.
        method: how losses become weights, or its name; the preset's if `None`.
        settings: of a method by name.
        targets: those that objectives of one's own read beside their `target`.
        groups: rays per batch, each for an equal share of it; the preset's if `None`.
        ranks: whether the rays of several processes differ or agree.
        seed: of the rays.
    """

    def __init__(
        self,
        model: nn.Module,
        objectives: Sequence[Objective],
        *,
        preset: str,
        method: str | Method | None,
        settings: Mapping[str, Any] | None,
        targets: Sequence[str],
        groups: int | None,
        ranks: Ranks,
        seed: int,
    ) -> None:
        self.objectives = checked_objectives(objectives)
        self.method = method_of(method, settings, self.objectives, preset)
        checked_model(model, len(self.objectives))
        if groups is not None and groups < 1:
            raise ConfigurationError(f"`groups` must be at least 1, found {groups}")
        if ranks not in get_args(Ranks):
            raise unknown("`ranks`", ranks, get_args(Ranks))
        if type(seed) is not int or seed < 0:
            raise ConfigurationError(f"`seed` must be a whole number of at least 0, found {seed!r}")
        self.targets = targets_of(self.objectives, targets)
        self.preset, self.groups, self.ranks, self.seed = preset, groups, ranks, seed
        self.training = training_of(preset, self.objectives)
        self.epoch = -1  # none has begun
        self.state = self._fresh()
        self._scaled = not self.training.scale_losses

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives' names."""
        return tuple(objective.name for objective in self.objectives)

    def batch(self, given: Any) -> Batch:
        """A batch of theirs as ours."""
        return as_batch(given, self.targets)

    def batches(self, given: Any) -> tuple[Batch | None, ...]:
        """One batch for all objectives, or one for each, where each has a loader of its own."""
        each = batch_of_each(given, self.objectives)
        if each is None:
            return (self.batch(given),)
        return tuple(
            None if part is None else as_batch(part, targets_of([one], ()))
            for one, part in zip(self.objectives, each, strict=True)
        )

    def rays(self, place: Sequence[int], rank: int, groups: int) -> Tensor:
        """Rays ``[G, J]`` of the batch at a place in the training, for one of several processes."""
        own = [rank] if self.ranks == "differ" else []
        mixed = np.random.SeedSequence([self.seed, *place, *own]).generate_state(1)
        generator = torch.Generator().manual_seed(int(mixed[0]))
        return self.method.sample(len(self.objectives), groups, generator)

    def __call__(
        self,
        model: nn.Module,
        given: Any,
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
            given: a batch of theirs on the network's device; or one for each objective by name,
                where each has a loader of its own: then the network is called for each of them,
                at the same rays.
            epoch: of the training, the first being 0.
            place: numbers that no other batch of the training has.
            rank: the number of the process.
            network: the network itself, where `model` is something around it.
            mean: over processes; where their rays agree, the losses of all are weighed.
        """
        network = model if network is None else network
        parameter = next(p for p in network.parameters() if p.is_floating_point())
        batches = self._complete(self.batches(given))
        groups = math.gcd(*(self._groups(batch) for batch in batches))
        rays = self.rays(place, rank, groups).to(parameter.device)
        seen_by = [self.objectives] if len(batches) == 1 else [(one,) for one in self.objectives]
        parts: list[Part] = []
        for objectives, batch in zip(seen_by, batches, strict=True):
            called = as_called(network, rays.to(parameter.dtype), len(batch))
            parts.append(Part(objectives, model(batch.inputs, called), batch.targets))
        with torch.autocast(parameter.device.type, enabled=False):
            each = [group_losses(p.objectives, full(p.outputs), p.targets, groups) for p in parts]
            losses = torch.cat(each, dim=1)
            if not self._scaled:
                self._scale(parts, mean)
            seen = losses.detach()
            if mean is not None and self.ranks == "agree":
                seen = mean(seen)
            self._begin(epoch, seen)
            state = {name: value.to(rays.device) for name, value in self.state.items()}
            known = {name: value for name, value in state.items() if name == SCALES}
            # a loss whose scale is not known yet is taken as it is
            state |= {name: torch.where(value > 0, value, 1.0) for name, value in known.items()}
            gram = self._gram(losses, network)
            weights, after = weigh(self.method, seen, rays, gram, state, groups=groups)
            total = (weights.detach() * losses).sum()
        self.state = dict(after) | known
        return Weighed(total, losses.detach().mean(dim=0), parts[0].outputs, sum(map(len, batches)))

    def _complete(self, batches: Sequence[Batch | None]) -> list[Batch]:
        """Those of a step, which needs one of every loader."""
        for objective, batch in zip(self.objectives, batches, strict=False):
            if batch is None:
                raise DataError(
                    "a step needs a batch of every objective's loader, but that of "
                    f"`{objective.name}` has ended: let the `CombinedLoader` restart it, with "
                    'mode="max_size_cycle"'
                )
        return [batch for batch in batches if batch is not None]

    def _fresh(self) -> dict[str, Tensor]:
        """What is remembered before the first batch: the method's state, and no scale."""
        count = len(self.objectives)
        scales = {SCALES: torch.zeros(count)} if self.training.scale_losses else {}
        return {**self.method.init(count), **scales}

    def _scale(self, parts: Sequence[Part], mean: Callable[[Tensor], Tensor] | None) -> None:
        """The scales of losses from the first batch in which each has a gradient."""
        generator = torch.Generator().manual_seed(self.seed)
        pulled = torch.cat(
            [pulls(p.objectives, full(p.outputs), p.targets, generator) for p in parts]
        )
        pulled = torch.stack([pulled, (pulled > 0).float()])
        pulled, share = pulled if mean is None else mean(pulled)  # the same in all processes
        before = self.state[SCALES].to(pulled)
        found = torch.where(before > 0, before, pulled / share.clamp_min(1e-12))
        self.state[SCALES], self._scaled = found, bool((found > 0).all())

    def _groups(self, batch: Batch) -> int:
        if self.groups is not None:
            return math.gcd(len(batch), self.groups)
        return loop_groups(self.preset, first(batch.inputs).ndim - 1, len(batch))

    def _begin(self, epoch: int, losses: Tensor) -> None:
        if self.epoch < 0:
            self.method.check(losses.mean(dim=0), self.names)
        if epoch != self.epoch:
            self.state |= self.method.at_epoch(epoch, self.state)
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
        fresh = self._fresh()
        if kept["state"].keys() != fresh.keys():
            raise ConfigurationError(
                f"the checkpoint's method has the state {', '.join(kept['state']) or 'nothing'}, "
                f"this one {', '.join(fresh) or 'nothing'}: resume with the same "
                "`method` and `preset`"
            )
        self.state = {
            name: torch.tensor(kept["state"][name], dtype=value.dtype).reshape(value.shape)
            for name, value in fresh.items()
        }
        self.epoch = int(kept["epoch"])
        self._scaled = SCALES not in self.state or bool((self.state[SCALES] > 0).all())


def full(outputs: Any) -> Any:
    """Outputs in float32 where they are in half precision: no loss is computed in less."""
    half = (torch.bfloat16, torch.float16)
    return map_tensors(lambda out: out.float() if out.dtype in half else out, outputs)
