"""One training step as a pure function: parameters and a batch in, losses and gradients out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretocosmos.conditioning import Conditioning, HypernetOutput
from paretocosmos.config.promises import promised
from paretocosmos.methods import Gram, Method, State
from paretocosmos.objectives import Objective
from paretocosmos.runtime.distributed import ALONE, Processes
from paretocosmos.training.engine.gradients import (
    EmittedLosses,
    LossGradients,
    Telling,
    emits,
    head_modules,
)
from paretocosmos.types import Batch, Inputs, Outputs, Targets, first, map_tensors

# What may differ between objectives that are computed together.
_OWN = {"name", "output", "target"}


def group_losses(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets, groups: int
) -> Tensor:
    """Losses ``[G, J]``: every objective on every group of neighbouring samples."""

    def losses(outputs: Outputs, targets: Targets) -> Tensor:
        if _alike(objectives, outputs, targets):
            return _together(objectives, outputs, targets)
        return torch.stack([objective.loss(outputs, targets) for objective in objectives])

    if groups == 1:
        return losses(outputs, targets).unsqueeze(0)

    def split(part: Tensor) -> Tensor:
        return torch.unflatten(part, 0, (groups, len(part) // groups))

    return torch.vmap(losses)(map_tensors(split, outputs), map_tensors(split, targets))


def _alike(objectives: Sequence[Objective], outputs: Outputs, targets: Targets) -> bool:
    """Whether the objectives are of one kind, on several heads of one shape.

    Ten cross-entropies on ten heads are then one of J times the size: on a GPU the cost of a step
    must not grow with the objectives. One from outside may look at other heads, unless it promises
    otherwise.
    """
    lead = objectives[0]
    return (
        isinstance(outputs, Mapping)
        and len(objectives) > 1
        and promised(lead, "per_head")
        and all(o.output in outputs and o.target in targets for o in objectives)
        and len({type(o) for o in objectives}) == 1
        and all(_settings(o) == _settings(lead) for o in objectives)
        and len({outputs[str(o.output)].shape for o in objectives}) == 1
        and len({(targets[o.target].shape, targets[o.target].dtype) for o in objectives}) == 1
    )


def _settings(objective: Objective) -> dict[str, object]:
    return {key: value for key, value in vars(objective).items() if key not in _OWN}


def _together(objectives: Sequence[Objective], outputs: Outputs, targets: Targets) -> Tensor:
    assert isinstance(outputs, Mapping)
    lead = objectives[0]

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return lead.loss({str(lead.output): output}, {**targets, lead.target: target})

    return torch.vmap(loss)(
        torch.stack([outputs[str(o.output)] for o in objectives]),
        torch.stack([targets[o.target] for o in objectives]),
    )


SCALES = "loss_scales"
"""What the losses' scales are called among the method's state, with which they are saved."""

Parameters = Mapping[str, Tensor]
Prepare = Callable[[Inputs, torch.dtype], Inputs]


class Result(NamedTuple):
    """What a step gives: losses ``[G, J]``, a gradient per parameter, and the method's state."""

    losses: Tensor
    gradients: dict[str, Tensor]
    state: State


Step = Callable[[Parameters, Batch, Tensor, State], Result]
"""Parameters by name, a batch, rays ``[G, J]`` and the method's state to a result.

A stacked step does this for S seeds at once: everything in and out has a leading axis S. Where
several processes share a step, the batch's inputs are one's own share, its targets are all.
"""


def make_step(
    model: nn.Module,
    objectives: Sequence[Objective],
    method: Method,
    *,
    prepare: Prepare | None = None,
    half: bool = False,
    stacked: bool = False,
    accumulate: int = 1,
    processes: Processes = ALONE,
    tasks: Sequence[str] = (),
) -> Step:
    """The step of a model under a method; the optimiser's update is the caller's.

    Args:
        model: ``forward(inputs, ray)``; with several seeds, any one of their networks.
        objectives: what is traded.
        method: how losses become weights.
        prepare: from kept inputs to what the network takes (`Problem.prepare`).
        half: run the network in bfloat16 where torch deems it safe (autocast).
        stacked: make the step for several seeds at once.
        accumulate: micro-batches, one after the other, each with an equal share of the ray groups.
        processes: those that share the step.
        tasks: the objectives' names where each has a batch of its own: then the inputs and targets
            of a batch are mappings by these names.
    """
    dtype = next(model.parameters()).dtype
    apart = head_modules(model, method)
    # several processes have rays of their own, and so weights of their own, each
    alone = processes.count == 1
    telling = Telling(model) if alone and not tasks and emits(model, apart) else None
    losses_of = _losses_of(model, telling, objectives, processes, prepare, half=half)
    if tasks:
        each = [_losses_of(model, None, [o], processes, prepare, half=half) for o in objectives]
        losses_of = _by_task(dict(zip(tasks, each, strict=True)))
    every = torch.vmap(losses_of) if stacked else losses_of

    def step(parameters: Parameters, batch: Batch, rays: Tensor, state: State) -> Result:
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        rays = rays.to(dtype)
        found: list[Tensor] = []
        total: dict[str, Tensor] = {}
        for micro, own_rays in _micro_batches(batch, rays, accumulate, axis=int(stacked)):
            with torch.enable_grad():
                losses, emission = every(leaves, micro.inputs, micro.targets, own_rays)
            samples = first(micro.targets).shape[int(stacked)]
            each_loss: LossGradients | EmittedLosses
            if telling is None:
                total_of = partial(processes.total, samples=samples)
                each_loss = LossGradients(losses, leaves, apart, total_of, stacked=stacked)
            else:
                each_loss = EmittedLosses(losses, leaves, HypernetOutput(*emission))
            weights, state = weigh(
                method, losses.detach(), own_rays, each_loss.gram, state, groups=rays.shape[-2]
            )
            gradients = each_loss.weighted(weights)
            total = {n: total[n] + g for n, g in gradients.items()} if total else gradients
            found.append(losses.detach())
        placed = {name: laid_out(total[name], leaf) for name, leaf in leaves.items()}
        return Result(found[0] if accumulate == 1 else torch.cat(found, dim=-2), placed, state)

    return step


