"""Small networks as others write them: a CNN, a residual one, a transformer, two towers."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from paretocosmos.types import Inputs

J = 3
Made = tuple[nn.Module, Inputs]


class Residual(nn.Module):
    """A block with a normalisation that can be computed again in the backward pass."""

    def __init__(self, width: int, again: bool | None = None) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.grow = nn.Linear(width, 2 * width)
        self.shrink = nn.Linear(2 * width, width)
        self.again = again  # None: no checkpointing, else `use_reentrant`

    def inner(self, inputs: Tensor) -> Tensor:
        return inputs + self.shrink(self.grow(self.norm(inputs)).tanh())

    def forward(self, inputs: Tensor) -> Tensor:
        if self.again is None:
            return self.inner(inputs)
        return checkpoint(self.inner, inputs, use_reentrant=self.again)


class Tokens(nn.Module):
    """Sequences of features through residual blocks: ``[B, T, 4]`` to ``[B, 2]``."""

    def __init__(self, again: bool | None = None) -> None:
        super().__init__()
        self.enter = nn.Linear(4, 6)
        self.blocks = nn.ModuleList(Residual(6, again) for _ in range(3))
        self.head = nn.Linear(6, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.enter(inputs)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden.mean(dim=1))


class Images(nn.Module):
    """Convolutions, the first of which can be computed again: ``[B, 1, 9, 9]`` to ``[B, 2]``."""

    def __init__(self, again: bool | None = None) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Tanh())
        self.rest = nn.Sequential(nn.Conv2d(4, 6, 3, stride=2), nn.GroupNorm(2, 6), nn.Tanh())
        self.head = nn.Linear(6 * 9, 2)
        self.again = again

    def features(self, inputs: Tensor) -> Tensor:
        return self.rest(self.stem(inputs))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.again is None:
            features = self.features(inputs)
        else:
            features = checkpoint(self.features, inputs, use_reentrant=self.again)
        return self.head(features.flatten(1))


class Towers(nn.Module):
    """Two towers that meet in a product: keywords in, names out."""

    def __init__(self) -> None:
        super().__init__()
        self.user = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 5))
        self.item = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 5))

    def forward(self, *, user: Tensor, item: Tensor) -> Mapping[str, Tensor]:
        one, two = self.user(user), self.item(item)
        return {"match": (one * two).sum(dim=1), "size": one.square().sum(dim=1)}


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))


def _transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(20, 2))


MAKERS: dict[str, tuple[Callable[[], nn.Module], Mapping[str, tuple[int, ...]]]] = {
    "perceptron": (_perceptron, {"": (4,)}),
    "tokens": (Tokens, {"": (5, 4)}),
    "images": (Images, {"": (1, 9, 9)}),
    "towers": (Towers, {"user": (4,), "item": (3,)}),
    "transformer": (_transformer, {"": (5, 4)}),
}
AGAIN: dict[str, Callable[..., nn.Module]] = {"tokens": Tokens, "images": Images}


@pytest.fixture
def make() -> Callable[..., Made]:
    """A network by name, in float64, and a batch of its inputs."""

    def made(name: str, samples: int = 6, **settings: Any) -> Made:
        maker, shapes = MAKERS[name]
        network = (AGAIN[name](**settings) if settings else maker()).double()
        parts = {key: torch.randn(samples, *shape).double() for key, shape in shapes.items()}
        return network, parts.get("", parts)

    return made


@pytest.fixture
def rays() -> Callable[..., Tensor]:
    """Rays of any leading shape, in float64."""

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, J, dtype=torch.float64).softmax(dim=-1)

    return drawn


@pytest.fixture
def nudge() -> Callable[[nn.Module], None]:
    """As after some training: every weight moved, those that start at zero too."""

    def moved(model: nn.Module) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))

    return moved
