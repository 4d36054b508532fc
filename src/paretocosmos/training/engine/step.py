"""One training step as a pure function: parameters and a batch in, losses and gradients out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from paretocosmos.config.plan import keeps_promise
from paretocosmos.methods import Gram, Method, State
from paretocosmos.nn.conditioning import Conditioning, Hypernet, HypernetOutput
from paretocosmos.objectives import Objective
from paretocosmos.runtime.distributed import ALONE, Processes
from paretocosmos.training.engine.gradients import (
    HypernetGradients,
    HypernetWithFeatures,
    LossGradients,
    find_head_modules,
)
from paretocosmos.types import Batch, Inputs, Outputs, Targets, first, map_tensors

Parameters = Mapping[str, Tensor]
LOSS_SCALES = "loss_scales"
"""The key of what losses are divided by, in a method's state and in checkpoints."""

Prepare = Callable[[Inputs, torch.dtype], Inputs]
# The second of the results is what a hypernetwork emitted, empty for other networks: `torch.vmap`
# takes tuples of tensors, not `None`.
ComputeLosses = Callable[[Parameters, Inputs, Targets, Tensor], tuple[Tensor, tuple[Tensor, ...]]]

# What may differ between objectives that are computed together: which head, which label, and how
# it is called. Any other difference, as of a threshold, would need a loss of its own.
OWN_ATTRIBUTES = {"name", "output", "target", "index"}
# From how many objectives on one output it pays to stack their targets.
FEWEST_TOGETHER = 4


class StepResult(NamedTuple):
    """Losses ``[G, J]``, a gradient per parameter, and the method's next state."""

    losses: Tensor
    gradients: dict[str, Tensor]
    state: State


