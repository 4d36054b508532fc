"""What every objective promises."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inside import registered_in
from torch import Tensor

from paretocosmos import registry
from paretocosmos.errors import ConfigurationError
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.objectives import (
    CrossEntropy,
    GroupObjective,
    Objective,
    accuracy,
    fairness_objective,
    fairness_objectives,
    misclassification,
)
from paretocosmos.types import Metric

NAMES = registry.names("objectives")
B = 12
OUTPUTS = {"cross_entropy": (B, 4)}  # classes; the rest read one number per sample
STACK = 3


def _batch(name: str, *leading: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Outputs and every target an objective may want, in float64."""
    shape = OUTPUTS.get(name, (B,))
    outputs = torch.randn(*leading, *shape, dtype=torch.float64)
    targets = {
        "label": torch.randint(0, 2, (*leading, B)),
        "sensitive": torch.randint(0, 2, (*leading, B)),
    }
    # both groups have positives and negatives in every batch
    targets["label"][..., :8] = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0])
    targets["sensitive"][..., :8] = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1])
    return outputs, targets


@pytest.fixture(params=NAMES)
def objective(request: pytest.FixtureRequest, thing_in: Callable[[str, str], Any]) -> Objective:
    found = thing_in("objectives", request.param)()
    assert isinstance(found, Objective)
    return found


def test_there_are_objectives() -> None:
    assert {"binary_cross_entropy", "deo"} <= set(NAMES)


def test_it_is_named_after_its_file_unless_told(objective: Objective) -> None:
    assert objective.name in NAMES
    assert type(objective)(name="other").name == "other"


def test_loss_and_score_are_one_number_and_the_loss_has_a_gradient(objective: Objective) -> None:
    outputs, targets = _batch(objective.name)
    loss = objective.loss(outputs.requires_grad_(), targets)
    score = objective.score(outputs, targets)
    assert loss.shape == score.shape == ()
    assert loss.isfinite()
    assert score.isfinite()
    (gradient,) = torch.autograd.grad(loss, outputs)
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("verb", ["loss", "score"])
@pytest.mark.parametrize("weighted", [False, True])
def test_vmap_over_a_leading_axis_is_the_loop(
    objective: Objective, verb: str, weighted: bool
) -> None:
    function: Metric = getattr(objective, verb)
    outputs, targets = _batch(objective.name, STACK)
    if weighted:
        targets["weight"] = torch.rand(STACK, B, dtype=torch.float64)
    expected = torch.stack(
        [function(outputs[i], {name: t[i] for name, t in targets.items()}) for i in range(STACK)]
    )
    torch.testing.assert_close(torch.vmap(function)(outputs, targets), expected)
    # rays: several outputs against the same targets
    shared = {name: t[0] for name, t in targets.items()}
    swept = torch.vmap(function, in_dims=(0, None))(outputs, shared)
    torch.testing.assert_close(swept, torch.stack([function(out, shared) for out in outputs]))


def test_gradients_under_vmap_are_those_of_the_loop(objective: Objective) -> None:
    outputs, targets = _batch(objective.name, STACK)
    found = torch.vmap(torch.func.grad(objective.loss))(outputs, targets)
    for i in range(STACK):
        leaf = outputs[i].clone().requires_grad_()
        loss = objective.loss(leaf, {name: t[i] for name, t in targets.items()})
        torch.testing.assert_close(found[i], torch.autograd.grad(loss, leaf)[0])


@pytest.mark.parametrize("verb", ["loss", "score"])
def test_the_order_of_samples_does_not_matter(objective: Objective, verb: str) -> None:
    function: Metric = getattr(objective, verb)
    outputs, targets = _batch(objective.name)
    order = torch.randperm(B)
    shuffled = function(outputs[order], {name: t[order] for name, t in targets.items()})
    torch.testing.assert_close(shuffled, function(outputs, targets))


@pytest.mark.parametrize("verb", ["loss", "score"])
def test_an_integer_weight_is_a_repetition(objective: Objective, verb: str) -> None:
    function: Metric = getattr(objective, verb)
    outputs, targets = _batch(objective.name)
    weight = torch.arange(B) % 3 + (torch.arange(B) < 8)  # the rest of a split may be left out
    repeated = {name: t.repeat_interleave(weight, 0) for name, t in targets.items()}
    torch.testing.assert_close(
        function(outputs, {**targets, "weight": weight.double()}),
        function(outputs.repeat_interleave(weight, 0), repeated),
        check_dtype=False,
    )


def test_it_is_pure(objective: Objective) -> None:
    outputs, targets = _batch(objective.name)
    before = copy.deepcopy((outputs, targets, vars(objective)))
    first = (objective.loss(outputs, targets), objective.score(outputs, targets))
    again = (objective.loss(outputs, targets), objective.score(outputs, targets))
    assert first == again
    assert torch.equal(outputs, before[0])
    assert all(torch.equal(t, before[1][name]) for name, t in targets.items())
    assert vars(objective) == before[2]


def test_it_can_be_traced_without_reading_a_number_back(objective: Objective) -> None:
    """A captured step has no numbers on the host: fake tensors refuse to give any."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    outputs, targets = _batch(objective.name)
    with FakeTensorMode() as mode:
        fake = {name: mode.from_tensor(t) for name, t in targets.items()}
        assert objective.loss(mode.from_tensor(outputs), fake).shape == ()


def test_what_compares_groups_is_offered_and_explained(objective: Objective) -> None:
    """A file is enough: tables, estimators and the model card have no list of their own."""
    if not isinstance(objective, GroupObjective):
        return
    assert fairness_objectives(objective.fairness)[objective.name] is type(objective)
    assert objective.meaning
    assert not objective.meaning.endswith(".")
    assert type(objective)(groups=3).groups == 3
    # a prediction doubled in its unit: a gap of numbers is more, one of shares is not
    assert (objective.unit(2.0) > 1) is (objective.fairness == "numbers")


def test_a_new_file_that_compares_groups_is_found_by_all(tmp_path: Path) -> None:
    with registered_in("objectives", "cost_gap", "own_objective", "CostGap", tmp_path) as kind:
        assert fairness_objectives("classes")["cost_gap"] is kind
        assert fairness_objective("cost_gap", "classes", setting="`fairness`") is kind
        groups = np.arange(80) % 2
        model = ParetoClassifier(fairness="cost_gap", epochs=1, random_state=0)
        model.fit(groups[:, None], np.arange(80) // 2 % 2, sensitive=groups)
    assert model.front_.names[1] == "cost_gap"


@pytest.mark.parametrize("given", ["cost_gap", "error_gap", "os:system", CrossEntropy, 3])
def test_what_does_not_compare_classes_is_no_fairness_of_them(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="`fairness`"):
        fairness_objective(given, "classes", setting="`fairness`")


@pytest.mark.parametrize("metric", [accuracy, misclassification])
def test_metrics_can_be_vmapped_over_rays(metric: Metric) -> None:
    outputs, targets = _batch("binary_cross_entropy", STACK)
    shared = {name: t[0] for name, t in targets.items()}
    swept = torch.vmap(lambda out: metric(out, shared))(outputs)
    torch.testing.assert_close(swept, torch.stack([metric(out, shared) for out in outputs]))
