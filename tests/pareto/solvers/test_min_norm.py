import math
from typing import Any

import cvxpy
import numpy as np
import pytest
import torch
from tests.pareto.solvers.conftest import Gradients, is_on_simplex
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto.solvers import min_norm

cp: Any = cvxpy  # its names are not annotated
FAMILIES = [
    "full rank",
    "rank 1",
    "rank 2",
    "rank 3",
    "zero gradient",
    "all zero",
    "equal",
    "opposite",
    "positive",
    "nearly collinear 1e-2",
    "nearly collinear 1e-6",
    "nearly collinear 1e-12",
    "lengths 1e-8 to 1e8",
    "rank 1, lengths 1e-8 to 1e8",
    "matrices 1e-16 to 1e16",
]
SIZES = [2, 3, 4, 5, 6, 7, 8, 10, 16]


def _gram(gradients: Tensor) -> Tensor:
    return gradients @ gradients.mT


def _relative(gram: Tensor) -> np.ndarray:
    """Divided by the trace."""
    trace = gram.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    return (gram / torch.where(trace > 0, trace, 1.0)[..., None, None]).numpy()


def _value(scaled: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("...i,...ij,...j->...", weights, scaled, weights))


def _by_cvxpy(vectors: np.ndarray) -> np.ndarray:
    """The best weights for each set of vectors ``[count, n, size]``, as a quadratic programme."""
    _, n, size = vectors.shape
    parameter = cp.Parameter((n, size))
    weights = cp.Variable(n, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(parameter.T @ weights)), [cp.sum(weights) == 1])
    found = []
    for each in vectors:
        parameter.value = each / max(np.linalg.norm(each), 1e-300)
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        assert weights.value is not None
        solution = np.maximum(weights.value, 0)
        found.append(solution / solution.sum())
    return np.array(found)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [2, 3, 4, 6, 7, 10])
def test_as_short_as_the_quadratic_programme_of_cvxpy(
    gradients: Gradients, family: str, n: int
) -> None:
    vectors = gradients(family, 5, n, n)
    gram = _gram(vectors)
    found = min_norm(gram)
    scaled = _relative(gram)
    ours = _value(scaled, found.weights.numpy())
    theirs = _value(scaled, _by_cvxpy(vectors.numpy()))
    assert (ours <= theirs + 1e-10).all()
    assert (ours >= theirs - 1e-8).all()  # theirs is not exact


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", SIZES)
def test_the_duality_gap_is_closed_on_every_family(
    gradients: Gradients, family: str, n: int
) -> None:
    gram = _gram(gradients(family, 400, n, 100 + n))
    found = min_norm(gram)
    assert found.weights.dtype == found.gap.dtype == torch.float64
    assert is_on_simplex(found.weights)
    scaled, weights = _relative(gram), found.weights.numpy()
    along = np.einsum("bij,bj->bi", scaled, weights)
    gap = (along * weights).sum(axis=1) - along.min(axis=1)
    # the matrix itself is only known to 1e-16, which the gap sees as 1e-12 for very short vectors
    tolerance = 1e-14 if n == 2 and "lengths" not in family else 1e-10
    assert gap.max() <= tolerance
    np.testing.assert_allclose(found.gap.numpy(), gap, atol=1e-14)


def _pareto_mtl(seed: int, count: int) -> Tensor:
    """Coefficients ``[count, n, 2]`` of e_1, e_2 and the active w_j = u_j - u_k, for one n."""
    generator = np.random.default_rng(seed)
    angles = np.linspace(0.1, math.pi / 2 - 0.1, 5)
    units = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found: dict[int, list[np.ndarray]] = {}
    while max(map(len, found.values()), default=0) < count:
        losses = generator.uniform(0.01, 1, 2)
        w = units - units[generator.integers(5)]
        active = w[w @ losses > 0]
        found.setdefault(2 + len(active), []).append(np.concatenate([np.eye(2), active]))
    del found[2]
    return torch.tensor(np.array(max(found.values(), key=len)))


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "rank 3"])
def test_the_hulls_of_pareto_mtl_lie_between_two_vectors(gradients: Gradients, family: str) -> None:
    seed = FAMILIES.index(family)
    coefficients = _pareto_mtl(seed, 20)
    vectors = coefficients @ gradients(family, len(coefficients), 2, seed)
    gram = _gram(vectors)
    found = min_norm(gram, plane=True)
    assert is_on_simplex(found.weights)
    assert float(found.gap.max()) <= 1e-10  # again the very short vectors
    ours = _value(_relative(gram), found.weights.numpy())
    theirs = _value(_relative(gram), _by_cvxpy(vectors.numpy()))
    assert (ours <= theirs + 1e-10).all()
    assert (ours >= theirs - 1e-8).all()
    general = min_norm(gram)
    np.testing.assert_allclose(ours, _value(_relative(gram), general.weights.numpy()), atol=1e-10)


