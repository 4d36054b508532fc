"""TorchJD's aggregators and scalarizers as methods, against TorchJD itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch
import torchjd
from torchjd import aggregation, scalarization

from paretocosmos import fit, load_run, registry
from paretocosmos.errors import ConfigurationError, MissingExtraError
from paretocosmos.methods import Method
from paretocosmos.methods import torchjd as adapter
from paretocosmos.methods.torchjd import REG_EPS, project_onto_dual_cone
from paretocosmos.pareto import cosmos_weights

NEEDED: Mapping[str, dict[str, Any]] = {
    "CAGrad": {"c": 0.4},
    "COSMOS": {"lambda_": 2.0},
    "FairGrad": {"fairgrad_alpha": 1.0},
    "PBI": {"theta": 5.0},
    "STCH": {"mu": 0.1},
}
J = 3


def _built(part: str, **settings: Any) -> Method:
    made = registry.find("methods", f"torchjd:{part}")(**(NEEDED.get(part, {}) | settings))
    assert isinstance(made, Method)
    return made


def _gradients(seed: int = 0) -> torch.Tensor:
    return torch.randn(J, 12, generator=torch.Generator().manual_seed(seed))


def _weights(method: Method, losses: torch.Tensor, ray: torch.Tensor) -> torch.Tensor:
    gradients = _gradients()
    return method.weights(losses, ray, lambda: gradients @ gradients.mT, method.init(J))[0]


LOSSES, RAY = torch.tensor([0.5, 2.0, 1.0]), torch.tensor([0.2, 0.5, 0.3])


@pytest.mark.parametrize("part", ["MGDA", "IMTLG", "CAGrad", "FairGrad"])
def test_an_aggregators_weights_are_multiplied_by_the_ray(part: str) -> None:
    """At equal weights the step is the aggregation of the Jacobian."""
    given = {"CAGrad": {"c": 0.4}, "FairGrad": {"alpha": 1.0}}.get(part, {})
    expected = getattr(aggregation, part)(**given)(_gradients())
    method = _built(part)
    even = _weights(method, LOSSES, torch.full((J,), 1 / J))
    torch.testing.assert_close(even @ _gradients(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(_weights(method, LOSSES, RAY), J * RAY * even)


@pytest.mark.parametrize("part", ["UPGrad", "DualProj"])
def test_a_preference_of_theirs_is_the_ray(part: str) -> None:
    """The sum of r times each gradient's projection, or the projection of the sum, by a solver."""
    gradients = _gradients().double().numpy()
    matrix = gradients @ gradients.T
    matrix = matrix / np.trace(matrix) + REG_EPS * np.eye(J)
    rows = np.diag(RAY) if part == "UPGrad" else RAY.numpy()[None]
    expected = np.zeros(J)
    solver: Any = cp
    for row in rows:
        v = solver.Variable(J)
        length = solver.sum_squares(np.linalg.cholesky(matrix).T @ v)
        solver.Problem(solver.Minimize(length), [v >= row]).solve()
        expected += v.value
    found = _weights(_built(part), LOSSES, RAY)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    step = found.double().numpy() @ gradients
    assert (gradients @ step > -1e-3).all()  # no loss rises


@pytest.mark.parametrize("objectives", [2, 4, 7])
def test_a_projection_is_optimal(objectives: int) -> None:
    """By the conditions of Karush, Kuhn and Tucker, also where gradients depend on each other."""
    generator = torch.Generator().manual_seed(objectives)
    for size in (2, 20):
        gradients = torch.randn(objectives, size, generator=generator).double()
        rows = torch.rand(5, objectives, generator=generator).double()
        gram = gradients @ gradients.mT
        found = project_onto_dual_cone(rows, gram)
        pull = found @ (gram / gram.trace() + REG_EPS * torch.eye(objectives))
        assert (found >= rows).all()
        assert (pull >= -1e-9).all()
        torch.testing.assert_close((found - rows) * pull, torch.zeros_like(pull), atol=1e-8, rtol=0)


