"""Bounds, and the rows that they are judged on.

A bound is asked of people to come, and the rows at hand are a sample of them. Which of the rows
say whether a ray keeps a bound is decided here and nowhere else: `BoundRows` compares the numbers
that they give with the bound, `choose_with_confidence` tests whether the bound would also hold for
more people than were looked at.
"""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from paretocosmos.errors import InfeasibleError
from paretocosmos.evaluation.evaluate import collect_outputs, evaluate_shares
from paretocosmos.evaluation.intervals import compute_intervals, find_fewest, get_moments
from paretocosmos.evaluation.postprocessing import predict_rows
from paretocosmos.evaluation.rates import compute_gap_limit, compute_smallest_bound
from paretocosmos.evaluation.samples import NO_CACHE, OutputCache, load_samples_for
from paretocosmos.evaluation.scoring import compute_score, get_scores
from paretocosmos.evaluation.threshold import AtThreshold
from paretocosmos.nn.conditioning import training_task
from paretocosmos.objectives import Objective, RateObjective
from paretocosmos.pareto import (
    Array,
    Criteria,
    Front,
    Point,
    find_best,
    find_constant,
    get_columns,
    get_point,
)
from paretocosmos.problems import Problem, split_of
from paretocosmos.types import Metric, Outputs, Targets, first, map_tensors

# Decisions that are scored at once.
DECISIONS = 4_000_000