@pytest.mark.parametrize("n", [3, 4, 8])
def test_the_gap_bounds_the_distance_to_the_optimum(gradients: Gradients, n: int) -> None:
    # a promise that is broken gives weights that are not the best
    vectors = gradients("full rank", 500, n, 3)
    gram = _gram(vectors)
    rough, best = min_norm(gram, plane=True), min_norm(gram)
    trace = gram.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    away = torch.einsum("bi,bid->bd", rough.weights - best.weights, vectors)
    assert (away.square().sum(dim=-1) / trace <= rough.gap + 1e-12).all()
    scaled = _relative(gram)
    excess = _value(scaled, rough.weights.numpy()) - _value(scaled, best.weights.numpy())
    assert (excess / 2 <= rough.gap.numpy() + 1e-12).all()
    assert (rough.gap > 1e-3).double().mean() > 0.5


def test_one_vector_has_all_the_weight() -> None:
    found = min_norm(torch.tensor([[[2.0]], [[0.0]]]))
    assert found.weights.tolist() == [[1.0], [1.0]]
    assert found.gap.tolist() == [0.0, 0.0]


def test_two_equal_vectors_share_the_weight() -> None:
    assert min_norm(torch.ones(2, 2)).weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("n", [2, 4, 7])
@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-310, 1e-300, 1e-16, 1e16, 1e300])
def test_always_finite(n: int, scale: float, plane: bool) -> None:
    vectors = torch.tensor([[1.0, i % 3 - 1.0] for i in range(n)], dtype=torch.float64)
    found = min_norm(_gram(vectors) * scale, plane=plane)
    assert is_on_simplex(found.weights)
    assert found.gap.isfinite()
    if scale == 0:
        assert float(found.gap) == 0


@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("n", [2, 3, 6, 7])
def test_leading_axes_are_independent_and_inputs_untouched(
    gradients: Gradients, n: int, plane: bool
) -> None:
    gram = _gram(gradients("full rank", 6, n, 1)).reshape(2, 3, n, n)
    before = gram.clone()
    whole = min_norm(gram, plane=plane)
    assert whole.weights.shape == (2, 3, n)
    assert whole.gap.shape == (2, 3)
    one = min_norm(gram[1, 2], plane=plane)
    torch.testing.assert_close(whole.weights[1, 2], one.weights, rtol=0, atol=1e-9)
    assert torch.equal(gram, before)


@pytest.mark.system
@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("n", [2, 3, 6, 7])
def test_a_recording_works_for_other_values(gradients: Gradients, n: int, plane: bool) -> None:
    def call(gram: Tensor) -> tuple[Tensor, Tensor]:
        return tuple(min_norm(gram, plane=plane))  # type: ignore[return-value]

    recorded = make_fx(call)(torch.zeros(8, n, n))
    for family in ("full rank", "rank 1", "opposite"):
        gram = _gram(gradients(family, 8, n, 2)).float()
        for replayed, direct in zip(recorded(gram), call(gram), strict=True):
            torch.testing.assert_close(replayed, direct, rtol=0, atol=0)
    assert min_norm(torch.zeros(8, n, n, device="meta"), plane=plane).weights.shape == (8, n)


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_computed_in_float64_whatever_comes_in(
    gradients: Gradients, n: int, dtype: torch.dtype
) -> None:
    gram = _gram(gradients("full rank", 20, n, 4)).to(dtype)
    found = min_norm(gram)
    assert found.weights.dtype == torch.float64
    torch.testing.assert_close(found.weights, min_norm(gram.double()).weights, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 0)])
def test_only_square_matrices(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match="`gram` must hold square matrices"):
        min_norm(torch.zeros(shape))
