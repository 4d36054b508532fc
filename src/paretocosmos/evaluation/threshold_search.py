"""Looking for another threshold than 0.5, on the validation data."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import InfeasibleError
from paretocosmos.evaluation.evaluate import collect_outputs, evaluation_mode
from paretocosmos.evaluation.intervals import draw_paired_scores
from paretocosmos.evaluation.output_cache import NO_CACHE, OutputCache, key_rays
from paretocosmos.evaluation.samples import load_samples_for
from paretocosmos.evaluation.scoring import compute_score, score_outputs
from paretocosmos.evaluation.threshold import at_threshold, logit_of, scores_of
from paretocosmos.objectives import decides
from paretocosmos.pareto.front import Array, Front, Point, get_point
from paretocosmos.pareto.selection import Criteria, find_best
from paretocosmos.problems import Problem
from paretocosmos.runtime.device import precise
from paretocosmos.types import Metric, Targets

__all__ = ["other_threshold"]

# Thresholds that are tried at every ray.
TRIED = 99
# Of those whom an answer is true of, as many are given it at least: with 10 % positives, yes is
# said to between 2.5 and 77.5 %.
LEAST = 0.25
# How sure a gain is to be: docs/decisions/0038-a-threshold-for-all.md.
SURE = 0.975


def other_threshold(
    model: nn.Module,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    *,
    beyond: Point | None = None,
    cache: OutputCache = NO_CACHE,
) -> tuple[Point, float] | None:
    """The best point of a front's rays at any threshold, if it is worth another than 0.5.

    At every ray thresholds are tried that say yes to at least a quarter as many as are positive,
    and no to a quarter as many as are negative: further ones would meet any bound on a gap, by
    hardly deciding.
    Where what is asked for is not of decisions, as a loss, which cannot see a threshold, the
    accuracy is to be large.

    Args:
        model: the network.
        problem: what it was trained on.
        front: its validation front, at 0.5.
        criteria: what is asked.
        beyond: what was chosen at 0.5; then the gain in what is to be large must be one that chance
            does not explain. Else none keeps the bounds at 0.5.
        cache: outputs of this network that are known already.

    Returns:
        The point on the validation data and its threshold, or `None`.
    """
    asked = _of_decisions(problem, criteria)
    if beyond is not None and asked is not criteria:
        return None  # what is to be large cannot see a threshold
    shares = load_samples_for(model, problem, "val")
    if asked is None or len(shares) > 1:
        return None
    ((_, samples),) = shares
    seen = partial(
        collect_outputs, model, problem, samples, purpose="another threshold", cache=cache
    )
    rays = torch.tensor(front.rays).float()
    outputs, targets = seen(rays)
    if "label" not in targets:
        return None
    with evaluation_mode(model), precise("fp32"):
        assert isinstance(outputs, Tensor)
        thresholds, tried = _tried(problem, front, asked, outputs, targets, cache)
        if tried is None:
            return None
        try:
            place = find_best(tried, asked)
        except InfeasibleError:
            return None
        at, threshold = int(tried.metrics["place"][place]), float(thresholds[place])
        moved = at_threshold(problem, threshold)
        found = score_outputs(
            moved.objectives,
            outputs[at : at + 1],
            targets,
            rays[at : at + 1],
            metrics=moved.metrics,
            reference=moved.reference,
            score_batch=moved.score_batch,
            split="val",
        )
        if beyond is not None:
            before, _ = seen(torch.tensor([beyond.ray]))
            assert isinstance(before, Tensor)
            both = torch.cat([before, outputs[at : at + 1] - logit_of(threshold)])
            if not _gains(problem, asked, both, targets):
                return None
    return dataclasses.replace(get_point(found, 0), ray=get_point(front, at).ray), threshold


def _tried(
    problem: Problem,
    front: Front,
    asked: Criteria,
    outputs: Tensor,
    targets: Targets,
    cache: OutputCache,
) -> tuple[Array, Front | None]:
    """The thresholds, and what each has at its ray, a point each; its `place` is the ray's."""
    positive = targets["label"].reshape(-1).cpu() > 0.5
    weight = targets.get("weight", torch.ones(len(positive))).reshape(-1).double().cpu()
    base = float((positive * weight).sum() / weight.sum())
    shares = np.linspace(LEAST * base, 1 - LEAST * (1 - base), TRIED)
    asking = {*asked.max, *asked.min, asked.maximize, asked.minimize}
    named = [name for name in problem.metrics if name in asking and name not in problem.names]
    wanted = {name: scores_of(problem)[name] for name in (*problem.names, *named)}
    thresholds, every = cache.get(
        ("thresholds", key_rays(torch.tensor(front.rays)), *wanted),
        lambda: _at_thresholds(problem, wanted, outputs, targets, weight, shares),
    )
    if not len(thresholds):
        return thresholds, None
    return thresholds, Front(
        rays=front.rays[every["place"].astype(int)],
        values=np.stack([every[name] for name in problem.names], axis=1),
        names=problem.names,
        reference=front.reference,
        metrics={name: every[name] for name in (*named, "place")},
        split="val",
    )


