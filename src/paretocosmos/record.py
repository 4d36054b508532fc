"""What `run.json` says of a run."""

import math
from typing import Any

from torch import Tensor

from paretocosmos import metrics
from paretocosmos.front import Front
from paretocosmos.plan import Plan
from paretocosmos.provenance import provenance
from paretocosmos.run import FORMAT

__all__ = ["record_of", "summary_of"]


def record_of(plan: Plan, fixed: Tensor | None, status: str) -> dict[str, Any]:
    """What is known of a run when it begins.

    Args:
        plan: the training.
        fixed: the rays ``[K, J]`` with a network each; `None` if one serves all.
        status: ``"training"`` or ``"finished"``.
    """
    outputs = plan.problem.outputs
    return {
        "format": FORMAT,
        "status": status,
        **plan.configuration.to_dict(),
        "label": plan.configuration.label,
        "name": plan.problem.name,
        "about": dict(plan.problem.about),
        "protocol": plan.problem.protocol,
        "objectives": len(plan.problem.objectives),
        "names": list(plan.problem.names),
        "input_shape": list(plan.problem.input_shape),
        "outputs": outputs if isinstance(outputs, int) else dict(outputs),
        "fixed_rays": None if fixed is None else fixed.tolist(),
        "parameters": sum(p.numel() for p in plan.model.parameters()),
        "caveats": list(plan.problem.caveats),
        **provenance(plan.device),
    }


def summary_of(front: Front) -> dict[str, float | None]:
    """The front's numbers; one that does not exist (an angle to a front of zeros) is `None`."""
    return {k: v if math.isfinite(v) else None for k, v in metrics.summary(front).items()}
