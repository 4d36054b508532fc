"""Tilt: the closed form against a minimiser, and rays one at a time, in groups and all at once."""

import pytest
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from paretocosmos.backbones.mlp import Mlp
from paretocosmos.conditioning._tilted import ANSWER, OF_NO, OF_YES, likely, tilted
from paretocosmos.conditioning.tilt import Tilt
from paretocosmos.errors import ConfigurationError


def _model(groups: int = 3) -> Tilt:
    torch.manual_seed(0)
    backbone = Mlp((5,), Tilt.outputs_for(1, {"sensitive_groups": groups}))
    model = Tilt(backbone, 2, sensitive_groups=groups).double().eval()
    model.follow(torch.randn(9, 2, groups).cumsum(dim=0).double())
    return model


@pytest.mark.parametrize("probability", [0.003, 0.3, 0.5, 0.92])
@pytest.mark.parametrize("against", [-40.0, -1.0, -0.2, 0.0, 1e-7, 0.7, 1.0, 3.0, 90.0])
def test_the_closed_form_is_the_minimum(probability: float, against: float) -> None:
    def cost(q: float) -> float:
        p, answer = probability, torch.tensor(q, dtype=torch.float64)
        return float(-p * answer.log() - (1 - p) * (1 - answer).log() + against * answer)

    best = minimize_scalar(
        cost, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10}
    )
    answer = torch.tensor(probability, dtype=torch.float64).logit()
    found = tilted(answer, torch.tensor(against, dtype=torch.float64)).sigmoid()
    assert float(found) == pytest.approx(best.x, rel=1e-4, abs=1e-6)


def test_extremes_in_single_precision_are_numbers() -> None:
    answers, against = torch.meshgrid(
        torch.tensor([-90.0, -20.0, 0.0, 20.0, 90.0]),
        torch.tensor([-1e4, -1.0, 0.0, 1.0, 1e4]),
        indexing="ij",
    )
    found = tilted(answers, against)
    assert found.isfinite().all()
    assert (found.diff(dim=1) <= 1e-4).all()  # what costs more is answered less
    torch.testing.assert_close(found[:, 2], answers[:, 2])


def test_rays_in_groups_and_all_at_once_are_rays_one_at_a_time() -> None:
    model, inputs = _model(), torch.randn(12, 5, dtype=torch.float64)
    rays = torch.tensor([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]], dtype=torch.float64)
    alone = torch.stack([model(inputs, ray) for ray in rays])
    assert alone.shape == (3, 12, 1)
    torch.testing.assert_close(model.each_ray(inputs, rays), alone)
    grouped = torch.cat([alone[k, 4 * k : 4 * k + 4] for k in range(3)])
    torch.testing.assert_close(model(inputs, rays), grouped)
    own = rays.repeat_interleave(4, dim=0)
    torch.testing.assert_close(model(inputs, own), grouped)


def test_no_weight_on_the_gap_is_the_network_itself() -> None:
    model, inputs = _model(), torch.randn(12, 5, dtype=torch.float64)
    assert model.path is not None
    model.path[0] = 0
    answer, joint = likely(model.call(inputs))
    torch.testing.assert_close(model(inputs, torch.tensor([1.0, 0.0])).squeeze(-1), answer)
    torch.testing.assert_close(joint.sum(dim=(1, 2)), torch.ones(12, dtype=torch.float64))
    torch.testing.assert_close(joint[:, 1].sum(dim=-1), answer.sigmoid())


def test_in_training_it_gives_what_it_learns() -> None:
    model = _model(groups=4).train()
    found = model(torch.randn(6, 5, dtype=torch.float64), torch.tensor([0.5, 0.5]))
    assert not isinstance(found, Tensor)
    shapes = {name: tuple(part.shape) for name, part in found.items()}
    assert shapes == {ANSWER: (6, 1), OF_NO: (6, 4), OF_YES: (6, 4)}


def test_its_path_is_loaded_with_its_weights() -> None:
    model, inputs = _model(), torch.randn(3, 5, dtype=torch.float64)
    other = Tilt(Mlp((5,), Tilt.outputs_for(1, {"sensitive_groups": 3})), 2, sensitive_groups=3)
    other.double().eval().load_state_dict(model.state_dict())
    ray = torch.tensor([0.4, 0.6], dtype=torch.float64)
    torch.testing.assert_close(other(inputs, ray), model(inputs, ray))


def test_other_problems_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="found 3 objectives"):
        Tilt(Mlp((5,), 1), 3)
    with pytest.raises(ConfigurationError, match="one output; found 4"):
        Tilt.outputs_for(4, {})
