"""Blocks that put pieces together: what they give is no layer's channels, so others are taken."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paretocosmos import condition

B = 4


class Fire(nn.Module):
    """Two convolutions beside each other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow = nn.Conv2d(width, 4, 1)
        self.one, self.three = nn.Conv2d(4, width // 2, 1), nn.Conv2d(4, width // 2, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.narrow(x))
        return torch.cat([self.one(x), self.three(x)], 1)


class Shuffled(Fire):
    """As above, and mixed by a function that is no layer."""

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.narrow(x))
        out = torch.cat((self.one(x), self.three(x)), dim=1)
        out = _shuffled(out, 2)
        return out  # noqa: RET504 - as they are written


class Asked(Fire):
    """By a method of its own."""

    def _both(self, x: Tensor) -> Tensor:
        return torch.cat([self.one(x), self.three(x)], 1)

    def forward(self, x: Tensor) -> Tensor:
        return self._both(torch.relu(self.narrow(x))).contiguous()


class Merged(Fire):
    """Concatenates inside and ends in a layer."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.ends = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.narrow(x))
        x = torch.cat([self.one(x), self.three(x)], 1)
        x = self.ends(x)
        return x  # noqa: RET504


class Normed(nn.Module):
    """What was put together is normalised, and the norm knows its channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.norm = Fire(width), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.norm(self.inner(x))
        return out


class Branches(nn.Module):
    """A list of tensors from a list of tensors."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(2))

    def forward(self, x: list[Tensor]) -> list[Tensor]:
        found = []
        for one, branch in zip(x, self.branches, strict=True):
            found.append(torch.relu(branch(one)))
        return found


class Stages(nn.Module):
    """Lists of modules inside a list of modules, none of which is called."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 1), nn.ReLU()) for _ in range(2))
            for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        for stage in self.stages:
            for block in stage:  # type: ignore[attr-defined]
                x = x + block(x)
        return x


class Split(nn.Module):
    """One picture as two of a kind, and back."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.both = nn.Sequential(Branches(width), Branches(width))

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.both([x, 2 * x])
        out: Tensor = first + second
        return out


def _shuffled(x: Tensor, groups: int) -> Tensor:
    mixed: Tensor = x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)
    return mixed


def _network(*blocks: nn.Module) -> nn.Module:
    body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), *blocks)
    return nn.Sequential(body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)).double()


class Chosen(Fire):
    """Whose method is chosen when it is made."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.forward = self.joined  # type: ignore[method-assign]

    def joined(self, x: Tensor) -> Tensor:
        x = torch.relu(self.narrow(x))
        return torch.cat([self.one(x), self.three(x)], 1)


class Gated(nn.Module):
    """A layer times a gate of one channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner, self.gate = nn.Conv2d(width, width, 1), nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x) * torch.sigmoid(self.gate(x))
        return out


@pytest.mark.parametrize(
    "kind", [Fire, Shuffled, Asked, Chosen, Merged, Normed, Gated, Branches, Stages]
)
def test_auto_conditions_them_and_every_sample_has_its_ray(kind: Any) -> None:
    torch.manual_seed(0)
    blocks = [Split(8)] if kind is Branches else [kind(8) for _ in range(2)]
    network, inputs = _network(*blocks), torch.randn(B, 3, 6, 6).double()
    model = condition(network, objectives=2, norm="frozen")
    rays = torch.rand(B, 1).double()
    rays = torch.cat([rays, 1 - rays], dim=1)
    model(inputs, rays).square().sum().backward()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in model.ray_parameters:
                parameter.add_(0.3 * torch.randn_like(parameter))
        model.eval()
        together = model(inputs, rays)
        alone = [model(x.unsqueeze(0), ray) for x, ray in zip(inputs, rays, strict=True)]
        torch.testing.assert_close(together, torch.cat(alone))
        ends = [model(inputs, ray) for ray in torch.eye(2).double()]
        assert (ends[0] - ends[1]).abs().max() > 1e-3
