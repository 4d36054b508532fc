"""`python -m benchmarks.intervals --out results/intervals.json`: do intervals hold the truth?

Tables are drawn whose true gap is known: half of the rows are positives, of whom 80 % are found in
the larger group and less, by the gap, in the smaller. Intervals of `tpr_gap` are computed as
`evaluation.intervals` does it, from the counts:

- fixed: one classifier, given beforehand.
- chosen: the best of 25 rays whose gap is at most the bound, by the same rows (val), and the same
  ray on as many other rows (test). A row's scores at two rays are correlated, those at the ends of
  the front by 0.9, which leaves its gaps correlated by 0.6 and those of neighbours by 0.98. On a
  `flat` front every ray has the true gap of the cell, so that the choice follows noise alone; on a
  `sloped` one it falls from twice that to 0. The bound is the cell's gap, 0.02 where that is 0.
  Tables in which no ray keeps it are left out.
- confidence: on sloped fronts, how often `choose(..., confidence=0.9)` finds a ray, and how often
  that breaks the bound in truth; beside it the same for the best of all rays that pass, whatever
  the order of the tests, and for a choice without confidence.
- more: four groups, equalized odds, and a share (accuracy).

The width is compared with an oracle's, who knows how the estimate of that gap spreads: from its
2.5 % to its 97.5 % quantile.
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import torch

from paretocosmos.evaluation import compute_gap_interval, compute_gap_limit, compute_share_interval
from paretocosmos.pareto import Array
from paretocosmos.runs.provenance import get_provenance

TABLES, ORACLE = 2000, 40_000
ROWS, GAPS, SHARES = (300, 1500, 5000), (0.0, 0.02, 0.1), (0.5, 0.1)
POSITIVES, FOUND = 0.5, 0.8
MORE = 1500  # rows, where there is more than a pair of rates
RAYS, BOUND_AT_0, CONFIDENCE = 25, 0.02, 0.9
# Of a row's score at a ray, the share of the variance that changes with the ray.
OWN = 0.1


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--tables", type=int, default=TABLES, help="per cell")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    started, cells = time.process_time(), []
    for cell in study(arguments.tables, arguments.seed):
        print(json.dumps(cell), flush=True)
        cells.append(cell)
    if arguments.out:
        content = get_provenance(torch.device("cpu")) | {
            "command": f"python -m benchmarks.intervals {shlex.join(sys.argv[1:])}",
            "seed": arguments.seed,
            "tables": arguments.tables,
            "seconds": round(time.process_time() - started),
            "cells": cells,
        }
        arguments.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def study(tables: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every cell, each with draws of its own."""
    number = 0
    for rows in ROWS:
        for share in SHARES:
            for gap in GAPS:
                number += 1
                draw = np.random.default_rng([seed, number])
                about = {"rows": rows, "smaller_group": share, "gap": gap}
                known = moments(draw, ORACLE, rows, [1 - share, share], gap)
                oracle = float(np.diff(np.quantile(_gap(known), [0.025, 0.975]))[0])
                given = compute_gap_interval(moments(draw, tables, rows, [1 - share, share], gap))
                yield about | judged("fixed", given, np.full(tables, gap), oracle)
                for shape in ("flat", "sloped"):
                    gaps = np.full(RAYS, gap) if shape == "flat" else np.linspace(2 * gap, 0, RAYS)
                    fronts = correlated(draw, tables, rows, share, gaps)
                    yield from chosen(draw, fronts, gaps, gap, oracle, about | {"front": shape})
    yield from more(tables, seed)


def judged(kind: str, ends: tuple[Array, Array], truth: Array, oracle: float) -> dict[str, Any]:
    """How often the truth is held, missed on either side, and how wide the intervals are."""
    low, high = ends
    return {
        "kind": kind,
        "intervals": len(truth),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "above": float(np.mean(truth > high)),
        "below": float(np.mean(truth < low)),
        "width": float(np.mean(high - low)),
        "oracle": oracle,
        "ratio": float(np.mean(high - low)) / oracle,
    }


def moments(
    draw: np.random.Generator, tables: int, rows: int, shares: list[float], gap: float
) -> Array:
    """Counts of tables ``[tables, 1, groups, 3]``; rates fall evenly from the first to the last."""
    groups = draw.multinomial(rows, shares, tables)
    positives = np.maximum(draw.binomial(groups, POSITIVES), 1)
    hits = draw.binomial(positives, FOUND - np.linspace(0, gap, len(shares)))
    return np.stack([hits, hits, positives], axis=-1)[:, None].astype(float)


