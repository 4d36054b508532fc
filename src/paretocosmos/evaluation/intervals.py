"""Intervals of metrics: how far a number may lie from what one sample shows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from paretocosmos.evaluation.rates import compute_gap_interval, compute_share_interval
from paretocosmos.evaluation.scoring import compute_score
from paretocosmos.objectives import Objective
from paretocosmos.pareto.front import Array
from paretocosmos.problems import Problem
from paretocosmos.types import Metric, Outputs, Targets, first, map_tensors

# Samples drawn in one pass, times samples in a split: what it gathers stays in a few megabytes.
CHUNK = 500_000
# Draws by which weights are compared with repeated rows.
COMPARED = 3
# With several rays, where every sample is scored at each of them: what stays in a CPU's cache.
CHUNK_RAYS = 50_000

UNITS = {"all": "rows", "positives": "positives", "negatives": "negatives"}


def compute_intervals(
    metrics: Mapping[str, Metric],
    outputs: Outputs,
    targets: Targets,
    *,
    score_batch: int | None = None,
    level: float = 0.95,
    chosen: bool = False,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Compute intervals of metrics at one ray, each by the method that suits it.

    A gap between groups' rates or means (an objective that knows its `moments`) has a score
    interval for the absolute value of a difference (`evaluation.rates`). A share of all rows, such
    as the accuracy, has Wilson's. Whatever else there is has a bootstrap's. An interval
    holds what the rows show.

    Args:
        metrics: what to compute, by name.
        outputs: of the network at one ray, ``[B, ...]``.
        targets: what they are compared with.
        score_batch: samples per score, whose mean is taken; `None` for all at once.
        level: how often an interval is to hold the true number.
        chosen: whether the ray was chosen by these very samples (`rates.compute_gap_interval`).
        seed: of the bootstrap's draws.

    Returns:
        The ends of each interval; NaN where the metric has no value.

    >>> from paretocosmos.objectives import accuracy
    >>> right = compute_intervals({"accuracy": accuracy}, torch.ones(50), {"label": torch.ones(50)})
    >>> [round(end, 3) for end in right["accuracy"]]
    [0.929, 1.0]
    """
    intervals = {}
    # a mean over batches is neither a gap nor a share of all rows
    for name, metric in metrics.items() if score_batch is None else ():
        moments = get_moments(metric, outputs, targets)
        if moments is not None and not bool(metric(outputs, targets).isnan()):
            low, high = compute_gap_interval(moments, level=level, chosen=chosen)
            intervals[name] = float(low), float(high)
        elif ends := _compute_share_ends(metric, outputs, targets, level):
            intervals[name] = ends
    others = {name: metric for name, metric in metrics.items() if name not in intervals}
    if others:
        intervals |= bootstrap_intervals(
            others, outputs, targets, score_batch=score_batch, level=level, seed=seed
        )
    return {name: intervals[name] for name in metrics}


def get_moments(metric: Metric, outputs: Outputs, targets: Targets) -> Array | None:
    """Return the moments of a metric that `rates.compute_gap_interval` takes, if it has any.

    Without the rates that a group has no rows for; `None` where nothing is left.
    """
    objective = getattr(metric, "__self__", None)
    if not isinstance(objective, Objective) or metric != objective.score:
        return None
    moments = objective.moments(outputs, targets)
    if moments is None:
        return None
    # of some rate a group may have no rows, such as no positives
    complete: Array = moments[(moments[..., 2] > 0).all(dim=-1)].cpu().numpy()
    return complete if len(complete) else None


def find_fewest(metric: Metric, moments: Array, problem: Problem) -> tuple[int, str]:
    """Return the fewest rows that one of a gap's rates is a mean of, and whose they are."""
    sizes = moments[..., 2]
    rate, group = np.unravel_index(sizes.argmin(), sizes.shape)
    names = getattr(problem, "groups", ())
    over = getattr(getattr(metric, "__self__", None), "over", None) or ("all",)
    where = f"in `{names[group]}`" if len(names) == sizes.shape[1] else "in one group"
    count, unit = int(sizes.min()), UNITS[over[int(rate) % len(over)]]
    return count, f"{unit.removesuffix('s') if count == 1 else unit} {where}"


