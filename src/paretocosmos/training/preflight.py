"""Preflight: run everything once on a few samples and refuse what cannot work, in one sentence."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, ParetoCosmosError, unknown
from paretocosmos.evaluation.evaluate import evaluate_shares, evaluation_mode, predict_at_rays
from paretocosmos.evaluation.samples import Samples, move_batch
from paretocosmos.io.files import one_line
from paretocosmos.methods import Method
from paretocosmos.nn.conditioning import find_heads, is_inside
from paretocosmos.objectives import Objective
from paretocosmos.pareto.rays import even_rays
from paretocosmos.problems import SPLITS, Problem, scored_on, shares_of, split_of
from paretocosmos.problems.streams import (
    BatchChecks,
    LabelRange,
    check_labels,
    get_label_range,
)
from paretocosmos.runtime.torch_private import BatchNorm
from paretocosmos.types import Batch, map_tensors

# Few, to cost no time; more than one, whose variance would be NaN.
SAMPLES = 4
Share = tuple[tuple[Objective, ...], Batch]


def run_preflight(
    model: nn.Module,
    problem: Problem,
    method: Method,
    batch_size: int,
    *,
    smallest: int | None = None,
) -> dict[str, LabelRange]:
    """Refuse a network, objectives, method and data that do not fit together, in one sentence.

    Args:
        model: the network, or any of several.
        problem: what it is to be trained on.
        method: how.
        batch_size: samples per step.
        smallest: samples in the smallest part of a batch that a process will see at once.

    Returns:
        The labels that each target may have, where they are classes.
    """
    shares = _load_shares(problem, SAMPLES, model)
    few = shares[0][1]
    rays = even_rays(2, len(problem.objectives))
    try:
        losses, labels = _try_losses(model, problem, shares, rays)
        _try_evaluation(model, problem, shares, labels, rays)
    except ParetoCosmosError:
        raise
    except Exception as error:
        # code of others may raise anything: the sentence says what it is expected to be
        raise ConfigurationError(
            f"`{problem.name}`, its objectives and the network do not fit together "
            f"({type(error).__name__}: {one_line(error)}); a network is called as "
            "`forward(inputs, ray)` (one that takes no ray is a `backbone`), and an objective "
            "must be a function of its outputs and the targets "
            f"({', '.join(few.targets)}) that torch.vmap can map"
        ) from error
    for name, loss in zip(problem.names, losses, strict=True):
        if loss.ndim:  # autograd would refuse it, but not say whose it is
            raise ConfigurationError(
                f"the loss of `{name}` must be one number, found {tuple(loss.shape)}: take its mean"
            )
    # a full batch for methods that judge the losses' sizes, which few samples do not tell
    if type(method).check is not Method.check:
        losses = _compute_losses(model, problem, _load_shares(problem, batch_size, model))
        method.check(torch.stack(losses).detach(), problem.names)
    if method.over == "shared":
        _check_shared(model, problem, method, shares)
    if smallest is not None:
        _check_statistics(model, problem, _load_shares(problem, smallest, model)[0][1])
    return labels


def _try_losses(
    model: nn.Module, problem: Problem, shares: Sequence[Share], rays: Tensor
) -> tuple[list[Tensor], dict[str, LabelRange]]:
    """Compute each objective's loss at the first ray, and the labels each target may have."""
    losses: list[Tensor] = []
    labels: dict[str, LabelRange] = {}
    for objectives, few in shares:
        with evaluation_mode(model):
            outputs = map_tensors(
                lambda out: out[0], predict_at_rays(model, few.inputs, rays, problem.prepare)
            )
            # before the losses, which would raise a `KeyError`, or all read the same tensor
            heads = outputs if isinstance(outputs, Mapping) else {}
            if isinstance(problem.outputs, Mapping) and not problem.outputs.keys() <= heads.keys():
                raise ConfigurationError(
                    f"`{problem.name}` has the heads {', '.join(problem.outputs)}: the network "
                    "must give a mapping with a tensor for each, found "
                    f"{', '.join(heads) or 'one tensor'}"
                )
            for objective in objectives:
                allowed = get_label_range(objective, outputs, few.targets)
                if allowed is not None:
                    labels[objective.target] = allowed
                    # of the few samples and of splits in memory: others are checked when read
                    for split in SPLITS:
                        stored = problem.source(split) is None
                        if stored or split == "train":
                            targets = split_of(problem, split).targets if stored else few.targets
                            where = f"`{objective.target}`", f"`{split}`"
                            check_labels(targets[objective.target], allowed, *where)
            losses += [objective.loss(outputs, few.targets) for objective in objectives]
    return losses, labels