def _at_thresholds(
    problem: Problem,
    wanted: Mapping[str, Metric],
    outputs: Tensor,
    targets: Targets,
    weight: Tensor,
    shares: Array,
) -> tuple[Array, dict[str, Array]]:
    """The thresholds that are allowed, for one ray after the other, and the numbers at each."""
    thresholds, columns = [], []
    for place, out in enumerate(outputs):
        likely = torch.sigmoid(out.double()).flatten().cpu()
        each = np.array([_rounded(p) for p in np.quantile(likely.numpy(), 1 - shares)])
        offsets = torch.tensor([logit_of(t) for t in each]).to(out).reshape(-1, *[1] * out.ndim)
        moved = out.unsqueeze(0) - offsets
        yes = ((moved.flatten(1) > 0).double().cpu() @ weight / weight.sum()).numpy()
        kept = (yes > 0) & (yes < 1) & (yes >= shares[0]) & (yes <= shares[-1])
        found = {
            name: compute_score(
                metric, moved if decides(metric) else out[None], targets, problem.score_batch
            )
            .double()
            .expand(TRIED)
            .cpu()
            .numpy()[kept]
            for name, metric in wanted.items()
        }
        thresholds.append(each[kept])
        columns.append(found | {"place": np.full(int(kept.sum()), float(place))})
    every = {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}
    return np.concatenate(thresholds), every


def _gains(problem: Problem, asked: Criteria, both: Tensor, targets: Targets) -> bool:
    """Whether the second of two has more of what is to be large than chance explains."""
    metric = scores_of(problem)[asked.maximize or ""]
    found = compute_score(metric, both, targets, problem.score_batch)
    drawn = draw_paired_scores([metric], both, targets, score_batch=problem.score_batch)[:, :, 0]
    noise = float(np.nanstd(drawn[:, 1] - drawn[:, 0]))
    return float(found[1] - found[0]) > NormalDist().inv_cdf(SURE) * noise


def _of_decisions(problem: Problem, criteria: Criteria) -> Criteria | None:
    """The same bounds, and something of decisions to choose by; `None` where there is nothing."""
    scores, wish = scores_of(problem), criteria.maximize or criteria.minimize
    if wish is not None and decides(scores[wish]):
        return criteria
    if "accuracy" not in problem.metrics:
        return None
    return dataclasses.replace(
        criteria, minimize=None, maximize="accuracy", knee=False, weights=None, near=None
    )


def _rounded(likely: float) -> float:
    """A probability to four digits of what it lacks to 0 or to 1."""
    inside = min(max(likely, 1e-6), 1 - 1e-6)
    return float(f"{inside:.4g}") if inside < 0.5 else round(1 - float(f"{1 - inside:.4g}"), 10)
