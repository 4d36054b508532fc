"""A dense task from files: which pixels belong to a cell, when misses and false alarms both cost.

Soft recall (how much of a cell is found) is traded for soft precision (how much of what is marked
is a cell). Scans and masks are written to a folder, read by a `Dataset`, and one network is trained
for every trade-off. It writes `segmentation.png`: the front, and a scan under three preferences.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import Dataset

from paretocosmos import DataProblem, Objective, Run, fit
from paretocosmos.objectives import pick
from paretocosmos.types import Outputs, Targets

SIDE = 32


class Missed(Objective):
    """One minus the soft recall: the share of the cells' pixels that is not marked."""

    traceable = True

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        marked, mask = pick(outputs, self.output).sigmoid(), targets["mask"]
        return 1 - (marked * mask).sum() / mask.sum().clamp(min=1)


class FalseAlarm(Objective):
    """One minus the soft precision: the share of the marked pixels that are no cell."""

    traceable = True

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        marked, mask = pick(outputs, self.output).sigmoid(), targets["mask"]
        return 1 - (marked * mask).sum() / marked.sum().clamp(min=1)


def overlap(outputs: Outputs, targets: Targets) -> Tensor:
    """Intersection over union of what is marked and what is a cell."""
    marked, mask = pick(outputs, None) > 0, targets["mask"] > 0.5
    return (marked & mask).sum() / (marked | mask).sum()


def write_to(folder: Path, count: int, noise: np.random.Generator) -> None:
    """Scans of bright cells with blurred edges, and their masks, as PNG files."""
    folder.mkdir()
    y, x = np.mgrid[:SIDE, :SIDE]
    for number in range(count):
        light, mask = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE), dtype=bool)
        for _ in range(noise.integers(1, 4)):
            a, b, radius = *noise.uniform(4, SIDE - 4, 2), noise.uniform(3, 7)
            away = np.hypot(x - a, y - b)
            mask |= away < radius
            light = np.maximum(light, 1 / (1 + np.exp((away - radius) / 1.5)))
        scan = 60 + 90 * light + noise.normal(0, 40, light.shape)
        Image.fromarray(scan.clip(0, 255).astype(np.uint8)).save(folder / f"{number:04}-scan.png")
        Image.fromarray(mask).save(folder / f"{number:04}-mask.png")


class Scans(Dataset[tuple[Tensor, Tensor]]):
    """Scans and masks of a folder, turned and mirrored at random for training."""

    def __init__(self, folder: Path, *, turned: bool = False) -> None:
        self.scans, self.turned = sorted(folder.glob("*-scan.png")), turned

    def __len__(self) -> int:
        return len(self.scans)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        path = self.scans[row]
        mask = path.with_name(path.name.replace("scan", "mask"))
        both = torch.stack([torch.from_numpy(np.array(Image.open(p))).byte() for p in (path, mask)])
        if self.turned:
            both = both.rot90(int(torch.randint(4, ())), dims=(1, 2))
        scan, cell = both.unbind()
        return scan.unsqueeze(0), cell.float().unsqueeze(0)


def network() -> nn.Module:
    """Convolutions that keep the size; one logit for each pixel."""
    return nn.Sequential(
        *(nn.Conv2d(1, 12, 5, padding=2), nn.ReLU()),
        *(nn.Conv2d(12, 12, 5, padding=2), nn.ReLU()),
        nn.Conv2d(12, 1, 5, padding=2),
    )


def problem_in(folder: Path) -> DataProblem:
    """The two objectives on a folder with a folder for each split."""
    return DataProblem(
        name="cells",
        objectives=(
            Missed(name="missed", target="mask"),
            FalseAlarm(name="false_alarm", target="mask"),
        ),
        reference=(1.0, 1.0),
        train=Scans(folder / "train", turned=True),
        val=Scans(folder / "val"),
        test=Scans(folder / "test"),
        metrics={"overlap": overlap},
    )


def picture_of(run: Run, sample: tuple[Tensor, Tensor], path: Path) -> None:
    """The front, and one scan as it is marked when misses, both, or false alarms matter."""
    import matplotlib.pyplot as plt

    scan, mask = sample
    figure, (left, *rest) = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
    left.plot(*run.front.values.T, "o-")
    left.set(xlabel="missed (1 - recall)", ylabel="false alarms (1 - precision)")
    left.set_title("the front, on test scans")
    for axes, weight in zip(rest, (0.7, 0.4, 0.1), strict=True):
        with torch.no_grad():
            logits = run.model(scan.unsqueeze(0) / 255, torch.tensor([weight, 1 - weight]))
        axes.imshow(scan[0].numpy(), cmap="gray")
        axes.contour(mask[0].numpy(), levels=[0.5], colors="tab:green", linestyles="dashed")
        axes.contourf((logits[0, 0] > 0).numpy(), levels=[0.5, 1], colors="tab:orange", alpha=0.4)
        axes.set_title(f"misses matter {weight}")
        axes.axis("off")
    figure.supxlabel("dashed: the cells; orange: what is marked", fontsize=9)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    noise = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for split, count in (("train", 400), ("val", 100), ("test", 100)):
            write_to(Path(folder) / split, count, noise)
        problem = problem_in(Path(folder))
        run = fit(
            problem,
            backbone=network(),
            conditioning="film",
            epochs=12,
            settings={"batch_size": 32, "learning_rate": 5e-3, "rays": 9},
        )
        picture_of(run, Scans(Path(folder) / "test")[5], Path("segmentation.png"))
    for place in (0, 4, 8):
        values, found = run.front.values[place], run.front.metrics["overlap"][place]
        print(
            f"misses matter {run.front.rays[place, 0]:.2f}: recall {1 - values[0]:.2f}, "
            f"precision {1 - values[1]:.2f}, overlap {found:.2f}"
        )
