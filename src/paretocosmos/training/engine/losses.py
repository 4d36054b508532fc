"""Losses of a batch: every objective on every ray group, those alike in one go."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from paretocosmos.config.promises import promised
from paretocosmos.objectives import Objective
from paretocosmos.types import Outputs, Targets, map_tensors

__all__ = ["group_losses"]

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
