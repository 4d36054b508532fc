"""CelebA's problems on drawn faces: how its files are laid out, and a training on them.

CelebA may not be passed on, so this file draws a small one in the published layout: pictures, a
list of their attributes, and a list of which split each belongs to. If you have CelebA itself,
leave the drawing out, and pass the folder that holds it as `data`.
"""

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

from paretocosmos import fit, load_problem
from paretocosmos.errors import BenchmarkWarning
from paretocosmos.problems.images.celeba_files import ATTRIBUTES

WIDE, HIGH = 36, 44
COUNTS = (500, 100, 100)  # pictures to train, validate and test on
PROBLEMS = ("celeba_easy", "celeba_hard", "celeba_three", "celeba_four", "celeba_ten")


def draw(path: Path, shown: dict[str, bool], noise: np.random.Generator) -> None:
    """A face in noise, with a goatee and a mustache or without."""
    canvas = Image.new("RGB", (WIDE, HIGH), (90, 110, 130))
    pen = ImageDraw.Draw(canvas)
    pen.ellipse((6, 4, 30, 40), fill=(205, 165, 140))
    for x in (12, 21):
        pen.ellipse((x, 15, x + 4, 18), fill=(40, 30, 30))
    if shown["Mustache"]:
        pen.rectangle((12, 26, 24, 28), fill=(95, 65, 50))
    if shown["Goatee"]:
        pen.ellipse((14, 33, 22, 40), fill=(95, 65, 50))
    noisy = np.asarray(canvas) + noise.normal(0, 60, (HIGH, WIDE, 3))
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path)


def write_to(folder: Path) -> None:
    """`img_align_celeba/`, `list_attr_celeba.txt` and `list_eval_partition.txt`."""
    noise = np.random.default_rng(1)
    (folder / "img_align_celeba").mkdir()
    rows, parts = [], []
    for number, part in enumerate(np.repeat((0, 1, 2), COUNTS), start=1):
        shown = dict(zip(ATTRIBUTES, noise.random(len(ATTRIBUTES)) < 0.5, strict=True))
        shown["No_Beard"] = not (shown["Goatee"] or shown["Mustache"])
        name = f"{number:06d}.jpg"
        draw(folder / "img_align_celeba" / name, shown, noise)
        rows.append(f"{name} {' '.join('1' if one else '-1' for one in shown.values())}")
        parts.append(f"{name} {part}")
    head = [str(len(rows)), " ".join(ATTRIBUTES)]
    (folder / "list_attr_celeba.txt").write_text("\n".join([*head, *rows]) + "\n")
    (folder / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", BenchmarkWarning)  # that these are not all of CelebA
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # decoded pictures are kept there
        write_to(Path(folder))
        small = {"size": 32}  # the paper's pictures have 64 pixels a side
        for name in PROBLEMS:
            found = load_problem(name, data=folder, settings=small)
            print(f"{name}: {', '.join(found.names)}")
        chosen = {"attributes": "Smiling,Young", **small}
        print(f"celeba: {', '.join(load_problem('celeba', data=folder, settings=chosen).names)}")
        run = fit(
            load_problem("celeba_easy", data=folder, settings=small),
            backbone="lenet",  # instead of the paper's `efficientnet`, which needs a GPU
            epochs=6,
            out=Path(folder) / "run",
            settings={"rays": 5},
            report=False,
        )
    for name in run.front.names:
        right = run.front.metrics[f"accuracy_{name}"][len(run.front) // 2]
        print(f"{name}: {right:.0%} of the test pictures are classified correctly")
