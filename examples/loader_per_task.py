"""A loader for each task: depths are known of some scenes, outlines of others.

The usual case of multi-task learning: two datasets of different sizes, each with the labels of one
task. A step takes a batch of each, and every objective sees its own alone.
"""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from paretocosmos import DataProblem, evaluate, fit
from paretocosmos.objectives import BinaryCrossEntropy, MeanSquaredError


class Scenes(Dataset[tuple[Tensor, Tensor]]):
    """Scenes as 16 numbers, with the label of one task."""

    def __init__(self, count: int, task: str, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 16, generator=generator)
        noise = 0.1 * torch.randn(count, generator=generator)
        depth = self.x[:, :10].mean(dim=1) * 3 + noise
        outline = (self.x[:, 6:].mean(dim=1) + noise > 0).float()
        self.y = depth if task == "depth" else outline

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return self.x[row], self.y[row]


class Network(nn.Module):
    """Two heads on one feature that they share: it cannot serve both well."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 1))
        self.depth, self.outline = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = self.body(x)
        return {
            "depth": self.depth(hidden).squeeze(1),
            "outline": self.outline(hidden).squeeze(1),
        }


def loaders(seed: int, depths: int, outlines: int) -> dict[str, DataLoader[tuple[Tensor, Tensor]]]:
    """One for each objective, by its name; the sizes of batches may differ."""
    return {
        "depth": DataLoader(Scenes(depths, "depth", seed), batch_size=64, shuffle=True),
        "outline": DataLoader(Scenes(outlines, "outline", seed + 1), batch_size=32, shuffle=True),
    }


problem = DataProblem(
    name="scenes",
    objectives=(
        # each is trained and scored on its own loader alone
        MeanSquaredError(name="depth", output="depth", target="depth"),
        BinaryCrossEntropy(name="outline", output="outline", target="outline"),
    ),
    reference=(1.0, 1.0),
    outputs={"depth": 1, "outline": 1},
    train=loaders(1, depths=4096, outlines=1024),
    val=loaders(3, depths=500, outlines=500),
    test=loaders(5, depths=500, outlines=500),
    epoch="longest",  # 64 steps; the outlines come round twice
)

if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    run = fit(
        problem,
        backbone=Network(),
        conditioning="film",
        epochs=15,
        settings={"learning_rate": 4e-3},
    )
    front = evaluate(run.model, problem, rays=[[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    for ray, values in zip(front.rays, front.values, strict=True):
        print(f"depth matters {ray[0]:.1f}: depth {values[0]:.3f}, outline {values[1]:.3f}")
