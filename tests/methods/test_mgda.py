"""MGDA against torchjd's, and against a quadratic programme on gradients normalised by hand."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor
from torchjd.aggregation import MGDA

from paretocosmos.errors import ConfigurationError
from paretocosmos.methods import Mgda, Normalisation, State
from paretocosmos.pareto.solvers import min_norm

Array = npt.NDArray[np.float64]
DOUBLE = torch.float64
SIZES = [2, 3, 5]
KINDS: list[Normalisation] = ["none", "l2", "loss", "loss+"]


def _case(objectives: int, seed: int) -> tuple[Tensor, Tensor]:
    """Losses over three decades, and gradients ``[J, P]`` that agree a little."""
    draw = torch.Generator().manual_seed(seed)
    losses = 10 ** (3 * torch.rand(objectives, generator=draw, dtype=DOUBLE) - 2)
    gradients = torch.randn(objectives, 12, generator=draw, dtype=DOUBLE)
    common = torch.randn(12, generator=draw, dtype=DOUBLE)
    return losses, losses.unsqueeze(1) * (gradients + 0.5 * common)


def _weights(method: Mgda, losses: Tensor, gradients: Tensor) -> Tensor:
    rays = torch.full_like(losses, 1 / losses.shape[-1])
    before = method.init(losses.shape[-1])
    weights, state = method.weights(losses, rays, lambda: gradients @ gradients.mT, before)
    assert 0 <= float(state["gap"]) < 1e-9  # the certificate of all of them
    return weights


def _by_hand(kind: Normalisation, losses: Array, gradients: Array) -> Array:
    """Sener and Koltun's normalised gradients, written out."""
    rows = []
    for loss, gradient in zip(losses, gradients, strict=True):
        length = float(np.sqrt((gradient**2).sum()))
        by = {"none": 1.0, "l2": length, "loss": loss, "loss+": loss * length}[kind]
        rows.append(gradient / by)
    return np.stack(rows)


@pytest.mark.parametrize("objectives", SIZES)
@pytest.mark.parametrize("seed", [1, 2])
def test_without_normalisation_it_is_torchjds(objectives: int, seed: int) -> None:
    losses, gradients = _case(objectives, seed)
    weights = _weights(Mgda(normalisation="none"), losses, gradients)
    # theirs steps towards the solution and stops near it: ours may only be shorter
    theirs = MGDA(epsilon=1e-7, max_iters=20_000)(gradients)
    ours = weights @ gradients
    size = float(gradients.norm(dim=1).max())
    assert float(ours.norm()) <= float(theirs.norm()) + 1e-9 * size
    torch.testing.assert_close(ours / size, theirs / size, rtol=0, atol=2e-3)


@pytest.mark.parametrize("objectives", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_normalisation_is_the_shortest_vector_of_normalised_gradients(
    kind: Normalisation, objectives: int, shortest: Callable[[Array], Array]
) -> None:
    method = Mgda(normalisation=kind)
    for seed in range(4):
        losses, gradients = _case(objectives, seed)
        weights = _weights(method, losses, gradients)
        expected = shortest(_by_hand(kind, losses.numpy(), gradients.numpy()))
        np.testing.assert_allclose(weights.numpy(), expected, rtol=0, atol=1e-5)
        assert float(weights.sum()) == pytest.approx(1)


def test_the_step_raises_no_loss_to_first_order() -> None:
    for seed in range(5):
        losses, gradients = _case(3, seed)
        weights = _weights(Mgda(normalisation="none"), losses, gradients)
        slopes = gradients @ (weights @ gradients)
        assert (slopes >= -1e-9 * gradients.square().sum(dim=1).max()).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objectives", SIZES)
def test_a_gradient_of_zero_takes_all_the_weight(kind: Normalisation, objectives: int) -> None:
    """The shortest vector of the hull is then zero: the network is stationary for that loss."""
    losses, gradients = _case(objectives, 3)
    gradients[1] = 0
    weights = _weights(Mgda(normalisation=kind), losses, gradients)
    expected = torch.zeros(objectives, dtype=DOUBLE)
    expected[1] = 1
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loss_of_zero_gives_finite_weights(kind: Normalisation) -> None:
    losses, gradients = _case(3, 3)
    losses[0] = 0
    for gradient in (gradients[0].clone(), torch.zeros(12, dtype=DOUBLE)):
        gradients[0] = gradient
        weights = _weights(Mgda(normalisation=kind), losses, gradients)
        assert weights.isfinite().all()
        assert float(weights.sum()) == pytest.approx(1)


def test_the_largest_certificate_is_kept_for_each_network() -> None:
    """Against the solver's own, of every step and group."""
    method, networks = Mgda(normalisation="none"), 2
    state: State = {name: torch.stack([v] * networks) for name, v in method.init(5).items()}
    largest = [0.0] * networks
    for step in range(4):
        cases = [_case(5, 10 * step + at) for at in range(networks * 3)]
        losses, gradients = (
            torch.stack(part).unflatten(0, (networks, 3)) for part in zip(*cases, strict=True)
        )
        gram = gradients @ gradients.mT
        _, state = method.weights(losses, torch.full_like(losses, 0.2), lambda g=gram: g, state)  # type: ignore[misc]
        own = min_norm(gram).gap.amax(dim=-1).tolist()
        largest = [max(pair) for pair in zip(largest, own, strict=True)]
        assert state["gap"].tolist() == pytest.approx(largest, rel=1e-6)
    assert all(0 < gap < 1e-9 for gap in largest)
    assert method.report({"gap": state["gap"][1]}) == {"largest_gap": float(state["gap"][1])}
    _, after = method.weights(
        losses, torch.full_like(losses, 0.2), lambda: gram, {"gap": torch.tensor([1.0, 0.0])}
    )
    assert after["gap"].tolist() == pytest.approx([1.0, own[1]], rel=1e-6)  # never forgotten


def test_its_one_ray_is_the_centre() -> None:
    assert Mgda().fixed_rays(4).tolist() == [[0.25] * 4]
    assert Mgda().normalisation == "loss+"  # the paper's
    assert Mgda.over == "shared"


def test_an_unknown_normalisation_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"`l3`.*`l2`"):
        Mgda(normalisation="l3")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_divide_by_negative_losses(kind: Normalisation) -> None:
    losses = torch.tensor([0.5, -1.5])
    if kind in ("none", "l2"):
        Mgda(normalisation=kind).check(losses, ("a", "b"))
        return
    with pytest.raises(ConfigurationError, match=r"-1\.5 for `b` .*`l2`"):
        Mgda(normalisation=kind).check(losses, ("a", "b"))
