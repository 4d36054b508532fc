"""COSMOS as one would write it after reading the paper: the loop every benchmark compares with.

A DataLoader, the ray repeated for each sample and concatenated, default Adam, the loss read back
for the log. Nothing here is slow on purpose and nothing is tuned.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    """The paper's perceptron on features and ray."""

    def __init__(self, features: int, objectives: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features + objectives, 60),
            nn.ReLU(),
            nn.Linear(60, 25),
            nn.ReLU(),
            nn.Linear(25, 1),
        )

    def forward(self, x: Tensor, ray: Tensor) -> Tensor:
        rays = ray.repeat(x.shape[0], 1)
        logits: Tensor = self.layers(torch.cat([x, rays], dim=1))
        return logits.squeeze(1)


def deo(logits: Tensor, label: Tensor, sensitive: Tensor) -> Tensor:
    """The relaxed difference of equality of opportunity."""
    positive = torch.tanh(torch.sigmoid(logits)) * label
    first = positive[sensitive == 0].sum()
    second = positive[sensitive == 1].sum()
    return (first - second).abs() / len(logits)


def deo_count(logits: Tensor, label: Tensor, sensitive: Tensor) -> Tensor:
    """The same, counted."""
    positive = (logits > 0).float() * label
    first = positive[sensitive == 0].sum()
    second = positive[sensitive == 1].sum()
    return (first - second).abs() / len(logits)


def loader(
    tensors: tuple[Tensor, Tensor, Tensor], *, shuffle: bool
) -> DataLoader[tuple[Tensor, ...]]:
    """Batches of 256."""
    return DataLoader(TensorDataset(*tensors), batch_size=256, shuffle=shuffle)


def train_epoch(
    model: Network,
    optimiser: torch.optim.Optimizer,
    batches: DataLoader[tuple[Tensor, ...]],
    *,
    alpha: float = 0.5,
    penalty: float = 0.01,
) -> Iterator[float]:
    """One epoch; the loss of every step."""
    dirichlet = torch.distributions.Dirichlet(torch.tensor([alpha, alpha]))
    for x, label, sensitive in batches:
        ray = dirichlet.sample()
        optimiser.zero_grad()
        logits = model(x, ray)
        losses = torch.stack(
            [
                F.binary_cross_entropy_with_logits(logits, label),
                deo(logits, label, sensitive),
            ]
        )
        loss = (ray * losses).sum() - penalty * F.cosine_similarity(ray, losses, dim=0)
        loss.backward()
        optimiser.step()
        yield loss.item()


def evaluate(
    model: Network, batches: DataLoader[tuple[Tensor, ...]], rays: Tensor
) -> list[tuple[float, float]]:
    """The front: a loop over rays and batches."""
    front = []
    model.eval()
    with torch.no_grad():
        for ray in rays:
            scores = []
            for x, label, sensitive in batches:
                logits = model(x, ray)
                scores.append(
                    (
                        F.binary_cross_entropy_with_logits(logits, label).item(),
                        deo_count(logits, label, sensitive).item(),
                    )
                )
            first = sum(score[0] for score in scores) / len(scores)
            second = sum(score[1] for score in scores) / len(scores)
            front.append((first, second))
    model.train()
    return front
