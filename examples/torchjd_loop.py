"""TorchJD both ways: its aggregator steers a conditioned network, and is a method of `fit`.

Two targets lie 2 apart, and one answer must do for both. An answer between them has the losses
4 (1 - r)^2 and 4 r^2 where r is the first one's weight, so every preference has a known answer.

First in your own loop: every step draws a ray and weights the losses by it, TorchJD's `backward`
computes the Jacobian, and CAGrad the step. Then the same aggregator by its name in `fit`.

Needs `pip install "torchjd[cagrad]"`. Half a minute on a laptop.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torchjd.aggregation import CAGrad
from torchjd.autojac import backward, jac_to_grad

from paretocosmos import Front, Problem, condition, evaluate, fit
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.types import Batch


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoTargets(Problem):
    """Inputs of three numbers; targets that lie 2 apart."""

    def split(self, name: str) -> Batch:
        """Samples of a split."""
        seed, samples = {"train": (0, 512), "val": (1, 200), "test": (2, 200)}[name]
        x = torch.randn(samples, 3, generator=torch.Generator().manual_seed(seed))
        y = torch.tanh(x[:, :1])
        return Batch(x, {"high": y + 1, "low": y - 1})


PROBLEM = TwoTargets(
    name="two_targets",
    objectives=tuple(MeanSquaredError(name=name, target=name) for name in ("high", "low")),
    reference=(5.0, 5.0),
    input_shape=(3,),
    outputs=1,
)


def network() -> nn.Module:
    """Three numbers and a ray to one number."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
    return condition(layers, objectives=2, how="concat")


def trained_by_torchjd(steps: int = 600) -> nn.Module:
    """The network after a loop of one's own."""
    model, data = network(), PROBLEM.split("train")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    aggregator = CAGrad(c=0.4)
    rays = torch.distributions.Dirichlet(torch.ones(2))
    for _ in range(steps):
        ray = rays.sample()
        outputs = model(data.inputs, ray)
        losses = [objective.loss(outputs, data.targets) for objective in PROBLEM.objectives]
        optimizer.zero_grad()
        backward([weight * loss for weight, loss in zip(ray, losses, strict=True)])
        jac_to_grad(model.parameters(), aggregator=aggregator)
        optimizer.step()
    return model


def show(title: str, front: Front) -> None:
    """The losses of a front beside those known."""
    print(title)
    for ray, (high, low) in zip(front.rays, front.values, strict=True):
        known = f"known: {4 * (1 - ray[0]) ** 2:.2f} and {4 * ray[0] ** 2:.2f}"
        print(f"  high matters {ray[0]:.1f}: losses {high:.2f} and {low:.2f} ({known})")


if __name__ == "__main__":
    rays = [[0.8, 0.2], [0.5, 0.5], [0.2, 0.8]]
    show("TorchJD's backward:", evaluate(trained_by_torchjd(), PROBLEM, rays=rays))
    settings = {"c": 0.4, "learning_rate": 1e-2}
    run = fit(
        PROBLEM,
        model=network(),
        method="torchjd:CAGrad",
        settings=settings,
        epochs=30,
        out=Path(tempfile.mkdtemp()) / "run",
    )
    show('fit(method="torchjd:CAGrad"):', evaluate(run.model, PROBLEM, rays=rays))