@final
class BoundRows:
    """The rows that bounds are judged on, and the fronts of a network there.

    These are the validation rows, which the training has not seen. They are few, and a ray whose
    gap is small there may be so by luck. Where the ray only post-processes the network's outputs
    (`TrainingTask.cross_fit`), nothing was trained on the gap, so that it is counted on the
    training and validation rows together, too, and the larger of the two must keep the bound. Each
    training row counts as it would be decided by an adjustment that was fitted without it.

    A confidence allows for luck by itself. It takes all these rows where the network's outputs for
    training rows are as good as those for new ones (`TrainingTask.held_out`), else those of val.
    Scores that are means over batches are counted on those of val alone.

    Args:
        model: the network.
        problem: what it was trained on, deciding at the threshold asked for.
        criteria: what is asked.
        cache: outputs of this network that are known already.

    Attributes:
        evaluations: rays evaluated so far.
        pooled: the gaps that are counted on the training rows, too, by name.
        targets: of training and validation rows, where gaps are pooled.
        names: of the splits that gaps are counted on.
        held_out: whether the network was trained without the rows of val.
        all_held_out: whether outputs for all pooled rows are as good as those for new ones.
    """

    def __init__(
        self,
        model: nn.Module,
        problem: Problem,
        criteria: Criteria,
        cache: OutputCache = NO_CACHE,
    ) -> None:
        self.model, self.problem, self.cache = model, problem, cache
        self._val = load_samples_for(model, problem, "val")
        self._confident = criteria.confidence is not None
        self.evaluations = 0
        self.pooled: Mapping[str, Metric] = {}
        self.names, self.all_held_out = "val", False
        self.held_out = not (criteria.bounds() and _is_trained_on(problem))
        if not criteria.bounds() or problem.score_batch is not None:
            return
        task = training_task(model, problem.objectives)
        if task.cross_fit is None or (self._confident and not task.held_out):
            return
        assert task.at_rays is not None
        splits = [problem.split("train"), problem.split("val")]
        # the heads do not depend on the ray: one pass serves every choice
        train, val = cache.get("pooled", lambda: [predict_rows(task, problem, s) for s in splits])
        device = first(val).device
        targets = [{n: t.to(device) for n, t in split.targets.items()} for split in splits]
        cross_fitted = cache.get("cross-fitted", partial(task.cross_fit, train, targets[0]))
        self._predict: list[Callable[[Tensor], Outputs]] = [
            cross_fitted,
            partial(task.at_rays, val),
        ]
        self.names, self.all_held_out = "train and val", task.held_out
        if not self.held_out:  # no row counts twice
            targets, self._predict, self.names = targets[:1], [cross_fitted], "train"
            self.held_out = task.held_out
        self.targets: Targets = {n: torch.cat([t[n] for t in targets]) for n in targets[0]}
        self.pooled = _find_rate_gaps(problem)

    def with_problem(self, problem: Problem) -> "BoundRows":
        """Return the same rows, to count decisions at another threshold."""
        rows = copy.copy(self)
        rows.problem, rows._val = problem, load_samples_for(self.model, problem, "val")
        rows.pooled = _find_rate_gaps(problem) if self.pooled else {}
        return rows

    def evaluate(self, rays: Tensor) -> Front:
        """Return the front of rays ``[N, J]``, with gaps as they are judged."""
        self.evaluations += len(rays)
        front = evaluate_shares(
            self.model, self.problem, self._val, rays, split="val", cache=self.cache
        )
        return self.judge(front)

    def judge(self, front: Front) -> Front:
        """Return a validation front with the gaps that must keep a bound."""
        if not self.pooled:
            return front
        columns = dict(get_columns(front))
        for name, gaps in self.count_gaps(torch.tensor(front.rays)).items():
            columns[name] = gaps if self._confident else np.fmax(columns[name], gaps)
        values = np.stack([columns.pop(name) for name in front.names], axis=1)
        return dataclasses.replace(front, values=values, metrics=columns, split=self.names)

    def count_gaps(self, rays: Tensor) -> dict[str, Array]:
        """Return every pooled gap ``[N]`` at rays ``[N, J]``."""
        # rays times rows in one pass, so that memory does not grow with the number of rays
        size = max(1, DECISIONS // len(first(self.targets)))
        scores: dict[str, list[Tensor]] = {name: [] for name in self.pooled}
        for chunk in rays.split(size):
            logits = self.predict(chunk)
            for name, metric in self.pooled.items():
                scores[name].append(compute_score(metric, logits, self.targets, None))
        return {name: torch.cat(score).cpu().numpy() for name, score in scores.items()}

    def predict(self, rays: Tensor) -> Tensor:
        """Return the outputs ``[N, B, 1]`` for the pooled rows at rays ``[N, J]``."""
        with torch.inference_mode():
            return torch.cat([first(predict(rays)) for predict in self._predict], dim=1)


def _is_trained_on(problem: Problem) -> bool:
    """Return whether the validation rows are those of the training, as in the smallest tables."""
    if problem.source("val") is not None:
        return False
    train, val = (first(split_of(problem, name).inputs) for name in ("train", "val"))
    return train.shape == val.shape and torch.equal(train, val)


def _find_rate_gaps(problem: Problem) -> dict[str, Metric]:
    """Return the scores that are gaps between rates, by name."""
    gaps: dict[str, Metric] = {}
    for name, metric in get_scores(problem).items():
        objective = getattr(metric, "__self__", None)
        if isinstance(objective, Objective) and metric == objective.score:
            # a gap at another threshold is still a gap between rates
            plain = objective.inner if isinstance(objective, AtThreshold) else objective
            if isinstance(plain, RateObjective) and plain.linear:
                gaps[name] = metric
    return gaps


def choose_with_confidence(
    rows: BoundRows, front: Front, criteria: Criteria, *, useful: Criteria | None = None
) -> Point:
    """Choose the best point whose bounds can be shown on held-out rows with a confidence.

    A ray passes if the one-sided limit of the bounded number keeps the bound. The rays are tested
    in an order that does not depend on the data, those first that were trained for the bound most,
    up to the first that fails (fixed-sequence testing). So the chance that any of those that pass
    breaks the bound is at most one minus the confidence, though the best of them is taken: the
    first that breaks it would have to pass its own test. Several bounds share the risk
    (Bonferroni).

    Args:
        rows: those that gaps are counted on, of a network and what it was trained on.
        front: its validation front, whose rays are tested.
        criteria: what is asked, with a confidence.
        useful: the criteria with what the point must reach on these rows besides; the same if
            `None`.
    """
    model, problem, cache = rows.model, rows.problem, rows.cache
    criteria.check(front)
    if not rows.held_out:
        raise InfeasibleError(
            "`confidence` needs rows that the network was not trained on, which tables of fewer "
            "than 100 rows do not hold out: give more rows, or leave `confidence` out"
        )
    if find_constant(front).all() and not criteria.allow_constant:
        find_best(front, criteria)  # which raises, with the way out
    rays = torch.tensor(front.rays).float()
    predicted: dict[str, tuple[Outputs, Targets]] = {}  # by what is bounded
    for objectives, samples in load_samples_for(model, problem, "val"):
        both = collect_outputs(model, problem, samples, rays, purpose="a confidence", cache=cache)
        predicted |= dict.fromkeys([*(o.name for o in objectives), *problem.metrics], both)
    if rows.pooled:
        predicted |= dict.fromkeys(rows.pooled, (rows.predict(rays), rows.targets))
    # Bonferroni: each of several bounds is tested at its share of the risk
    risk = (1 - (criteria.confidence or 0.95)) / len(criteria.bounds())
    tests = [
        BoundTest(
            problem, front, *predicted[name], criteria.allow_constant, 1 - risk, name, bound, side
        )
        for name, bound, side in criteria.bounds()
    ]
    passing = [test.find_passing() for test in tests]
    # a ray has to pass the tests of all bounds
    common = [k for k in range(len(front)) if all(k in limits for limits in passing)]
    if not common:
        failed = [test for test, limits in zip(tests, passing, strict=True) if not limits]
        why = "; ".join(test.explain() for test in failed) or "no ray keeps them all"
        raise InfeasibleError(
            f"no ray can be shown to keep {criteria.describe_bounds()} with a confidence of "
            f"{criteria.confidence:g} on {rows.names}: {why}; allow more, ask for less "
            "confidence, or hold out more rows"
        )
    try:
        best = common[find_best(front.take(common), useful or criteria)]
    except InfeasibleError:
        if useful is None or useful.min == criteria.min:
            raise
        raise InfeasibleError(
            f"no ray that can be shown to keep {criteria.describe_bounds()} with a confidence of "
            f"{criteria.confidence:g} is right as often as a constant classifier "
            f"({useful.min['accuracy']:.1%}): allow more, ask for less confidence, or take a "
            "constant classifier with `allow_constant`"
        ) from None
    limits = {test.name: passed[best] for test, passed in zip(tests, passing, strict=True)}
    return dataclasses.replace(get_point(front, best), limits=limits)


@dataclass(frozen=True)
class BoundTest:
    """A bound and the rays to test it with.

    Attributes:
        problem: whose number is bounded.
        front: the validation front.
        outputs: of the network at every ray of it, on the validation data.
        targets: that data's.
        allow_constant: test classifiers that give everybody the same answer, too.
        confidence: of one test.
        name: what is bounded.
        bound: the number.
        side: 1 if it may not be above it, else -1.
    """

    problem: Problem
    front: Front
    outputs: Outputs
    targets: Targets
    allow_constant: bool
    confidence: float
    name: str
    bound: float
    side: int

    def find_passing(self) -> dict[int, float]:
        """Return the indices of the rays that pass, and their limits."""
        limits: dict[int, float] = {}
        for k in self.order_rays():
            limit = self.compute_limit(k)
            # written so that NaN fails
            if not self.side * limit <= self.side * self.bound:
                break
            limits[k] = limit
        return limits

    def order_rays(self) -> list[int]:
        """Return the indices of the rays, those that weigh the bounded objective most first.

        A metric is taken to follow the first objective, a gap to run against it.
        """
        if self.name in self.front.names:
            weight = self.front.rays[:, self.front.names.index(self.name)]
        else:
            is_gap = self.moments_at(0) is not None and self.side > 0
            weight = (-1 if is_gap else 1) * self.front.rays[:, 0]
        # a constant classifier passes any test of a gap, and is of no use
        skipped = find_constant(self.front) & (not self.allow_constant)
        order = np.argsort(-weight, kind="stable")
        return [int(k) for k in order if not skipped[k]]

    def compute_limit(self, k: int) -> float:
        """Return how far the number of a ray may be towards its bound; NaN if it has no value."""
        moments = self.moments_at(k)
        if moments is not None and self.side > 0 and self.problem.score_batch is None:
            return float(compute_gap_limit(moments, reach=NormalDist().inv_cdf(self.confidence)))
        ends = compute_intervals(
            {self.name: self.metric},
            self.outputs_at(k),
            self.targets,
            score_batch=self.problem.score_batch,
            # the end of a two-sided interval at this level is the limit of a one-sided test
            level=2 * self.confidence - 1,
            chosen=True,
        )
        return ends[self.name][1 if self.side > 0 else 0]

    def explain(self) -> str:
        """Describe the first ray's number and its limit, and what the rows can support."""
        first = self.order_rays()[0]
        point, limit = get_point(self.front, first), self.compute_limit(first)
        ray = ",".join(f"{weight:.4g}" for weight in point.ray)
        direction, smallest = "up" if self.side > 0 else "down", ""
        moments = self.moments_at(first)
        if moments is not None and self.side > 0:
            supported = compute_smallest_bound(moments, self.confidence)
            if supported > self.bound:
                count, whose = find_fewest(self.metric, moments, self.problem)
                smallest = (
                    f"; with {count} {whose}, the smallest bound that such rates can be shown to "
                    f"keep is about {supported:.2g}"
                )
        return (
            f"the ray {ray}, tested first, has `{self.name}` {point[self.name]:.3g} there, in "
            f"truth {direction} to {limit:.3g}{smallest}"
        )

    def moments_at(self, k: int) -> Array | None:
        """Return what a gap's limit at a ray follows from; `None` for anything else."""
        return get_moments(self.metric, self.outputs_at(k), self.targets)

    def outputs_at(self, k: int) -> Outputs:
        """Return the network's outputs at one ray."""
        outputs: Outputs = map_tensors(lambda out: out[k], self.outputs)
        return outputs

    @property
    def metric(self) -> Metric:
        """The score that is bounded."""
        return get_scores(self.problem)[self.name]
