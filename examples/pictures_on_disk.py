"""Pictures in files, read by a `Dataset` with workers while one network learns every trade-off.

A picture shows two shapes: a bright one on the left, a dim one on the right. One task is to say
which shape the bright one is, the other which the dim one is. The network is small, so that the
tasks compete for it. The training pictures are shifted a little every time they are read; those to
validate and test on are not.
"""

import random
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from paretocosmos import DataProblem, fit
from paretocosmos.objectives import CrossEntropy, accuracy

SIDE = 24
TASKS = ("bright", "dim")
Sample = dict[str, Tensor | int]


def draw(path: Path, shapes: tuple[int, int], noise: np.random.Generator) -> None:
    """A picture of two shapes, each a disc, a square or a triangle."""
    canvas = Image.new("L", (2 * SIDE, SIDE), 40)
    pen = ImageDraw.Draw(canvas)
    for place, (shape, light) in enumerate(zip(shapes, (150, 80), strict=True)):
        x, y = place * SIDE + noise.integers(4, 9), noise.integers(4, 9)
        box = (int(x), int(y), int(x + 11), int(y + 11))
        if shape == 0:
            pen.ellipse(box, fill=light)
        elif shape == 1:
            pen.rectangle(box, fill=light)
        else:
            pen.polygon([(box[0], box[3]), (box[2], box[3]), (int(x + 5), box[1])], fill=light)
    grey = np.asarray(canvas) + noise.normal(0, 25, (SIDE, 2 * SIDE))
    Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(path)


class Pictures(Dataset[Sample]):
    """The files of a folder; their names say what they show."""

    def __init__(self, folder: Path, *, shift: int = 0) -> None:
        self.paths, self.shift = sorted(folder.glob("*.png")), shift

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> Sample:
        path = self.paths[row]
        pixels = torch.from_numpy(np.array(Image.open(path))).unsqueeze(0)
        by = [random.randint(-self.shift, self.shift) for _ in range(2)]
        pixels = pixels.roll(by, dims=(1, 2))
        bright, dim = path.stem.split("-")[1:]
        return {"image": pixels, "bright": int(bright), "dim": int(dim)}


class Network(nn.Module):
    """A network that knows no preferences; `fit` conditions it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(8 * 6 * 12, 3), nn.ReLU()),
        )
        self.heads = nn.ModuleDict({task: nn.Linear(3, 3) for task in TASKS})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = self.body(x)
        return {task: head(hidden) for task, head in self.heads.items()}


def problem_in(folder: Path) -> DataProblem:
    """Two tasks on the pictures of a folder with a folder for each split."""
    return DataProblem(
        name="shapes",
        objectives=tuple(CrossEntropy(name=task, output=task, target=task) for task in TASKS),
        reference=(1.2, 1.2),
        outputs=dict.fromkeys(TASKS, 3),
        train=DataLoader(
            Pictures(folder / "train", shift=2), batch_size=64, shuffle=True, num_workers=1
        ),
        val=Pictures(folder / "val"),
        test=Pictures(folder / "test"),
        metrics={f"accuracy_{task}": partial(accuracy, output=task, target=task) for task in TASKS},
    )


def write_to(folder: Path) -> None:
    """A few thousand pictures."""
    noise = np.random.default_rng(1)
    for split, count in (("train", 2000), ("val", 300), ("test", 300)):
        (folder / split).mkdir()
        for number in range(count):
            bright, dim = (int(one) for one in noise.integers(0, 3, 2))
            draw(folder / split / f"{number:05}-{bright}-{dim}.png", (bright, dim), noise)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        write_to(Path(folder))
        run = fit(
            problem_in(Path(folder)),
            backbone=Network(),
            conditioning="film",
            epochs=10,
            settings={"learning_rate": 4e-3, "rays": 5},
        )
    print(f"data {run.record['data']}, {run.record['samples_per_second']:,.0f} pictures a second")
    for place in (0, 2, 4):
        told = [f"{task} {run.front.metrics[f'accuracy_{task}'][place]:.2f}" for task in TASKS]
        print(f"bright matters {run.front.rays[place, 0]:.1f}: right on {', '.join(told)}")
