"""How far a number may lie from what one sample of people, or of images, shows."""

from collections.abc import Iterable, Mapping
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from paretocosmos.evaluation.evaluate import score
from paretocosmos.pareto.front import Array
from paretocosmos.types import Metric, Outputs, Targets, first, map_tensors

__all__ = ["bootstrap", "paired_draws"]

# Samples drawn in one pass, times samples in a split: what it gathers stays in a few megabytes.
CHUNK = 500_000
# With several rays, where every sample is scored at each of them: what stays in a CPU's cache.
CHUNK_RAYS = 50_000


def bootstrap(
    metrics: Mapping[str, Metric],
    outputs: Outputs,
    targets: Targets,
    *,
    score_batch: int | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Intervals of metrics, by drawing the samples again with replacement.

    Efron's bias-corrected bootstrap (1981): the spread over samples drawn from the sample is taken
    for the spread over samples of the same size, moved by as much as the draws lie to one side of
    what the sample itself gives. A gap needs that: a draw's largest minus its smallest rate is
    larger than the sample's on average. A draw in which a metric does not exist (a group without
    positives) does not count.

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
    >>> found = bootstrap({"accuracy": accuracy}, logits, {"label": torch.ones(500)})
    >>> 0.40 < found["accuracy"][0] < 0.5 < found["accuracy"][1] < 0.60
    True
    """
    one_ray = map_tensors(lambda out: out.unsqueeze(0), outputs)
    drawn = paired_draws(
        metrics.values(), one_ray, targets, score_batch=score_batch, draws=resamples, seed=seed
    )
    estimate = [score(metric, one_ray, targets, score_batch).item() for metric in metrics.values()]
    return {
        name: _ends(column[~np.isnan(column)], whole, level)
        for name, column, whole in zip(metrics, drawn[:, 0].T, estimate, strict=True)
    }


def paired_draws(
    metrics: Iterable[Metric],
    outputs: Outputs,
    targets: Targets,
    *,
    score_batch: int | None = None,
    draws: int = 200,
    seed: int = 0,
) -> Array:
    """Metrics on samples drawn again with replacement, the same samples for every ray.

    What two rays differ by is known better than either: whoever is easy for one is so for the
    other. `pareto.metrics.inverted_pairs` and `dominated_share` take them.

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
    every = list(metrics)
    rays, count = first(outputs).shape[:2]
    draw, device = torch.Generator().manual_seed(seed), first(outputs).device

    def one(rows: Tensor) -> Tensor:
        there = map_tensors(lambda out: out[:, rows], outputs)
        truth = map_tensors(lambda target: target[rows], targets)
        found = [score(metric, there, truth, score_batch).double() for metric in every]
        return torch.stack(found, dim=-1)

    parts = []
    size = max(1, CHUNK // count if rays == 1 else CHUNK_RAYS // (count * rays))
    for start in range(0, draws, size):
        rows = torch.randint(count, (min(size, draws - start), count), generator=draw)
        try:
            parts.append(torch.vmap(one)(rows.to(device)))
        except RuntimeError:  # somebody's own metric, which picks rows by a mask
            parts.append(torch.stack([one(drawn) for drawn in rows.to(device)]))
    numbers: Array = torch.cat(parts).cpu().numpy()
    return numbers


def _ends(drawn: Array, estimate: float, level: float) -> tuple[float, float]:
    """The ends of an interval; shifted by how far the draws lie to one side of the estimate."""
    if not len(drawn) or np.isnan(estimate):
        return np.nan, np.nan
    normal, most = NormalDist(), 1 - 0.5 / len(drawn)
    below = (np.mean(drawn < estimate) + np.mean(drawn <= estimate)) / 2
    shift = 2 * normal.inv_cdf(min(max(float(below), 1 - most), most))
    reach = normal.inv_cdf((1 + level) / 2)
    shares = [normal.cdf(shift - reach), normal.cdf(shift + reach)]
    low, high = np.quantile(drawn, shares)
    return float(low), float(high)
