"""What is done with every network of the list: conditioned, compared ray by ray, trained."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from tests.networks.listed import NETWORKS
from torch import Tensor, nn

from paretocosmos import Conditioning, condition
from paretocosmos.evaluation import compute_sensitivity

__all__ = ["STEPS", "Tried", "conditioned", "floats", "nudged", "train"]

J, STEPS, RATE = 2, 30, 0.01


@dataclass(frozen=True)
class Tried:
    """What came of one network."""

    how: str
    """The conditioning that was chosen."""
    places: tuple[str, ...]
    """Where the ray enters: the blocks that are scaled and shifted."""
    moved: int
    """Layers whose weights move with the ray."""
    losses: tuple[float, float]
    """Before and after training, the mean over five rays."""
    sensitivity: float
    """After training."""


class Rows(nn.Module):
    """A network whose samples are its rows of outputs: in a graph, inputs are not cut into batches.

    Args:
        model: conditioned.
        inputs: of all samples.
    """

    def __init__(self, model: Conditioning, inputs: Any) -> None:
        super().__init__()
        self.model, self.inputs = model, inputs

    def forward(self, rows: Tensor, ray: Tensor) -> tuple[Tensor, ...]:
        return tuple(out[rows] for out in floats(self.model(self.inputs, ray)))


def floats(outputs: Any) -> Iterator[Tensor]:
    """The tensors of real numbers in what a network gives."""
    if isinstance(outputs, Tensor):
        if outputs.is_floating_point():
            yield outputs
    elif isinstance(outputs, Mapping):
        yield from (one for part in outputs.values() for one in floats(part))
    elif isinstance(outputs, tuple | list):
        yield from (one for part in outputs for one in floats(part))


def conditioned(name: str, how: str = "film") -> tuple[Conditioning, Any]:
    """A network of the list that takes a ray, and its inputs."""
    torch.manual_seed(0)
    network, inputs = NETWORKS[name]()
    return condition(network, J, how=how, norm="keep"), inputs


def nudged(model: Conditioning) -> Conditioning:
    """As after some training: what reads the ray moved away from zero."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in model.ray_parameters:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


@cache
def train(name: str) -> Tried:
    """Some steps of Adam towards two targets at once, drawn at random, with two rays per batch."""
    model, inputs = conditioned(name)
    wanted = [tuple(torch.randn_like(out) for out in floats(_plain(model, inputs))) for _ in "ab"]

    def loss(outputs: Any, ray: Tensor, share: slice) -> Tensor:
        errors = [
            sum(
                (out[share] - end[share]).square().mean()
                for out, end in zip(o, target, strict=True)
            )
            for o, target in ((list(floats(outputs)), target) for target in wanted)
        ]
        return (ray * torch.stack([torch.as_tensor(error) for error in errors])).sum()

    def mean_loss() -> float:
        front = torch.linspace(0, 1, 5)
        with torch.no_grad():
            each = [
                loss(model(inputs, ray), ray, slice(None))
                for ray in torch.stack([front, 1 - front], dim=1)
            ]
        return float(torch.stack(each).mean())

    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=RATE)
    rows = wanted[0][0].shape[0]
    halves = (slice(None, rows // 2), slice(rows // 2, None))
    before = mean_loss()
    for _ in range(STEPS):
        rays = torch.distributions.Dirichlet(torch.ones(J)).sample((2,))
        outputs = model(inputs, rays)
        optimiser.zero_grad()
        torch.stack(
            [loss(outputs, ray, h) for ray, h in zip(rays, halves, strict=True)]
        ).sum().backward()
        optimiser.step()
    entered: Any = model
    places = getattr(entered, "_blocks", entered.places)
    return Tried(
        type(model).__name__.lower(),
        tuple(places),
        len(entered.places) - len(places),
        (before, mean_loss()),
        compute_sensitivity(Rows(model, inputs), torch.arange(rows), torch.eye(J)),
    )


def _plain(model: Conditioning, inputs: Any) -> Any:
    with torch.no_grad():
        return model(inputs, torch.full((J,), 1 / J))
