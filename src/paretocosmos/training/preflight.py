"""Every part once on a few samples, before a folder exists: what cannot work is refused then."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from paretocosmos.conditioning import inside
from paretocosmos.errors import ConfigurationError, DataError, ParetoCosmosError, unknown
from paretocosmos.evaluation.evaluate import evaluate_batch, evaluating, move, sweep
from paretocosmos.io.files import one_line
from paretocosmos.methods import Method
from paretocosmos.objectives import pick
from paretocosmos.objectives.cross_entropy import CrossEntropy
from paretocosmos.pareto.rays import even_rays
from paretocosmos.problems import SPLITS, Problem, split_of
from paretocosmos.runtime.torch_private import BatchNorm
from paretocosmos.training.engine.gradients import head_modules
from paretocosmos.types import Batch, Outputs, map_tensors

__all__ = ["preflight"]

SAMPLES = 4


def preflight(
    model: nn.Module,
    problem: Problem,
    method: Method,
    train: Batch,
    batch_size: int,
    *,
    smallest: int | None = None,
) -> None:
    """Refuse a network, objectives, method and data that do not fit together, in one sentence.

    Args:
        model: the network, or any of several.
        problem: what it is to be trained on.
        method: how.
        train: the training split.
        batch_size: samples per step.
        smallest: samples in the smallest part of a batch that a process will see at once.
    """
    split_of(problem, "test")
    few = _first(train, SAMPLES, model)
    rays = even_rays(2, len(problem.objectives))
    try:
        with evaluating(model):
            outputs = map_tensors(
                lambda out: out[0], sweep(model, few.inputs, rays, problem.prepare)
            )
            _check_heads(problem, outputs)
            for objective in problem.objectives:
                if isinstance(objective, CrossEntropy):
                    _check_labels(problem, objective, pick(outputs, objective.output).shape[-1])
            losses = [objective.loss(outputs, few.targets) for objective in problem.objectives]
        evaluate_batch(model, problem, few, rays, split="train")
    except ParetoCosmosError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"`{problem.name}`, its objectives and the network do not fit together "
            f"({type(error).__name__}: {one_line(error)}); a network is called as "
            "`forward(inputs, ray)` (one that takes no ray is a `backbone`), and an objective is a "
            "function of its outputs and the targets "
            f"({', '.join(few.targets)}) that torch.vmap can map"
        ) from error
    for name, loss in zip(problem.names, losses, strict=True):
        if loss.ndim:
            raise ConfigurationError(
                f"the loss of `{name}` is one number, found {tuple(loss.shape)}: take its mean"
            )
    if type(method).check is not Method.check:
        losses = _losses(model, problem, _first(train, batch_size, model))
        method.check(torch.stack(losses).detach(), problem.names)
    if method.over == "shared":
        _check_shared(model, problem, method, few)
    if smallest is not None:
        _check_statistics(model, problem, _first(train, smallest, model))


def _check_statistics(model: nn.Module, problem: Problem, few: Batch) -> None:
    """Batch statistics of a single value would be an error in the middle of an epoch."""
    if not any(isinstance(part, BatchNorm) and part.training for part in model.modules()):
        return
    parameter = next(model.parameters())
    ray = torch.full((len(problem.objectives),), 1 / len(problem.objectives)).to(parameter)
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


def _first(batch: Batch, count: int, model: nn.Module) -> Batch:
    """The first samples, where the model is: the split may lie elsewhere."""
    few = Batch(*(map_tensors(lambda t: t[:count], part) for part in (batch.inputs, batch.targets)))
    parameter = next(model.parameters())
    return move(few, parameter.device, parameter.dtype)


def _losses(model: nn.Module, problem: Problem, batch: Batch) -> list[Tensor]:
    """Every objective's loss at the centre of the simplex, with the one graph of all."""
    parameter = next(model.parameters())
    objectives = len(problem.objectives)
    ray = torch.full((objectives,), 1 / objectives).to(parameter)
    with evaluating(model, gradients=True):
        outputs = model(problem.prepare(batch.inputs, parameter.dtype), ray)
    return [objective.loss(outputs, batch.targets) for objective in problem.objectives]


def _check_shared(model: nn.Module, problem: Problem, method: Method, few: Batch) -> None:
    """A parameter that only some objectives reach is a head that nobody declared."""
    apart = head_modules(model, method)
    parts = {*dict(model.named_modules()), *dict(model.named_parameters())}
    for head in apart:
        if head not in parts:
            known = [name.removeprefix("backbone.") for name in parts - {"", "backbone"}]
            raise unknown("head", head.removeprefix("backbone."), known)
    shared = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and not inside(name, apart)
    }
    if not shared:
        raise ConfigurationError(
            f"`{type(method).__name__}` needs parameters that all objectives share, found none "
            f"outside the heads ({', '.join(apart)})"
        )
    losses = _losses(model, problem, few)
    reached = [
        torch.autograd.grad(loss, list(shared.values()), retain_graph=True, allow_unused=True)
        for loss in losses
    ]
    for name, by_loss in zip(shared, zip(*reached, strict=True), strict=True):
        without = [n for n, part in zip(problem.names, by_loss, strict=True) if part is None]
        if 0 < len(without) < len(by_loss):
            raise ConfigurationError(
                f"`{name.removeprefix('backbone.')}` gets no gradient from `{without[0]}`, but "
                f"`{type(method).__name__}` compares gradients of parameters that all objectives "
                "share: name the modules that serve single objectives in the network's attribute "
                "`heads`, a tuple of dotted names"
            )


def _check_heads(problem: Problem, outputs: Outputs) -> None:
    """One tensor would be read by every objective, each for its own head."""
    if not isinstance(problem.outputs, Mapping):
        return
    found = ", ".join(outputs) if isinstance(outputs, Mapping) else "one tensor"
    if not isinstance(outputs, Mapping) or not problem.outputs.keys() <= outputs.keys():
        raise ConfigurationError(
            f"`{problem.name}` has the heads {', '.join(problem.outputs)}: the network must give a "
            f"mapping with a tensor for each, found {found}"
        )


def _check_labels(problem: Problem, objective: CrossEntropy, classes: int) -> None:
    """A label beyond the classes would be an error in the middle of a step, fatal on a GPU."""
    for split in SPLITS:
        labels = split_of(problem, split).targets[objective.target]
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= classes:
            raise DataError(
                f"the labels of `{objective.target}` are 0 to {classes - 1}, as many as the head "
                f"of `{objective.name}` has classes; found {low if low < 0 else high} in `{split}`"
            )