def _compute_share_ends(
    metric: Metric, outputs: Outputs, targets: Targets, level: float
) -> tuple[float, float] | None:
    """Compute Wilson's interval, if the metric is a mean of 0 or 1 for each sample."""
    singles = map_tensors(lambda out: out.unsqueeze(1), outputs)
    try:
        each = torch.vmap(metric)(singles, {k: t.unsqueeze(1) for k, t in targets.items()}).double()
    except (RuntimeError, IndexError, ValueError):  # a user's, or one that needs several samples
        return None
    share = metric(outputs, targets).double()
    weight = targets.get("weight", torch.ones_like(each)).reshape(each.shape).double()
    total = weight.sum()
    if not bool(((each == 0) | (each == 1)).all()):
        return None
    if not bool(torch.isclose((each * weight).sum() / total, share, rtol=0, atol=1e-6)):
        return None
    size = total.square() / weight.square().sum()  # Kish's effective sample size
    low, high = compute_share_interval(share.cpu().numpy(), size.cpu().numpy(), level=level)
    return float(low), float(high)


def bootstrap_intervals(
    metrics: Mapping[str, Metric],
    outputs: Outputs,
    targets: Targets,
    *,
    score_batch: int | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Compute intervals of metrics by drawing the samples again with replacement.

    Efron's bias-corrected bootstrap (1981): the spread over samples drawn from the sample is taken
    for the spread over samples of the same size, moved by as much as the draws lie to one side of
    what the sample itself gives. A draw in which a metric does not exist (a group without
    positives) does not count. What a sample cannot show, such as a gap that is 0 in it, no draw
    from it shows: `compute_intervals` has better ways for gaps and shares.

    Args:
        metrics: what to compute, by name.
        outputs: of the network at one ray, ``[B, ...]``.
        targets: what they are compared with.
        score_batch: samples per score, whose mean is taken; `None` for all at once.
        resamples: how many times to draw.
        level: how often an interval is to hold the true number.
        seed: of the draws.

    Returns:
        The ends of each interval; NaN where no draw gave a number.

    >>> logits = torch.randn(500, generator=torch.Generator().manual_seed(1))
    >>> from paretocosmos.objectives import accuracy
    >>> ends = bootstrap_intervals({"accuracy": accuracy}, logits, {"label": torch.ones(500)})
    >>> 0.40 < ends["accuracy"][0] < 0.5 < ends["accuracy"][1] < 0.60
    True
    """
    one_ray = map_tensors(lambda out: out.unsqueeze(0), outputs)
    drawn = draw_paired_scores(
        metrics.values(), one_ray, targets, score_batch=score_batch, draws=resamples, seed=seed
    )
    intervals = {}
    for (name, metric), column in zip(metrics.items(), drawn[:, 0].T, strict=True):
        estimate = compute_score(metric, one_ray, targets, score_batch).item()
        intervals[name] = _compute_ends(column[~np.isnan(column)], estimate, level)
    return intervals


def draw_paired_scores(
    metrics: Iterable[Metric],
    outputs: Outputs,
    targets: Targets,
    *,
    score_batch: int | None = None,
    draws: int = 200,
    seed: int = 0,
) -> Array:
    """Compute metrics on samples drawn again with replacement, the same ones for every ray.

    The difference of two rays is known better than either: a sample that is easy for one is so for
    the other. `pareto.metrics.inverted_share` and `dominated_share` take such draws.

    Args:
        metrics: what to compute; scores of objectives for the values of a front.
        outputs: of the network at every ray, ``[N, B, ...]``.
        targets: what they are compared with.
        score_batch: samples per score, whose mean is taken; `None` for all at once.
        draws: how many times to draw.
        seed: of the draws.

    Returns:
        ``[draws, N, M]`` for M metrics.
    """
    rays, count = first(outputs).shape[:2]
    size = max(1, CHUNK // count if rays == 1 else CHUNK_RAYS // (count * rays))
    sizes = [min(size, draws - start) for start in range(0, draws, size)]
    few, counts = _count_draws(count, sizes, seed)
    device, metrics = first(outputs).device, list(metrics)
    columns: dict[int, Tensor] = {}
    for index, metric in enumerate(metrics):
        # weights are some ten times faster than gathering rows
        if score_batch is None and _takes_weight(metric, outputs, targets, few.to(device)):
            scores = [
                _score_by_weight(metric, outputs, targets, chunk.to(device).float())
                for chunk in counts
            ]
            columns[index] = torch.cat(scores)
    others = [index for index in range(len(metrics)) if index not in columns]
    if others:
        # of all other metrics together, so that rows are gathered once, however many there are
        tables = [
            _score_by_rows(
                [metrics[index] for index in others], outputs, targets, rows.to(device), score_batch
            )
            for rows in _draw_rows(count, sizes, seed)
        ]
        columns |= zip(others, torch.cat(tables).unbind(dim=-1), strict=True)
    return torch.stack([columns[index] for index in range(len(metrics))], dim=-1).cpu().numpy()


def _draw_rows(count: int, sizes: Iterable[int], seed: int) -> Iterator[Tensor]:
    """Draw rows with replacement, ``[draws, B]``, in parts of these sizes."""
    draw = torch.Generator().manual_seed(seed)
    for size in sizes:
        yield torch.randint(count, (size, count), generator=draw)


def _count_draws(count: int, sizes: Iterable[int], seed: int) -> tuple[Tensor, list[Tensor]]:
    """Return the first few draws, and how often each row is in each of all draws."""
    few, counts = torch.empty(0), list[Tensor]()
    for rows in _draw_rows(count, sizes, seed):
        few = few if counts else rows[:COMPARED].clone()
        # a byte each instead of eight: all draws are in memory at once
        counts.append(_count_rows(rows).to(torch.uint8))
    return few, counts


def _score_by_rows(
    metrics: Sequence[Metric],
    outputs: Outputs,
    targets: Targets,
    rows: Tensor,
    score_batch: int | None,
) -> Tensor:
    """Score metrics on drawn rows ``[draws, B]`` at every ray, ``[draws, N, M]``."""

    def score_draw(drawn: Tensor) -> Tensor:
        chosen = map_tensors(lambda out: out[:, drawn], outputs)
        truth = map_tensors(lambda target: target[drawn], targets)
        scores = [compute_score(metric, chosen, truth, score_batch) for metric in metrics]
        return torch.stack([score.double() for score in scores], dim=-1)

    try:
        return torch.vmap(score_draw)(rows)
    except RuntimeError:  # a user's metric, which picks rows by a mask
        return torch.stack([score_draw(drawn) for drawn in rows])


def _count_rows(rows: Tensor) -> Tensor:
    """Count how often each row was drawn, ``[draws, B]``."""
    ones = torch.ones(rows.shape, device=rows.device)
    return torch.zeros_like(ones).scatter_add_(1, rows, ones)


def _score_by_weight(metric: Metric, outputs: Outputs, targets: Targets, counts: Tensor) -> Tensor:
    """Score a metric by weights: a row counts as often as it was drawn, and is sorted once."""
    weight = targets.get("weight")

    def score_draw(drawn: Tensor) -> Tensor:
        product = drawn if weight is None else weight.reshape(drawn.shape) * drawn
        return compute_score(metric, outputs, {**targets, "weight": product}, None).double()

    return torch.vmap(score_draw)(counts)


def _takes_weight(metric: Metric, outputs: Outputs, targets: Targets, rows: Tensor) -> bool:
    """Return whether a weight counts as so many equal rows; a user's metric may ignore weights."""
    try:
        weighted = _score_by_weight(metric, outputs, targets, _count_rows(rows))
        drawn = _score_by_rows([metric], outputs, targets, rows, None).squeeze(-1)
    except Exception:  # a metric's own, which is raised again where it is needed
        return False
    return weighted.shape == drawn.shape and torch.allclose(
        weighted, drawn, rtol=1e-5, atol=1e-7, equal_nan=True
    )


def _compute_ends(drawn: Array, estimate: float, level: float) -> tuple[float, float]:
    """Compute the bias-corrected ends of an interval of an estimate."""
    if not len(drawn) or np.isnan(estimate):
        return np.nan, np.nan
    # the quantile of a share of 0 or 1 is infinite: as if half a draw lay on the other side
    normal, most = NormalDist(), 1 - 0.5 / len(drawn)
    below = (np.mean(drawn < estimate) + np.mean(drawn <= estimate)) / 2
    shift = 2 * normal.inv_cdf(min(max(float(below), 1 - most), most))
    reach = normal.inv_cdf((1 + level) / 2)
    shares = [normal.cdf(shift - reach), normal.cdf(shift + reach)]
    low, high = np.quantile(drawn, shares)
    # a bias may move both ends to one side of the estimate, which the interval is to hold
    return min(float(low), estimate), max(float(high), estimate)
