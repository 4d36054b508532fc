"""Decisions at another probability than 0.5, the same for everybody."""

import dataclasses
import math
from collections.abc import Mapping
from functools import partial
from numbers import Real
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import ConfigurationError, InfeasibleError
from paretocosmos.evaluation.evaluate import collect_outputs, evaluation_mode
from paretocosmos.evaluation.intervals import draw_paired_scores
from paretocosmos.evaluation.samples import NO_CACHE, OutputCache, key_rays, load_samples_for
from paretocosmos.evaluation.scoring import build_front, compute_score, compute_table, get_scores
from paretocosmos.objectives import Objective, decides
from paretocosmos.pareto.front import Array, Front, Point, get_point
from paretocosmos.pareto.selection import Criteria, find_best
from paretocosmos.problems import Problem
from paretocosmos.runtime.device import set_precision
from paretocosmos.types import Metric, Outputs, Targets, first, map_tensors

MIDDLE = 0.5

# Thresholds to try at every ray.
CANDIDATES = 99
# The smallest share of the positives, and of the negatives, that may be predicted as such: with
# 10 % positives, between 2.5 and 77.5 % of the rows are predicted positive.
LEAST = 0.25
# Confidence that a gain is not chance (docs/decisions/choosing.md).
CONFIDENCE = 0.975