LossesOf = Callable[[Parameters, Inputs, Targets, Tensor], tuple[Tensor, tuple[Tensor, ...]]]


def _by_task(each: Mapping[str, LossesOf]) -> LossesOf:
    """Every objective's losses ``[G, 1]`` on a batch of its own, side by side ``[G, J]``."""

    def losses_of(
        leaves: Parameters, inputs: Any, targets: Any, rays: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        found = [of(leaves, inputs[n], targets[n], rays)[0] for n, of in each.items()]
        return torch.cat(found, dim=-1), ()

    return losses_of


def _losses_of(
    model: nn.Module,
    telling: Telling | None,
    objectives: Sequence[Objective],
    processes: Processes,
    prepare: Prepare | None,
    *,
    half: bool,
) -> LossesOf:
    """A function of parameters, inputs, targets and rays ``[G, J]``: losses ``[G, J]``.

    Beside them it gives what a hypernetwork emitted, where `telling` tells.
    """
    dtype = next(model.parameters()).dtype

    def losses_of(
        leaves: Parameters, inputs: Inputs, targets: Targets, rays: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        samples, own = len(next(iter(targets.values()))), processes.share_of_rays(rays)
        given = as_called(model, own, len(first(inputs)))
        ready = inputs if prepare is None else prepare(inputs, dtype)
        # without its cache of cast weights, which would outlive a trace
        with torch.autocast(rays.device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            outputs: Outputs
            emission: tuple[Tensor, ...] = ()
            if telling is None:
                outputs = functional_call(model, dict(leaves), (ready, given))
            else:
                named = {f"model.{name}": leaf for name, leaf in leaves.items()}
                outputs, emission = functional_call(telling, named, (ready, given))
        if half:
            outputs = map_tensors(lambda out: out.to(dtype), outputs)
        gathered = processes.gather(outputs, samples)
        return group_losses(objectives, gathered, targets, len(rays)), emission

    return losses_of


def _micro_batches(
    batch: Batch, rays: Tensor, count: int, *, axis: int
) -> Iterator[tuple[Batch, Tensor]]:
    """A batch and its rays ``[..., G, J]`` in equal parts, in order."""
    if count == 1:
        yield batch, rays
        return
    for at, own in enumerate(rays.chunk(count, dim=-2)):

        def part(whole: Tensor, at: int = at) -> Tensor:
            size = whole.shape[axis] // count
            return whole.narrow(axis, at * size, size)

        yield Batch(map_tensors(part, batch.inputs), map_tensors(part, batch.targets)), own


def laid_out(gradient: Tensor, parameter: Tensor) -> Tensor:
    """A gradient with its parameter's strides: fused Adam walks both as they lie in memory."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter, requires_grad=False).copy_(gradient)


def weigh(
    method: Method, losses: Tensor, rays: Tensor, gram: Gram, state: State, *, groups: int
) -> tuple[Tensor, State]:
    """What each loss counts for in a step, `fit`'s or of a loop of somebody else's.

    Args:
        method: how losses become weights.
        losses: ``[..., G, J]``, without gradient.
        rays: ``[..., G, J]``.
        gram: gives ``[..., G, J, J]`` where it is asked for.
        state: the method's; and the losses' scales ``[..., J]``, where they have some.
        groups: rays in the whole step, of which these are some or all.

    Returns:
        Weights ``[..., G, J]`` of the losses' type, and the state afterwards.
    """
    scales = state.get(SCALES)
    if scales is None:
        weights, after = method.weights(losses, rays, gram, state)
    else:
        scale = scales.unsqueeze(-2)  # the same for all groups

        def scaled_gram() -> Tensor:
            return gram() / (scale.unsqueeze(-1) * scale.unsqueeze(-2))

        own = {name: value for name, value in state.items() if name != SCALES}
        weights, after = method.weights(losses / scale, rays, scaled_gram, own)
        weights, after = weights / scale, {**after, SCALES: scales}
    weights = weights.to(losses.dtype)
    # the mean over groups, so that the step's size does not depend on their number
    return weights / groups if groups > 1 else weights, after


def as_called(model: nn.Module, rays: Tensor, samples: int) -> Tensor:
    """Rays ``[G, J]`` as a network is called with them.

    A network of one's own sees one ray as ``[J]``, several as one per sample, ``[B, J]``.
    """
    if isinstance(model, Conditioning):
        return rays
    return rays[0] if len(rays) == 1 else rays.repeat_interleave(samples // len(rays), dim=0)