def correlated(
    draw: np.random.Generator, tables: int, rows: int, share: float, gaps: Array
) -> Array:
    """Counts of fronts ``[tables, rays, 1, groups, 3]`` with a true gap at every ray."""
    angle = np.linspace(0, np.pi / 2, RAYS, dtype=np.float32)
    turns = np.sqrt(OWN, dtype=np.float32) * np.stack([np.cos(angle), np.sin(angle)])
    groups = draw.multinomial(rows, [1 - share, share], tables)
    positives = np.maximum(draw.binomial(groups, POSITIVES), 1)
    hits = np.empty((tables, RAYS, 2))
    for group in (0, 1):
        rates = FOUND - group * gaps
        cuts = np.array([-NormalDist().inv_cdf(rate) for rate in rates], dtype=np.float32)
        for table in range(tables):
            normal = draw.standard_normal((positives[table, group], 3), dtype=np.float32)
            score = np.sqrt(1 - OWN, dtype=np.float32) * normal[:, :1] + normal[:, 1:] @ turns
            hits[table, :, group] = (score > cuts).sum(axis=0)
    sizes = np.broadcast_to(positives[:, None], hits.shape)
    return np.stack([hits, hits, sizes], axis=-1)[:, :, None]


def chosen(
    draw: np.random.Generator,
    fronts: Array,
    gaps: Array,
    gap: float,
    oracle: float,
    about: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """Intervals at the first ray that keeps the bound, on these rows and on others."""
    bound = gap or BOUND_AT_0
    kept = _gap(fronts) <= bound
    found, ray = kept.any(axis=1), kept.argmax(axis=1)
    own = fronts[found, ray[found]]
    truth, sizes = gaps[ray[found]], own[..., 2]
    rates = FOUND - np.stack([np.zeros_like(truth), truth], axis=-1)[:, None]
    groups = np.broadcast_to(sizes, (*rates.shape[:1], 1, 2)).astype(int)
    hits = draw.binomial(groups, rates)
    other = np.stack([hits, hits, groups], axis=-1).astype(float)
    yield about | judged("chosen, val", compute_gap_interval(own, chosen=True), truth, oracle)
    yield about | judged("chosen, test", compute_gap_interval(other), truth, oracle)
    if about["front"] == "sloped" and gap:
        limits = compute_gap_limit(fronts, reach=NormalDist().inv_cdf(CONFIDENCE))
        # from the ray trained most for the gap, up to the first that fails
        count = np.cumprod(limits[:, ::-1] <= bound, axis=1).sum(axis=1)
        last = gaps[RAYS - np.maximum(count, 1)]
        # the best of all that pass, in any order: what the sequence is there to prevent
        first = gaps[(limits <= bound).argmax(axis=1)]
        passing = (limits <= bound).any(axis=1)
        yield about | {
            "kind": "confidence",
            "intervals": len(fronts),
            "found": float(np.mean(count > 0)),
            "broken": float(np.mean((count > 0) & (last > bound + 1e-9))),
            "found_unordered": float(passing.mean()),
            "broken_unordered": float(np.mean(passing & (first > bound + 1e-9))),
            "found_without": float(found.mean()),
            "broken_without": float(np.mean(found & (gaps[ray] > bound + 1e-9))),
        }


def more(tables: int, seed: int) -> Iterator[dict[str, Any]]:
    """Four groups, equalized odds, and a share: given points."""
    for number, gap in enumerate(GAPS):
        draw = np.random.default_rng([seed, 100 + number])
        for kind in ("four groups", "equalized odds"):
            known, drawn = (several(draw, count, kind, gap) for count in (ORACLE, tables))
            oracle = float(np.diff(np.quantile(_gap(known), [0.025, 0.975]))[0])
            truth = np.full(tables, gap)
            yield {"rows": MORE, "gap": gap} | judged(
                kind, compute_gap_interval(drawn), truth, oracle
            )
    for number, right in enumerate((0.5, 0.85, 0.98)):
        draw = np.random.default_rng([seed, 200 + number])
        for rows in ROWS:
            ends = compute_share_interval(
                draw.binomial(rows, right, tables) / rows, np.array(float(rows))
            )
            spread = draw.binomial(rows, right, ORACLE) / rows
            oracle = float(np.diff(np.quantile(spread, [0.025, 0.975]))[0])
            truth = np.full(tables, right)
            yield {"rows": rows, "share": right} | judged("a share", ends, truth, oracle)


def several(draw: np.random.Generator, tables: int, kind: str, gap: float) -> Array:
    """Counts of four groups, or of two groups and two rates, the second without a gap."""
    if kind == "four groups":
        return moments(draw, tables, MORE, [0.25] * 4, gap)
    both = [moments(draw, tables, MORE, [0.5, 0.5], each) for each in (gap, 0.0)]
    return np.concatenate(both, axis=1)


def _gap(counts: Array) -> Array:
    """What is estimated: the largest gap, ``[...]``."""
    rates = counts[..., 0] / counts[..., 2]
    found: Array = np.ptp(rates, axis=-1).max(axis=-1)
    return found


if __name__ == "__main__":
    main()
