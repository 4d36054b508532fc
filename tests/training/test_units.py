"""Seven losses of sizes from 1 to 1,000: each obeys its weight, and no unit changes the front."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from paretocosmos import Front, Problem, evaluate, fit
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.pareto.metrics import monotonicity, normalised_hypervolume
from paretocosmos.problems import Split
from paretocosmos.runs import Run
from paretocosmos.types import Batch, Outputs, Targets

J = 7
SIZES = np.geomspace(1, 1000, J)


class InUnit(MeanSquaredError):  # noqa: N818
    """A mean of squares in some unit."""

    traceable = True

    def __init__(self, factor: float, *, name: str) -> None:
        super().__init__(name=name, target=name)
        self.factor = factor

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        return self.factor * super().loss(outputs, targets)


@dataclass(frozen=True, kw_only=True, eq=False)
class Apart(Problem):
    """Seven targets, each as far from every other: its own number is larger by 1 than all others'.

    Weights w have their smallest sum of losses where the numbers are larger by w, and the losses
    there are (|w|² - 2 w_j + 1) / 7, and the noise.
    """

    def split(self, name: Split) -> Batch:
        draw = torch.Generator().manual_seed(len(name))
        x = torch.randn(400, 4, generator=draw)
        base = (torch.sin(x[:, 0]) + x[:, 1])[:, None].expand(-1, J) / 5
        noise = 0.05 * torch.randn(J, 400, J, generator=draw)
        own = {f"l{j}": base + torch.eye(J)[j] + noise[j] for j in range(J)}
        return Batch(x, own)


def _problem(sizes: np.ndarray) -> Apart:
    objectives = tuple(InUnit(float(size), name=f"l{j}") for j, size in enumerate(sizes))
    return Apart(
        name="apart",
        objectives=objectives,
        reference=tuple(2.0 * float(size) for size in sizes),
        input_shape=(4,),
        outputs=J,
    )


def _trained(sizes: np.ndarray, out: Path, epochs: int, method: str | None = None) -> Run:
    return fit(_problem(sizes), method=method, epochs=epochs, out=out, device="cpu")


def _plain(run: Run, sizes: np.ndarray) -> Front:
    """The front in units of 1."""
    return dataclasses.replace(
        run.front, values=run.front.values / sizes, reference=np.full(J, 2.0)
    )


@pytest.mark.system
def test_more_weight_on_any_of_seven_losses_lowers_it(tmp_path: Path) -> None:
    run = _trained(SIZES, tmp_path / "run", 30)
    for j in range(J):
        corner = torch.eye(J)[j]
        others = (1 - corner) / (J - 1)
        rays = others + torch.linspace(0, 1, 25)[:, None] * (corner - others)
        own = evaluate(run.model, _problem(SIZES), rays=rays)
        assert monotonicity(own)[j] >= 0.9  # measured: 0.998 at least


@pytest.mark.system
def test_seven_losses_weighed_by_a_sum_lie_on_the_exact_front(tmp_path: Path) -> None:
    # over all of the simplex the others' weights tell too: the order is that of the exact front,
    # which is known for a weighted sum
    front = _plain(_trained(SIZES, tmp_path / "run", 30, "linear"), SIZES)
    weights = front.rays
    exact = ((weights**2).sum(axis=1, keepdims=True) - 2 * weights + 1) / J + 0.05**2
    assert np.abs(front.values - exact).mean() < 0.05 * np.ptp(exact)
    known = monotonicity(dataclasses.replace(front, values=exact))
    np.testing.assert_allclose(monotonicity(front), known, atol=0.15)


@pytest.mark.system
def test_no_unit_changes_the_front(tmp_path: Path) -> None:
    units = {
        "as they are": SIZES,
        "all larger": SIZES * 1000,
        "all smaller": SIZES / 1000,
        "one larger": SIZES * [1000, *[1] * (J - 1)],
        "one smaller": SIZES * [*[1] * (J - 1), 0.001],
    }
    runs = {name: _trained(sizes, tmp_path / name, 4) for name, sizes in units.items()}
    fronts = [_plain(run, units[name]) for name, run in runs.items()]
    box = (np.zeros(J), np.full(J, 0.5))
    reached = [normalised_hypervolume(front, box) for front in fronts]
    assert reached == pytest.approx([reached[0]] * len(units), rel=0.02)
    assert reached[0] > 0.02  # a front, not nothing: that of the exact one is 0.11
    # and its hypervolume is what was selected by, in every unit
    volumes = [run.hypervolume / np.prod(units[name]) for name, run in runs.items()]
    assert volumes == pytest.approx([volumes[0]] * len(units), rel=0.02)