Step = Callable[[Parameters, Batch, Tensor, State], StepResult]
"""Parameters by name, a batch on the device, rays ``[G, J]`` and state to a result.

It has no side effects. The state is the method's, and with `LOSS_SCALES` what losses are divided
by. A stacked step does this for S seeds at once: everything in and out has a leading axis S. Where
several processes share a step, the batch's inputs are this one's share, its targets are all.
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
    """Make the step of a model under a method; the optimiser's update is the caller's.

    Args:
        model: ``forward(inputs, ray)``; with several seeds, any one of their networks.
        objectives: what is traded.
        method: how losses become weights.
        prepare: from stored inputs to what the network takes (`Problem.prepare`).
        half: run the network in bfloat16 where torch deems it safe (autocast).
        stacked: make the step for several seeds at once.
        accumulate: micro-batches, one after the other, each with an equal share of the rays.
        processes: those that share the step.
        tasks: the objectives' names where each has a batch of its own: then the inputs and targets
            of a batch are mappings by these names.
    """
    dtype = next(model.parameters()).dtype
    compute = _make_gradients(
        model,
        objectives,
        method,
        prepare=prepare,
        half=half,
        stacked=stacked,
        processes=processes,
        tasks=tasks,
    )

    def step(parameters: Parameters, batch: Batch, rays: Tensor, state: State) -> StepResult:
        # leaves of a new graph: the step is pure, and gradients must not pile up in `.grad`
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        rays = rays.to(dtype)
        # of the whole step, by which each micro-batch divides: their sum is then the mean
        rays_in_step = rays.shape[-2]
        if accumulate == 1:
            losses, total, state = compute(leaves, batch, rays, state, rays_in_step)
        else:
            all_losses: list[Tensor] = []
            total = {}
            for micro_batch, micro_rays in _split_batch(batch, rays, accumulate, axis=int(stacked)):
                losses, gradients, state = compute(
                    leaves, micro_batch, micro_rays, state, rays_in_step
                )
                total = {n: total[n] + g for n, g in gradients.items()} if total else gradients
                all_losses.append(losses)
            losses = torch.cat(all_losses, dim=-2)
        # fused Adam walks gradient and parameter as they lie in memory: strides must agree
        placed = {
            name: total[name]
            if total[name].stride() == leaf.stride()
            else match_layout(total[name], leaf)
            for name, leaf in leaves.items()
        }
        return StepResult(losses, placed, state)

    return step


def _make_gradients(
    model: nn.Module,
    objectives: Sequence[Objective],
    method: Method,
    *,
    prepare: Prepare | None,
    half: bool,
    stacked: bool,
    processes: Processes,
    tasks: Sequence[str],
) -> Callable[[Parameters, Batch, Tensor, State, int], StepResult]:
    """Make the function of leaves, a micro-batch, its rays, state and G to a result."""
    heads = find_head_modules(model, method)
    with_features: HypernetWithFeatures | None = None
    # processes draw rays of their own, so a hypernetwork emits other weights in each of them
    if processes.count == 1 and not tasks and isinstance(model, Hypernet):
        # chunks reuse the last layer, whose gradients then add up; heads would have to be left out
        with_features = HypernetWithFeatures(model) if model.chunks is None and not heads else None
    make_losses = partial(_make_losses, model, processes=processes, prepare=prepare, half=half)
    compute_losses = make_losses(objectives, with_features)
    if tasks:  # batches of different samples have a forward pass each
        by_task = {name: make_losses([o]) for name, o in zip(tasks, objectives, strict=True)}
        compute_losses = _join_tasks(by_task)
    if stacked:
        compute_losses = torch.vmap(compute_losses)

    def compute_gradients(
        leaves: Parameters,
        batch: Batch,
        rays: Tensor,
        state: State,
        rays_in_step: int,
    ) -> StepResult:
        with torch.enable_grad():
            losses, emission = compute_losses(leaves, batch.inputs, batch.targets, rays)
        gradients: LossGradients | HypernetGradients
        if with_features is not None:
            gradients = HypernetGradients(losses, leaves, HypernetOutput(*emission))
        elif processes.joined:
            samples = first(batch.targets).shape[int(stacked)]
            sum_up = partial(processes.total, samples=samples)
            gradients = LossGradients(losses, leaves, heads, sum_up, stacked=stacked)
        else:
            gradients = LossGradients(losses, leaves, heads, stacked=stacked)
        losses = losses.detach()  # weights are constants of the backward pass
        weights, state = compute_weights(
            method, losses, rays, gradients.gram, state, rays_in_step=rays_in_step
        )
        return StepResult(losses, gradients.weighted(weights), state)

    return compute_gradients


def _join_tasks(task_losses: Mapping[str, ComputeLosses]) -> ComputeLosses:
    """Join the losses ``[G, 1]`` of objectives that have a batch each to ``[G, J]``."""

    def compute_losses(
        leaves: Parameters, inputs: Any, targets: Any, rays: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        columns = [
            compute(leaves, inputs[name], targets[name], rays)[0]
            for name, compute in task_losses.items()
        ]
        return torch.cat(columns, dim=-1), ()

    return compute_losses


def _make_losses(
    model: nn.Module,
    objectives: Sequence[Objective],
    with_features: HypernetWithFeatures | None = None,
    *,
    processes: Processes,
    prepare: Prepare | None,
    half: bool,
) -> ComputeLosses:
    """Make the function of parameters, inputs, targets and rays ``[G, J]`` to losses ``[G, J]``.

    Beside them it returns what a hypernetwork emitted, if `with_features` is given.
    """
    dtype = next(model.parameters()).dtype
    called: nn.Module = model if with_features is None else with_features
    prefix = "" if with_features is None else "model."

    def compute_losses(
        leaves: Parameters, inputs: Inputs, targets: Targets, rays: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        share_rays = processes.share_of_rays(rays) if processes.joined else rays
        if not isinstance(model, Conditioning):
            share_rays = expand_rays(share_rays, len(first(inputs)))
        # inside the step, so that stored bytes become floats on the device, batch by batch
        prepared = inputs if prepare is None else prepare(inputs, dtype)
        named = {f"{prefix}{name}": leaf for name, leaf in leaves.items()}
        # without its cache of cast weights, which would outlive a trace
        with torch.autocast(rays.device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            outputs = functional_call(called, named, (prepared, share_rays))
        emission: tuple[Tensor, ...] = ()
        if with_features is not None:
            outputs, emission = outputs
        # losses in full precision: differences of large logits lose too much in half of it
        if half:
            outputs = map_tensors(lambda out: out.to(dtype), outputs)
        # a loss such as a gap between groups is not a mean over shares: it needs all outputs
        if processes.joined:
            outputs = processes.gather(outputs, len(next(iter(targets.values()))))
        return compute_group_losses(objectives, outputs, targets, len(rays)), emission

    return compute_losses


def _split_batch(
    batch: Batch, rays: Tensor, count: int, *, axis: int
) -> Iterator[tuple[Batch, Tensor]]:
    """Yield a batch and its rays ``[..., G, J]`` in equal parts, in order."""
    for index, micro_rays in enumerate(rays.chunk(count, dim=-2)):
        # neighbouring samples: a group of samples keeps its ray
        def narrow(tensor: Tensor, index: int = index) -> Tensor:
            size = tensor.shape[axis] // count
            return tensor.narrow(axis, index * size, size)

        inputs, targets = map_tensors(narrow, batch.inputs), map_tensors(narrow, batch.targets)
        yield Batch(inputs, targets), micro_rays


def match_layout(gradient: Tensor, parameter: Tensor) -> Tensor:
    """Return a gradient with its parameter's strides."""
    if gradient.stride() == parameter.stride():
        return gradient
    # `empty_like` keeps the strides of channels-last filters, which `contiguous` would lose
    return torch.empty_like(parameter, requires_grad=False).copy_(gradient)


