"""Small datasets to train on: two heads on tiny pictures, read sample by sample."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from paretocosmos import DataProblem
from paretocosmos.objectives import CrossEntropy, MeanSquaredError

__all__ = ["Heads", "Pictures", "Stream", "Task", "problem_of"]

Sample = dict[str, Tensor]


class Pictures(Dataset[Sample]):
    """Pictures with a class and a number; with `noise`, every reading is different."""

    def __init__(self, count: int, seed: int = 1, *, noise: bool = False, bad: int = -1) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 2, 3, 3, generator=generator)
        self.noise, self.bad = noise, bad

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> Sample:
        if row == self.bad:
            raise OSError("file is truncated")
        image = self.x[row]
        mean = image.mean()
        if self.noise:
            image = image + 0.1 * torch.randn(image.shape)
        return {"image": image, "label": (mean > 0).long(), "mean": mean.reshape(1)}


class Task(Dataset[tuple[Tensor, Tensor]]):
    """The same with one target alone."""

    def __init__(self, count: int, target: str, seed: int = 1) -> None:
        self.whole, self.target = Pictures(count, seed), target

    def __len__(self) -> int:
        return len(self.whole)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        sample = self.whole[row]
        return sample["image"], sample[self.target]


class Stream(IterableDataset[Sample]):
    """The same, one after the other, without a length."""

    def __init__(self, count: int) -> None:
        self.whole = Pictures(count)

    def __iter__(self) -> Iterator[Sample]:
        return (self.whole[row] for row in range(len(self.whole)))


class Heads(nn.Module):
    """A backbone with a head for each objective."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(18, 8), nn.ReLU())
        self.sign, self.size = nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = self.body(x)
        return {"sign": self.sign(hidden), "size": self.size(hidden)}


def problem_of(train: Any, **changes: Any) -> DataProblem:
    """Two objectives that are trained on such pictures."""
    given: dict[str, Any] = {
        "name": "pictures",
        "objectives": (
            CrossEntropy(name="sign", output="sign", ignore_index=-100),
            MeanSquaredError(name="size", output="size", target="mean", ignore_nan=True),
        ),
        "reference": (2.0, 2.0),
        "outputs": {"sign": 2, "size": 1},
        "val": Pictures(16, 2),
        "test": Pictures(16, 3),
    }
    return DataProblem(train=train, **given | changes)
