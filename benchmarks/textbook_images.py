"""COSMOS on pairs of images as one would write it after reading the paper.

A DataLoader of float images, the ray's maps computed for each sample and concatenated to its
channels, default Adam, the loss read back for the log. Nothing here is slow on purpose and nothing
is tuned.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class LeNet(nn.Module):
    """The paper's LeNet, with as many heads as tasks."""

    def __init__(self, channels: int, tasks: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 10, 5)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.fc = nn.Linear(720, 50)
        self.heads = nn.ModuleList(nn.Linear(50, 10) for _ in range(tasks))

    def forward(self, x: Tensor) -> list[Tensor]:
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc(x.flatten(1)))
        return [head(x) for head in self.heads]


class Network(nn.Module):
    """The LeNet on an image and the maps of a ray."""

    def __init__(self, objectives: int) -> None:
        super().__init__()
        self.up = nn.Sequential(
            nn.ConvTranspose2d(objectives, objectives, 4, bias=False),
            nn.ReLU(),
            nn.ConvTranspose2d(objectives, objectives, 6, stride=2, padding=1, bias=False),
            nn.ReLU(),
            nn.Upsample(36),
        )
        self.lenet = LeNet(1 + objectives, objectives)

    def forward(self, x: Tensor, ray: Tensor) -> list[Tensor]:
        rays = ray.repeat(x.shape[0], 1)[:, :, None, None]
        outputs: list[Tensor] = self.lenet(torch.cat([x, self.up(rays)], dim=1))
        return outputs


Batches = DataLoader[tuple[Tensor, ...]]


def loader(images: Tensor, labels: list[Tensor], *, shuffle: bool, workers: int = 0) -> Batches:
    """Batches of 256 float images."""
    data = TensorDataset(images.float() / 255, *labels)
    return DataLoader(data, batch_size=256, shuffle=shuffle, num_workers=workers)


def train_epoch(
    model: Network,
    optimiser: torch.optim.Optimizer,
    batches: Batches,
    *,
    alpha: float = 1.2,
    penalty: float = 2.0,
    device: str = "cpu",
) -> Iterator[float]:
    """One epoch; the loss of every step."""
    dirichlet = torch.distributions.Dirichlet(torch.tensor([alpha, alpha]))
    for batch in batches:
        x, *labels = (part.to(device) for part in batch)
        ray = dirichlet.sample().to(device)
        optimiser.zero_grad()
        outputs = model(x, ray)
        losses = torch.stack(
            [F.cross_entropy(out, label) for out, label in zip(outputs, labels, strict=True)]
        )
        loss = (ray * losses).sum() - penalty * F.cosine_similarity(ray, losses, dim=0)
        loss.backward()
        optimiser.step()
        yield loss.item()


def evaluate(
    model: Network, batches: Batches, rays: Tensor, *, device: str = "cpu"
) -> list[list[float]]:
    """The front: a loop over rays and batches."""
    front = []
    model.eval()
    with torch.no_grad():
        for ray in rays.to(device):
            scores = []
            for batch in batches:
                x, *labels = (part.to(device) for part in batch)
                outputs = model(x, ray)
                pairs = zip(outputs, labels, strict=True)
                scores.append([F.cross_entropy(out, label).item() for out, label in pairs])
            front.append([sum(column) / len(scores) for column in zip(*scores, strict=True)])
    model.train()
    return front
