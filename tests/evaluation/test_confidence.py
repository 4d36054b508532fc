"""Bounds with confidence: limits by hand, the order of the tests, and what is said of few rows."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from paretocosmos import evaluate
from paretocosmos.errors import ConfigurationError, InfeasibleError
from paretocosmos.evaluation import (
    BoundRows,
    choose_with_confidence,
    compute_gap_limit,
    compute_share_interval,
)
from paretocosmos.objectives import BinaryCrossEntropy, TprGap, accuracy
from paretocosmos.pareto import Criteria, Front, Point
from paretocosmos.problems import InMemoryProblem
from paretocosmos.types import Batch

POSITIVES = (40, 200)  # of the two groups; as many negatives, all told apart
RAYS = torch.tensor([[1.0, 0.0], [0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.0, 1.0]])


class Drawn(nn.Module):
    """A network whose logits at every ray are its inputs: ``[B, rays]``."""

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        place = (ray[..., 1:] * (len(RAYS) - 1)).round()
        chosen = (torch.arange(len(RAYS)) == place).to(inputs.dtype)
        return (inputs * chosen).sum(dim=-1, keepdim=True)


def front_of(found: list[tuple[int, int]], repeat: int = 1) -> tuple[InMemoryProblem, Front]:
    """A problem whose groups have so many positives found at each ray, and its front."""
    columns = []
    for at, hits in enumerate(found):
        # the first rays are the surest, so that they have the smallest loss
        sure = 3.0 - 0.4 * at
        part = [
            [sure] * h + [-0.1] * (size - h) + [-sure] * size
            for h, size in zip(hits, POSITIVES, strict=True)
        ]
        columns.append(torch.tensor([*part[0], *part[1]]).repeat(repeat))
    label = torch.cat([torch.tensor([1.0, 0.0]).repeat_interleave(size) for size in POSITIVES])
    groups = torch.tensor([0, 1]).repeat_interleave(torch.tensor(POSITIVES) * 2)
    targets = {"label": label.repeat(repeat), "sensitive": groups.repeat(repeat)}
    rows = torch.stack(columns, dim=1)
    batch = Batch(rows, targets)
    problem = InMemoryProblem(
        name="drawn",
        objectives=(BinaryCrossEntropy(), TprGap()),
        reference=(2.0, 2.0),
        input_shape=(len(RAYS),),
        outputs=1,
        metrics={"accuracy": accuracy},
        splits={"train": Batch(rows[:1], {n: t[:1] for n, t in targets.items()}), "val": batch},
    )
    return problem, evaluate(Drawn(), problem, split="val", rays=RAYS)


def choose(problem: InMemoryProblem, front: Front, criteria: Criteria) -> Point:
    return choose_with_confidence(BoundRows(Drawn(), problem, criteria), front, criteria)


def limit_of(hits: tuple[int, int], reach: float = 1.2815516) -> float:
    counts = np.array([[[h, h, size] for h, size in zip(hits, POSITIVES, strict=True)]], float)
    return float(compute_gap_limit(counts, reach=reach))


# The gap falls with its weight, but for the second ray, which is lucky.
FALLING = [(20, 180), (32, 160), (26, 160), (29, 160), (32, 160)]


def test_the_best_ray_up_to_the_first_that_fails() -> None:
    problem, front = front_of(FALLING)
    bound = (limit_of(FALLING[3]) + limit_of(FALLING[2])) / 2
    assert limit_of(FALLING[1]) < bound  # which would pass, and has the smaller loss
    point = choose(problem, front, Criteria(max={"tpr_gap": bound}, confidence=0.9))
    assert point.ray == (0.25, 0.75)
    assert point.limits == pytest.approx({"tpr_gap": limit_of(FALLING[3])})
    wide = Criteria(max={"tpr_gap": limit_of(FALLING[2]) + 0.001}, confidence=0.9)
    assert choose(problem, front, wide).ray == (0.75, 0.25)


def test_several_bounds_share_what_may_go_wrong() -> None:
    problem, front = front_of(FALLING)
    both = Criteria(max={"tpr_gap": 0.4}, min={"accuracy": 0.85}, confidence=0.9)
    point = choose(problem, front, both)
    right = (480 - (40 - 32) - (200 - 160)) / 480
    low, _ = compute_share_interval(np.array(right), np.array(480.0), level=0.9)  # 95 %, one-sided
    assert point.ray == (0.75, 0.25)
    assert point.limits["accuracy"] == pytest.approx(float(low))
    assert point.limits["tpr_gap"] == pytest.approx(limit_of((32, 160), 1.6448536))


def test_what_the_rows_cannot_support() -> None:
    problem, front = front_of(FALLING)
    least = limit_of((32, 160))  # no gap at all is found there
    with pytest.raises(InfeasibleError) as refused:
        choose(problem, front, Criteria(max={"tpr_gap": 0.02}, confidence=0.9))
    told = str(refused.value)
    assert "`tpr_gap` at most 0.02 with a confidence of 0.9 on val" in told
    assert "with 40 positives in one group" in told
    assert f"is about {least:.2g}" in told
    # many more rows of the same kind support it
    problem, front = front_of(FALLING, repeat=40)
    choose(problem, front, Criteria(max={"tpr_gap": 0.02}, confidence=0.9))


def test_a_constant_classifier_proves_nothing() -> None:
    same = [*FALLING[:4], POSITIVES]
    problem, front = front_of(same)
    front = Front(
        front.rays,
        front.values,
        front.names,
        front.reference,
        metrics={"positive_rate": np.array([0.4, 0.4, 0.4, 0.4, 1.0])},
        split="val",
    )
    bound = limit_of(FALLING[3]) + 0.001
    point = choose(problem, front, Criteria(max={"tpr_gap": bound}, confidence=0.9))
    assert point.ray == (0.25, 0.75)
    every = Front(
        front.rays,
        front.values,
        front.names,
        front.reference,
        metrics={"positive_rate": np.ones(5)},
        split="val",
    )
    with pytest.raises(InfeasibleError, match=r"constant classifier.*`allow_constant`"):
        choose(problem, every, Criteria(max={"tpr_gap": bound}, confidence=0.9))


@pytest.mark.parametrize("confidence", [0.5, 1.0, 90, True, "much", float("nan")])
def test_a_confidence_is_a_share(confidence: object) -> None:
    with pytest.raises(ConfigurationError, match=r"above 0\.5 and below 1"):
        Criteria(max={"gap": 0.1}, confidence=confidence)  # type: ignore[arg-type]


def test_a_confidence_without_a_bound() -> None:
    with pytest.raises(ConfigurationError, match="`confidence` needs a bound"):
        Criteria(knee=True, confidence=0.9)
