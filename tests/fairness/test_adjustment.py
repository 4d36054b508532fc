"""The closed form against a minimiser; rays one at a time, in groups and all at once."""

import pytest
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from paretocosmos.errors import ConfigurationError
from paretocosmos.fairness import (
    AdjustedNetwork,
    FairnessAdjustment,
    adjusted_logits,
    joint_probabilities,
)
from paretocosmos.nn.backbones import Mlp
from paretocosmos.objectives import DemographicParity

ROWS = 12


def make_network(groups: int = 3) -> AdjustedNetwork:
    torch.manual_seed(0)
    backbone = Mlp((5,), AdjustedNetwork.outputs_for(1, {"sensitive_groups": groups}))
    model = AdjustedNetwork(backbone, 2, sensitive_groups=groups).double()
    model.adjustment.multiplier_path = torch.randn(9, 2, groups).cumsum(dim=0).double()
    return model


@pytest.fixture
def inputs() -> Tensor:
    return torch.randn(ROWS, 5, dtype=torch.float64)


@pytest.mark.parametrize("probability", [0.003, 0.3, 0.5, 0.92])
@pytest.mark.parametrize("cost", [-40.0, -1.0, -0.2, 0.0, 1e-7, 0.7, 1.0, 3.0, 90.0])
def test_the_closed_form_is_the_minimum(probability: float, cost: float) -> None:
    def loss(q: float) -> float:
        p, positive = probability, torch.tensor(q, dtype=torch.float64)
        return float(-p * positive.log() - (1 - p) * (1 - positive).log() + cost * positive)

    best = minimize_scalar(
        loss, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10}
    )
    label_logit = torch.tensor(probability, dtype=torch.float64).logit()
    q = adjusted_logits(label_logit, torch.tensor(cost, dtype=torch.float64)).sigmoid()
    assert float(q) == pytest.approx(best.x, rel=1e-4, abs=1e-6)


def test_extremes_in_single_precision_are_numbers() -> None:
    label_logits, costs = torch.meshgrid(
        torch.tensor([-90.0, -20.0, 0.0, 20.0, 90.0]),
        torch.tensor([-1e4, -1.0, 0.0, 1.0, 1e4]),
        indexing="ij",
    )
    adjusted = adjusted_logits(label_logits, costs)
    assert adjusted.isfinite().all()
    assert (adjusted.diff(dim=1) <= 1e-4).all()  # higher costs, fewer positive decisions
    torch.testing.assert_close(adjusted[:, 2], label_logits[:, 2])


def test_joint_probabilities_add_up() -> None:
    label_logits, group_logits = torch.randn(ROWS), torch.randn(ROWS, 2, 3)
    joint = joint_probabilities(label_logits, group_logits)
    torch.testing.assert_close(joint.sum(dim=(1, 2)), torch.ones(ROWS))
    torch.testing.assert_close(joint[:, 1].sum(dim=-1), label_logits.sigmoid())
    torch.testing.assert_close(
        joint[:, 0] / joint[:, 0].sum(-1, keepdim=True), group_logits[:, 0].softmax(-1)
    )


def test_an_adjustment_takes_groups_that_are_known_and_scores_of_any_classifier() -> None:
    rows, generator = 2000, torch.Generator().manual_seed(1)
    groups = torch.randint(0, 2, (rows,), generator=generator)
    scores = torch.randn(rows, generator=generator) + groups  # of somebody else's classifier
    labels = (torch.rand(rows, generator=generator) < scores.sigmoid()).double()
    known = torch.nn.functional.one_hot(groups, 2).double()
    classes = torch.stack([(-scores).sigmoid(), scores.sigmoid()], dim=-1).double()
    joint = classes.unsqueeze(-1) * known.unsqueeze(1)
    adjustment = FairnessAdjustment(groups=2).double()
    gap, targets = DemographicParity(), {"label": labels, "sensitive": groups}
    adjustment.fit(scores.double(), joint, targets, gap)
    weights = torch.linspace(0, 1, 5)
    rays = torch.stack([1 - weights, weights], dim=1)
    adjusted = adjustment.each_ray(scores.double(), joint, rays)
    gaps = [float(gap.score(logits.unsqueeze(-1), targets)) for logits in adjusted]
    torch.testing.assert_close(adjusted[0], scores.double())
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.2
    assert gaps[2] == pytest.approx(gaps[0] / 2, abs=0.02)
    assert gaps[-1] < 0.002


def test_rays_in_groups_and_all_at_once_are_rays_one_at_a_time(inputs: Tensor) -> None:
    model = make_network()
    rays = torch.tensor([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]], dtype=torch.float64)
    alone = torch.stack([model(inputs, ray) for ray in rays])
    assert alone.shape == (3, ROWS, 1)
    torch.testing.assert_close(model.each_ray(inputs, rays), alone)
    grouped = torch.cat([alone[k, 4 * k : 4 * k + 4] for k in range(3)])
    torch.testing.assert_close(model(inputs, rays), grouped)
    torch.testing.assert_close(model(inputs, rays.repeat_interleave(4, dim=0)), grouped)


def test_no_weight_on_the_gap_is_the_label_head(inputs: Tensor) -> None:
    model = make_network()
    model.adjustment.multiplier_path[0] = 0
    heads = model.call(inputs)
    assert not isinstance(heads, Tensor)
    torch.testing.assert_close(model(inputs, torch.tensor([1.0, 0.0])), heads["answer"])


def test_outputs_are_the_same_in_training_and_in_evaluation_mode(inputs: Tensor) -> None:
    model, ray = make_network(), torch.tensor([0.5, 0.5])
    torch.testing.assert_close(model.train()(inputs, ray), model.eval()(inputs, ray))


def test_multipliers_are_loaded_with_the_weights(inputs: Tensor) -> None:
    model = make_network()
    other = AdjustedNetwork(model.backbone, 2, sensitive_groups=3)
    other.load_state_dict(model.state_dict())
    ray = torch.tensor([0.4, 0.6], dtype=torch.float64)
    torch.testing.assert_close(
        other.double()(inputs, ray), model(inputs, ray), rtol=1e-5, atol=1e-5
    )


def test_other_problems_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="3 objectives"):
        AdjustedNetwork(Mlp((5,), 1), 3)
    with pytest.raises(ConfigurationError, match="one output"):
        AdjustedNetwork.outputs_for(4, {})