def compute_weights(
    method: Method,
    losses: Tensor,
    rays: Tensor,
    gram: Gram,
    state: State,
    *,
    rays_in_step: int,
) -> tuple[Tensor, State]:
    """Compute each loss's weight in a step, of `fit` or of somebody else's loop.

    Args:
        method: how losses become weights.
        losses: ``[..., G, J]``, without gradient.
        rays: ``[..., G, J]``.
        gram: gives ``[..., G, J, J]`` if it is called.
        state: the method's; with `LOSS_SCALES` ``[..., J]`` it weighs losses divided by them.
        rays_in_step: rays in the whole step, of which these are some or all.

    Returns:
        Weights ``[..., G, J]`` of the losses' type, and the next state.
    """
    if LOSS_SCALES not in state:
        weights, state = method.weights(losses, rays, gram, state)
    else:
        own_state = {name: value for name, value in state.items() if name != LOSS_SCALES}
        scales = state[LOSS_SCALES]
        scale = scales.unsqueeze(-2)  # the same for all rays

        def scaled_gram() -> Tensor:
            # gradients of losses divided by s have inner products divided by s_i s_j
            return gram() / (scale.unsqueeze(-1) * scale.unsqueeze(-2))

        weights, state = method.weights(losses / scale, rays, scaled_gram, own_state)
        # by the chain rule, back from the scaled losses' weights to those of the losses
        weights, state = weights / scale, {**state, LOSS_SCALES: scales}
    weights = weights.to(losses.dtype)  # solvers may work in float64
    # the mean over rays, so that the step's size does not depend on their number
    return weights / rays_in_step if rays_in_step > 1 else weights, state


def expand_rays(rays: Tensor, samples: int) -> Tensor:
    """Return rays ``[G, J]`` as a network of one's own takes them.

    One ray as ``[J]``, several as one per sample, ``[B, J]``.
    """
    return rays[0] if len(rays) == 1 else rays.repeat_interleave(samples // len(rays), dim=0)


def compute_group_losses(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets, rays: int
) -> Tensor:
    """Compute losses ``[G, J]``: every objective on every group of neighbouring samples."""

    def compute_losses(outputs: Outputs, targets: Targets) -> Tensor:
        if _are_alike(objectives, outputs, targets, grouped=rays > 1):
            return _compute_together(objectives, outputs, targets)
        return torch.stack([objective.loss(outputs, targets) for objective in objectives])

    # one group needs no vmap, whose overhead a small step feels
    if rays == 1:
        return compute_losses(outputs, targets).unsqueeze(0)
    by_group = partial(torch.unflatten, dim=0, sizes=(rays, -1))
    grouped = {name: by_group(target) for name, target in targets.items()}
    return torch.vmap(compute_losses)(map_tensors(by_group, outputs), grouped)


def _are_alike(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets, *, grouped: bool
) -> bool:
    """Return whether the objectives are of one kind, on heads and targets of one shape.

    Ten cross-entropies on ten heads are then one of J times the size: the cost of a step must not
    grow with the objectives. One from outside may look at other heads, unless it promises
    otherwise.
    """

    def settings(objective: Objective) -> dict[str, object]:
        return {key: v for key, v in vars(objective).items() if key not in OWN_ATTRIBUTES}

    lead = objectives[0]
    if isinstance(outputs, Mapping):
        shapes = {outputs[str(o.output)].shape if o.output in outputs else () for o in objectives}
        alike = len(objectives) > 1 and len(shapes) == 1 and () not in shapes
    else:
        # without groups a function of the caller's runs without vmap, which it may not know
        alike = isinstance(outputs, Tensor) and grouped and len(objectives) >= FEWEST_TOGETHER
    return (
        alike
        and keeps_promise(lead, "per_head")
        and all(o.target in targets for o in objectives)
        and len({type(o) for o in objectives}) == 1
        and all(settings(o) == settings(lead) for o in objectives)
        and len({(targets[o.target].shape, targets[o.target].dtype) for o in objectives}) == 1
    )


def _compute_together(
    objectives: Sequence[Objective], outputs: Outputs, targets: Targets
) -> Tensor:
    lead = objectives[0]

    def loss(output: Tensor, target: Tensor) -> Tensor:
        head = {str(lead.output): output} if isinstance(outputs, Mapping) else output
        return lead.loss(head, {**targets, lead.target: target})

    heads = [
        outputs[str(o.output)] if isinstance(outputs, Mapping) else outputs for o in objectives
    ]
    return torch.vmap(loss)(
        torch.stack(heads), torch.stack([targets[o.target] for o in objectives])
    )
