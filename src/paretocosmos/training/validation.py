"""How a training judges its networks: a split's front, equal weights, and what is to be said."""

import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.conditioning import Conditioning
from paretocosmos.config.plan import Plan
from paretocosmos.errors import DataError, FindingWarning
from paretocosmos.evaluation.diagnostics import diagnose
from paretocosmos.evaluation.evaluate import evaluate_shares
from paretocosmos.evaluation.samples import Shares
from paretocosmos.methods import Method, State
from paretocosmos.pareto.front import Front
from paretocosmos.problems import Problem
from paretocosmos.runtime.distributed import Processes

__all__ = ["evaluate_equal_weights", "examined", "judged_front", "mean_losses", "networks_told"]


def judged_front(
    model: nn.Module,
    plan: Plan,
    shares: Shares,
    rays: Tensor,
    processes: Processes,
    *,
    split: str,
) -> Front:
    """The front of a split, with its origin; refuses one without a number in it."""
    fixed = plan.method.fixed_rays(len(plan.problem.objectives))
    networks = None if fixed is None else len(fixed)  # None: one for all rays
    origin = {"method": plan.configuration.label, "seed": plan.seed, "networks": networks}
    front = evaluate_shares(
        model, plan.problem, shares, rays, split=split, provenance=origin, processes=processes
    )
    for name, values in zip(front.names, front.values.T, strict=True):
        if np.isnan(values).all():
            raise DataError(
                f"the score of `{name}` on `{split}` is not a number at any ray (scores: "
                f"{front.provenance['scores']}); a group may be missing there: use protocol "
                "`clean`, or another objective"
            )
    return front


def evaluate_equal_weights(
    model: nn.Module, problem: Problem, front: Front, test: Shares, processes: Processes
) -> dict[str, dict[str, float | None]]:
    """What one network for all rays reaches with equal weights, where the paper judges faces.

    Args:
        model: the network.
        problem: what it was trained on.
        front: on test; with two objectives and an odd number of rays it has that ray.
        test: what to evaluate it on where the front has not.
        processes: those that share the samples.
    """
    even = 1 / front.objectives
    there = np.abs(front.rays - even).max(axis=1) < 1e-6
    if there.any():
        one = front.take([int(there.argmax())])
    else:
        ray = torch.full((1, front.objectives), even)
        one = evaluate_shares(model, problem, test, ray, split="test", processes=processes)
    found = one.to_dict()
    return {
        "values": dict(zip(one.names, found["values"][0], strict=True)),
        "metrics": {name: value for name, (value,) in found["metrics"].items()},
    }


def examined(
    model: nn.Module,
    plan: Plan,
    fronts: Mapping[str, Front],
    splits: Mapping[str, Shares],
    processes: Processes,
) -> dict[str, Any]:
    """What a record says of one network for all rays; what it should say aloud is warned of.

    Args:
        model: the network.
        plan: what it was trained by.
        fronts: on val and test.
        splits: those two.
        processes: those that share the samples, of which the first one warns.
    """
    problem = plan.problem
    if plan.method.fixed_rays(len(problem.objectives)) is not None:
        return {"centre": None, "sensitivity": None, "findings": []}
    scaled = plan.training.scale_losses
    learned = not (isinstance(model, Conditioning) and model.closed_form)
    found = diagnose(model, problem, fronts["val"], splits["val"], scaled=scaled, learned=learned)
    if processes.first:
        for finding in found.findings:
            warnings.warn(finding.text, FindingWarning, stacklevel=2)
    return {
        "centre": evaluate_equal_weights(model, problem, fronts["test"], splits["test"], processes),
        "sensitivity": found.sensitivity if math.isfinite(found.sensitivity) else None,
        "findings": [dataclasses.asdict(finding) for finding in found.findings],
    }


def networks_told(
    fixed: Tensor | None,
    selected: Sequence[Mapping[str, Any]],
    states: Sequence[State],
    method: Method,
) -> list[dict[str, Any]]:
    """What there is to say of each network: its ray, its epoch, and what the method noted."""
    rays = [None] if fixed is None else fixed.tolist()
    return [
        {"ray": ray, "epoch_selected": one["epoch"], **method.report(state)}
        for ray, one, state in zip(rays, selected, states, strict=True)
    ]


def mean_losses(losses: Tensor, fixed: Tensor | None, names: Sequence[str]) -> dict[str, float]:
    """Losses ``[steps, K, J]`` of an epoch by name, their mean over steps and networks.

    A network counts for an objective by its ray's share: one that is not trained for it at all says
    nothing of it.

    Args:
        losses: of all steps.
        fixed: the rays ``[K, J]`` of the networks, if each has one.
        names: the objectives'.
    """
    own = losses.mean(dim=0)
    shares = torch.ones_like(own) if fixed is None else fixed.to(own)
    means = (own * shares).sum(dim=0) / shares.sum(dim=0)
    return dict(zip(names, means.tolist(), strict=True))