def _check_statistics(model: nn.Module, problem: Problem, few: Batch) -> None:
    """Refuse batches with a single value per channel, an error in the middle of an epoch."""
    if not any(isinstance(layer, BatchNorm) and layer.training for layer in model.modules()):
        return
    parameter = next(model.parameters())
    ray = torch.full((len(problem.objectives),), 1 / len(problem.objectives)).to(parameter)
    # the trial updates running statistics, which must not see samples twice
    before = [buffer.clone() for buffer in model.buffers()]
    try:
        with torch.no_grad():
            model(problem.prepare(few.inputs, parameter.dtype), ray)
    except ValueError as error:
        raise ConfigurationError(
            f"batch normalisation needs several values per channel, found a part of a batch with "
            f"{len(few)} sample(s) ({one_line(error)}): choose another `batch_size`, so that more "
            'are left for every process and micro-batch, or norm="group"'
        ) from error
    finally:
        for buffer, value in zip(model.buffers(), before, strict=True):
            buffer.copy_(value)


def _load_shares(problem: Problem, count: int, model: nn.Module) -> list[Share]:
    """Load the first samples to the model's device, with the objectives trained on them."""
    parameter = next(model.parameters())
    return [
        (objectives, move_batch(few, parameter.device, parameter.dtype))
        for objectives, few in shares_of(problem, count)
    ]


def _try_evaluation(
    model: nn.Module,
    problem: Problem,
    shares: Sequence[Share],
    labels: Mapping[str, LabelRange],
    rays: Tensor,
) -> None:
    """Compute every score and metric once, on training samples and on some of the other splits."""
    parameter = next(model.parameters())
    few: dict[str, list[Share]] = {}
    if len(shares) == 1:  # else no sample has all targets, and there may be metrics
        few["train"] = list(shares)
    for split in SPLITS[1:]:
        # splits in memory have the columns of the training split; a reader may yield anything
        few[split] = []
        for objectives, source in scored_on(problem, split):
            if not isinstance(source, Batch):
                batch = source.some(SAMPLES)
                BatchChecks(source.where, objectives, labels).check(batch)
                few[split].append((objectives, batch))
    for split_name, batches in few.items():
        if batches:
            samples = [
                (objectives, Samples(batch, objectives, parameter.device, parameter.dtype))
                for objectives, batch in batches
            ]
            evaluate_shares(model, problem, samples, rays, split=split_name)


def _compute_losses(model: nn.Module, problem: Problem, shares: Sequence[Share]) -> list[Tensor]:
    """Compute each objective's loss at the centre of the simplex, with gradients."""
    parameter = next(model.parameters())
    count = len(problem.objectives)
    # the centre: a method weighs every loss there, so that none is without a gradient by chance
    ray = torch.full((count,), 1 / count).to(parameter)
    losses: list[Tensor] = []
    for objectives, batch in shares:
        # evaluation mode: batch statistics stay as they are, and dropout drops no path
        with evaluation_mode(model, gradients=True):
            outputs = model(problem.prepare(batch.inputs, parameter.dtype), ray)
        losses += [objective.loss(outputs, batch.targets) for objective in objectives]
    return losses


def _check_shared(
    model: nn.Module, problem: Problem, method: Method, shares: Sequence[Share]
) -> None:
    """Refuse a parameter that only some objectives reach: a head that nobody declared."""
    heads = find_heads(model)
    names = {*dict(model.named_modules()), *dict(model.named_parameters())}
    for head in heads:
        if head not in names:
            # by the names in the caller's own network, which conditioning wraps
            choices = [name.removeprefix("backbone.") for name in names - {"", "backbone"}]
            raise unknown("head", head.removeprefix("backbone."), choices)
    shared = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and not is_inside(name, heads)
    }
    if not shared:
        raise ConfigurationError(
            f"`{type(method).__name__}` needs parameters that all objectives share, found none "
            f"outside the heads ({', '.join(heads)})"
        )
    losses = _compute_losses(model, problem, shares)
    gradients = [  # `allow_unused`: a loss that does not reach a parameter has `None` for it
        torch.autograd.grad(loss, list(shared.values()), retain_graph=True, allow_unused=True)
        for loss in losses
    ]
    for name, by_loss in zip(shared, zip(*gradients, strict=True), strict=True):
        without = [n for n, grad in zip(problem.names, by_loss, strict=True) if grad is None]
        # a parameter that no loss reaches is no head; it is trained by none
        if 0 < len(without) < len(by_loss):
            raise ConfigurationError(
                f"`{name.removeprefix('backbone.')}` gets no gradient from `{without[0]}`, but "
                f"`{type(method).__name__}` compares gradients of parameters that all objectives "
                "share: name the modules that serve single objectives in the network's attribute "
                "`heads`, a tuple of dotted names"
            )