def test_aligned_mtl_takes_the_ray_as_its_preference() -> None:
    expected = aggregation.AlignedMTL(pref_vector=RAY)(_gradients())
    found = _weights(_built("AlignedMTL"), LOSSES, RAY) @ _gradients()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_scalarizers_weights_are_its_gradient() -> None:
    found = _weights(_built("COSMOS"), LOSSES, RAY)
    torch.testing.assert_close(found, cosmos_weights(LOSSES, RAY, penalty=2.0))
    torch.testing.assert_close(_weights(_built("Mean"), LOSSES, RAY), RAY)
    for part, given in (("STCH", {"mu": 0.1}), ("PBI", {"theta": 5.0})):
        leaf = LOSSES.clone().requires_grad_()
        getattr(scalarization, part)(**given, weights=RAY)(leaf).backward()
        torch.testing.assert_close(_weights(_built(part), LOSSES, RAY), leaf.grad)


@pytest.mark.parametrize("part", adapter.list_usable_classes())
def test_all_that_are_accepted_weigh_groups_and_stacks(part: str) -> None:
    method = _built(part)
    losses, gradients = torch.rand(2, 4, J) + 0.1, torch.randn(2, 4, J, 9)
    rays = method.sample(J, 8, torch.Generator().manual_seed(0)).reshape(2, 4, J)
    states = {name: torch.stack([value] * 2) for name, value in method.init(J).items()}
    gram = gradients @ gradients.mT
    before = torch.get_rng_state()
    weights, after = method.weights(losses, rays, lambda: gram, states)
    again, _ = method.weights(losses, rays, lambda: gram, states)
    assert torch.equal(weights, again)  # also where numbers are drawn
    assert torch.equal(torch.get_rng_state(), before)
    assert weights.shape == losses.shape
    assert weights.isfinite().all()
    assert after["steps"].tolist() == [1, 1]


def test_what_is_accepted_is_listed() -> None:
    """Of all that TorchJD exports, what works from a Gram matrix or the losses, without a state."""
    assert {"UPGrad", "MGDA", "CAGrad", "PCGrad", "COSMOS", "STCH"} <= set(
        adapter.list_usable_classes()
    )
    refused = ("NashMTL", "GradVac", "FAMO", "ConFIG", "GradDrop", "TrimmedMean", "Constant")
    assert set(adapter.list_usable_classes()).isdisjoint(refused)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("ConFIG", r"Jacobian.*UPGrad"),
        ("GradDrop", "Jacobian"),
        ("TrimmedMean", "Jacobian"),
        ("NashMTL", "state between steps"),
        ("FAMO", "state between steps"),
        ("Constant", "fixed weights"),
        ("Krum", "of workers"),
        ("Aggregator", "base class"),
        ("UPGradWeighting", "neither an aggregator nor"),
        ("UpGrad", "did you mean `UPGrad`"),
    ],
)
def test_what_cannot_be_a_method_is_refused(part: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        registry.find("methods", f"torchjd:{part}")


def test_a_setting_without_a_default_is_asked_for() -> None:
    with pytest.raises(ConfigurationError, match=r"`torchjd:CAGrad` needs `c`"):
        registry.find("methods", "torchjd:CAGrad")()
    with pytest.raises(ConfigurationError, match=r"`torchjd:CAGrad` cannot be used.*-1"):
        registry.find("methods", "torchjd:CAGrad")(c=-1.0)


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert torchjd is not None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'`torchjd:UPGrad`.*pip install "'):
        adapter.get_class("UPGrad")


def test_a_run_is_trained_and_read_again(tmp_path: Path) -> None:
    run = fit("toy_convex", method="torchjd:UPGrad", epochs=2, engine="eager", out=tmp_path / "run")
    again = load_run(tmp_path / "run")  # without `trust`: the list is this package's
    assert again.front == run.front
    assert again.record["method"]["name"] == "torchjd:UPGrad"