class AtThreshold(Objective):
    """An objective whose score is of decisions at a threshold; its loss is as before.

    Args:
        inner: the objective.
        offset: the logit from which a decision is positive.
    """

    per_head = False  # it reads what another objective reads

    def __init__(self, inner: Objective, offset: float) -> None:
        super().__init__(name=inner.name, output=inner.output, target=inner.target)
        self.wrapped, self.inner, self.offset = inner, inner, offset
        self.over = getattr(inner, "over", ())

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.loss(outputs, targets)

    def score(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.inner.score(_move_logits(outputs, self.offset), targets)

    def moments(self, outputs: Outputs, targets: Targets) -> Tensor | None:
        return self.inner.moments(_move_logits(outputs, self.offset), targets)


def takes_threshold(problem: Problem) -> bool:
    """Return True if one logit decides, so that decisions can be made at another probability."""
    return problem.outputs == 1 and any(map(decides, get_scores(problem).values()))


def check_threshold(threshold: object, *, decided: bool, name: str) -> None:
    """Raise unless a threshold is a probability, and something is decided by it.

    Args:
        threshold: the threshold of a caller.
        decided: whether decisions between two classes are made.
        name: of the problem or run that it is for.
    """
    number = float(threshold) if isinstance(threshold, Real) else 0.0
    if isinstance(threshold, bool) or not 0 < number < 1:
        raise ConfigurationError(
            "`threshold` must be a probability above 0 and below 1, such as 0.3, found "
            f"{threshold!r}"
        )
    if threshold != MIDDLE and not decided:
        raise ConfigurationError(
            f"`{name}` does not decide between two classes, so it takes no `threshold`: leave it "
            "out"
        )


def at_threshold(problem: Problem, threshold: float) -> Problem:
    """Return the problem with all scores of decisions (`objectives.decides`) at another threshold.

    Losses, and metrics of probabilities, are as they were.

    >>> import torch, warnings
    >>> from paretocosmos import load_problem
    >>> with warnings.catch_warnings(action="ignore"):
    ...     strict = at_threshold(load_problem("compas"), 0.9)
    >>> targets = {"label": torch.ones(2)}
    >>> strict.metrics["accuracy"](torch.tensor([1.0, 3.0]), targets)
    tensor(0.5000, dtype=torch.float64)
    """
    check_threshold(threshold, decided=takes_threshold(problem), name=problem.name)
    if threshold == MIDDLE:
        return problem
    offset = compute_logit(threshold)

    def move_metric(metric: Metric) -> Metric:
        objective = getattr(metric, "__self__", None)
        if not decides(metric):
            return metric
        if isinstance(objective, Objective):  # which may know its moments
            return AtThreshold(objective, offset).score
        return partial(_score_moved, metric=metric, offset=offset)

    return dataclasses.replace(
        problem,
        objectives=tuple(
            AtThreshold(o, offset) if decides(o.score) else o for o in problem.objectives
        ),
        metrics={name: move_metric(metric) for name, metric in problem.metrics.items()},
    )


def compute_logit(threshold: float) -> float:
    """Return the logit of a probability."""
    return math.log(threshold / (1 - threshold))


def _score_moved(outputs: Outputs, targets: Targets, *, metric: Metric, offset: float) -> Tensor:
    return metric(_move_logits(outputs, offset), targets)


def _move_logits(outputs: Outputs, offset: float) -> Outputs:
    moved: Outputs = map_tensors(lambda out: out - offset, outputs)
    return moved


def find_threshold(
    model: nn.Module,
    problem: Problem,
    front: Front,
    criteria: Criteria,
    *,
    better_than: Point | None = None,
    beats_constant: bool = False,
    cache: OutputCache = NO_CACHE,
) -> tuple[Point, float] | None:
    """Find the best point of a front's rays at any threshold, if it is worth another than 0.5.

    At every ray thresholds are tried that predict at least a quarter as many positives, and a
    quarter as many negatives, as there are: further ones would meet any bound on a gap by hardly
    deciding. A bound on the positive predictions themselves moves the range. If the criteria choose
    by something that no threshold changes, such as a loss, the accuracy is maximised instead.

    Args:
        model: the network.
        problem: what it was trained on.
        front: its validation front, at 0.5.
        criteria: what is asked.
        better_than: the point chosen at 0.5, whose maximised score must be beaten by more than
            chance explains; `None` where no point keeps the bounds at 0.5.
        beats_constant: whether the same must be true of a constant classifier's score.
        cache: outputs of this network that are known already.

    Returns:
        The point on the validation data and its threshold, or `None`.
    """
    asked = _select_by_decisions(problem, criteria)
    # 0.5 keeps the bounds, and what is maximised or minimised is no decision
    if better_than is not None and asked is not criteria:
        return None  # no threshold changes the score that is maximised
    # on validation rows, where bounds on thresholds are judged whatever the network is
    shares = load_samples_for(model, problem, "val")
    if asked is None or len(shares) > 1:
        return None
    ((_, samples),) = shares
    predict = partial(
        collect_outputs, model, problem, samples, purpose="another threshold", cache=cache
    )
    rays = torch.tensor(front.rays).float()
    outputs, targets = predict(rays)
    if "label" not in targets:
        return None
    with evaluation_mode(model), set_precision("fp32"):
        assert isinstance(outputs, Tensor)
        thresholds, tried = _try_thresholds(problem, front, asked, outputs, targets, cache)
        if tried is None:
            return None
        try:
            best = find_best(tried, asked)
        except InfeasibleError:
            return None
        ray_index, threshold = int(tried.metrics["place"][best]), float(thresholds[best])
        chosen = slice(ray_index, ray_index + 1)
        moved = at_threshold(problem, threshold)
        table = compute_table(
            moved.objectives, outputs[chosen], targets, moved.metrics, moved.score_batch
        )
        scored = build_front(
            table,
            moved.objectives,
            rays[chosen],
            metrics=tuple(moved.metrics),
            reference=moved.reference,
            score_batch=moved.score_batch,
            split="val",
        )
        others: list[Outputs] = []
        if better_than is not None:
            others.append(predict(torch.tensor([better_than.ray]))[0])
        if beats_constant:
            others += [torch.full_like(outputs[chosen], logit) for logit in (-1.0, 1.0)]
        decisions = outputs[chosen] - compute_logit(threshold)
        if not all(_is_better(problem, asked, other, decisions, targets) for other in others):
            return None
    point = dataclasses.replace(get_point(scored, 0), ray=get_point(front, ray_index).ray)
    return point, threshold


def _try_thresholds(
    problem: Problem,
    front: Front,
    asked: Criteria,
    outputs: Tensor,
    targets: Targets,
    cache: OutputCache,
) -> tuple[Array, Front | None]:
    """Return thresholds and a front with a point for each; its metric `place` counts the rays."""
    positive = targets["label"].reshape(-1).cpu() > 0.5
    weight = targets.get("weight", torch.ones(len(positive))).reshape(-1).double().cpu()
    base = float((positive * weight).sum() / weight.sum())
    # by the share of positive decisions, so that candidates are even however logits are scaled
    low, high = LEAST * base, 1 - LEAST * (1 - base)
    if (capacity := asked.max.get("positive_rate", 1.0)) < high:
        # the last is what may be predicted positive at most
        low, high = min(low, LEAST * capacity), capacity
    shares = np.linspace(low, high, CANDIDATES)
    asked_names = {*asked.max, *asked.min, *asked.sought}
    metrics = [n for n in problem.metrics if n in asked_names and n not in problem.names]
    scores = {name: get_scores(problem)[name] for name in (*problem.names, *metrics)}
    thresholds, columns = cache.get(
        ("thresholds", key_rays(torch.tensor(front.rays)), low, high, *scores),
        lambda: _score_thresholds(problem, scores, outputs, targets, weight, shares),
    )
    if not len(thresholds):
        return thresholds, None
    return thresholds, Front(
        rays=front.rays[columns["place"].astype(int)],
        values=np.stack([columns[name] for name in problem.names], axis=1),
        names=problem.names,
        reference=front.reference,
        metrics={name: columns[name] for name in (*metrics, "place")},
        split="val",
    )


def _score_thresholds(
    problem: Problem,
    scores: Mapping[str, Metric],
    outputs: Tensor,
    targets: Targets,
    weight: Tensor,
    shares: Array,
) -> tuple[Array, dict[str, Array]]:
    """Return the thresholds allowed for one ray after the other, and the scores at each.

    Args:
        problem: what the network was trained on.
        scores: by name.
        outputs: of the network ``[rays, B, ...]``.
        targets: of the rows.
        weight: of the rows ``[B]``.
        shares: of rows to predict as positive, each of which gives a threshold.
    """
    thresholds, columns = [], []
    for ray_index, logits in enumerate(outputs):
        probabilities = torch.sigmoid(logits.double()).flatten().cpu().numpy()
        tried = np.array([_round_probability(p) for p in np.quantile(probabilities, 1 - shares)])
        offsets = torch.tensor([compute_logit(t) for t in tried]).to(logits)
        moved = logits.unsqueeze(0) - offsets.reshape(-1, *[1] * logits.ndim)
        positive = ((moved.flatten(1) > 0).double().cpu() @ weight / weight.sum()).numpy()
        # quantiles of equal probabilities can still decide all rows alike
        allowed = (positive > 0) & (positive < 1)
        allowed &= (positive >= shares[0]) & (positive <= shares[-1])
        column = {"place": np.full(int(allowed.sum()), float(ray_index))}
        for name, metric in scores.items():
            # all thresholds in one pass, as if they were rays; the same number for all otherwise
            used = moved if decides(metric) else logits[None]
            score = compute_score(metric, used, targets, problem.score_batch).double()
            column[name] = score.expand(CANDIDATES).cpu().numpy()[allowed]
        thresholds.append(tried[allowed])
        columns.append(column)
    joined = {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}
    return np.concatenate(thresholds), joined


def _is_better(
    problem: Problem, asked: Criteria, other: Outputs, decisions: Tensor, targets: Targets
) -> bool:
    """Return True if decisions score better than other outputs by more than chance explains."""
    both = torch.cat([first(other), decisions])
    scores, size, weights = get_scores(problem), problem.score_batch, [*asked.sought.values()]
    metrics = [scores[name] for name in asked.sought]
    # paired: on the same rows both go up and down together
    drawn = draw_paired_scores(metrics, both, targets, score_batch=size)
    values = np.stack([compute_score(m, both, targets, size).double().numpy() for m in metrics], -1)
    cost, costs = values @ weights, drawn @ weights
    noise = float(np.nanstd(costs[:, 1] - costs[:, 0]))
    return float(cost[0] - cost[1]) > NormalDist().inv_cdf(CONFIDENCE) * noise


def _select_by_decisions(problem: Problem, criteria: Criteria) -> Criteria | None:
    """Return the same bounds with a score of decisions to choose by; `None` if there is none."""
    scores = get_scores(problem)
    if criteria.sought and all(decides(scores[name]) for name in criteria.sought):
        return criteria
    if "accuracy" not in problem.metrics:
        return None
    return dataclasses.replace(
        criteria, minimize=None, maximize="accuracy", knee=False, weights=None, near=None
    )


def _round_probability(probability: float) -> float:
    """Round a probability to four digits of its distance to 0 or to 1."""
    # four digits are what a person can be told, and as exact close to 1 as close to 0
    inside = min(max(probability, 1e-6), 1 - 1e-6)
    return float(f"{inside:.4g}") if inside < 0.5 else round(1 - float(f"{1 - inside:.4g}"), 10)
