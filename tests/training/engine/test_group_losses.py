"""Losses of groups and heads against the loop written out."""

import pytest
import torch
from tests.small import watch
from torch import Tensor

from paretocosmos.objectives import CrossEntropy, MeanSquaredError, Objective, TprGap
from paretocosmos.training.engine import compute_group_losses, step
from paretocosmos.types import Outputs, Targets

DOUBLE = torch.float64
B, CLASSES, J = 24, 5, 10
HEADS = tuple(f"head_{j}" for j in range(J))


Calls = list[int]


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """A number for each time that objectives were computed in one go."""
    calls: Calls = []
    watch(monkeypatch, step, "_compute_together", lambda *_: calls.append(1))
    return calls


def _outputs(*shape: int) -> dict[str, Tensor]:
    return {head: torch.randn(B, *shape, dtype=DOUBLE) for head in HEADS}


def _loop(objectives: list[Objective], outputs: Outputs, targets: Targets, groups: int) -> Tensor:
    """Group by group and objective by objective."""
    size, rows = B // groups, []
    for start in range(0, B, size):
        mine = slice(start, start + size)
        part = (
            outputs[mine]
            if isinstance(outputs, Tensor)
            else {k: v[mine] for k, v in outputs.items()}
        )
        own = {name: target[mine] for name, target in targets.items()}
        rows.append(torch.stack([objective.loss(part, own) for objective in objectives]))
    return torch.stack(rows)


def _heads() -> list[Objective]:
    return [CrossEntropy(name=head, output=head, target=head) for head in HEADS]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [1, 4])
def test_ten_heads_alike_are_one_call(together: Calls, groups: int, weighted: bool) -> None:
    outputs = _outputs(CLASSES)
    targets = {head: torch.randint(CLASSES, (B,)) for head in HEADS}
    if weighted:
        targets["weight"] = torch.rand(B, dtype=DOUBLE)
        targets["weight"][:5] = 0
    leaves = {head: out.clone().requires_grad_() for head, out in outputs.items()}
    found = compute_group_losses(_heads(), leaves, targets, groups)
    assert len(together) == 1
    twins = {head: out.clone().requires_grad_() for head, out in outputs.items()}
    expected = _loop(_heads(), twins, targets, groups)
    assert found.shape == (groups, J)
    torch.testing.assert_close(found, expected)
    weights = torch.rand(groups, J, dtype=DOUBLE)
    for values in (found, expected):
        (weights * values).sum().backward()
    for head in HEADS:
        torch.testing.assert_close(leaves[head].grad, twins[head].grad)


@pytest.mark.parametrize(("groups", "count"), [(1, 0), (4, 1)])
def test_ten_targets_of_one_output_are_one_call(together: Calls, groups: int, count: int) -> None:
    """Not without groups: a function of the caller's need not know vmap."""
    objectives: list[Objective] = [MeanSquaredError(name=head, target=head) for head in HEADS]
    output, targets = torch.randn(B, 3, dtype=DOUBLE), _outputs(3)
    found = compute_group_losses(objectives, output, targets, groups)
    assert len(together) == count
    torch.testing.assert_close(found, _loop(objectives, output, targets, groups))
    two = compute_group_losses(objectives[:2], output, targets, groups)
    assert len(together) == count
    torch.testing.assert_close(two, found[:, :2])


@pytest.mark.parametrize("groups", [1, 2])
def test_settings_are_those_of_all(together: Calls, groups: int) -> None:
    outputs = _outputs()
    targets: dict[str, Tensor] = {head: torch.randint(2, (B,)) for head in HEADS}
    targets |= {"sex": torch.arange(B) % 3}
    objectives: list[Objective] = [
        TprGap(name=head, output=head, target=head, sensitive="sex", groups=3) for head in HEADS
    ]
    found = compute_group_losses(objectives, outputs, targets, groups)
    assert len(together) == 1
    torch.testing.assert_close(found, _loop(objectives, outputs, targets, groups))


class Peeking(CrossEntropy):
    """An objective of one's own that looks at its neighbour's head."""

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        own = super().loss(outputs, targets)
        return own + torch.stack([out.mean() for out in outputs.values()]).sum()


def _different(kind: str) -> tuple[list[Objective], dict[str, Tensor], dict[str, Tensor]]:
    """Objectives on ten heads that one call cannot give."""
    outputs = _outputs(CLASSES)
    targets = {head: torch.randint(CLASSES, (B,)) for head in HEADS}
    objectives = _heads()
    if kind == "own":
        objectives = [Peeking(name=head, output=head, target=head) for head in HEADS]
    elif kind == "one own":
        objectives[-1] = Peeking(name="last", output=HEADS[-1], target=HEADS[-1])
    elif kind == "other class":
        targets["point"] = torch.randn(B, CLASSES, dtype=DOUBLE)
        objectives[3] = MeanSquaredError(output=HEADS[3], target="point")
    elif kind == "other width":
        outputs[HEADS[4]] = torch.randn(B, CLASSES + 1, dtype=DOUBLE)
    elif kind == "other type":
        targets[HEADS[2]] = targets[HEADS[2]].to(torch.int32)
    elif kind == "other settings":
        outputs, targets = _outputs(), {head: torch.randint(2, (B,)) for head in HEADS}
        targets |= {"sex": torch.arange(B) % 2, "age": torch.arange(B) // 2 % 2}
        objectives = [
            TprGap(output=head, target=head, sensitive="age" if at == 5 else "sex")
            for at, head in enumerate(HEADS)
        ]
    return objectives, outputs, targets


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(
    "kind", ["own", "one own", "other class", "other width", "other type", "other settings"]
)
def test_what_is_not_alike_is_computed_apart(together: Calls, kind: str, groups: int) -> None:
    objectives, outputs, targets = _different(kind)
    found = compute_group_losses(objectives, outputs, targets, groups)
    assert len(together) == 0
    torch.testing.assert_close(found, _loop(objectives, outputs, targets, groups))
