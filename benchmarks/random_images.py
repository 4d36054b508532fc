"""Random images with random labels: what speed needs, and no data set."""

import torch

from paretocosmos.objectives import BinaryCrossEntropy, CrossEntropy
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.types import Batch


def random_images(objectives: int, *, batches: int) -> ImageProblem:
    """As large as Multi-MNIST's, with a head of ten classes for each of any number of tasks.

    Args:
        objectives: tasks.
        batches: of 256 images, to train on.
    """
    draw = torch.Generator().manual_seed(1)
    names = [f"task_{number}" for number in range(objectives)]

    def batch(size: int) -> Batch:
        images = torch.randint(0, 256, (size, 1, 36, 36), generator=draw, dtype=torch.uint8)
        labels = {n: torch.randint(0, 10, (size,), generator=draw) for n in names}
        return Batch(images, labels)

    return ImageProblem(
        name=f"random_{objectives}",
        objectives=tuple(CrossEntropy(name=n, output=n, target=n) for n in names),
        reference=(4.0,) * objectives,
        input_shape=(1, 36, 36),
        outputs=dict.fromkeys(names, 10),
        splits={"train": batch(256 * batches), "val": batch(512), "test": batch(512)},
        images="random bytes",
        sha256="",
    )


def random_faces(objectives: int, *, samples: int, side: int) -> ImageProblem:
    """Noise in three colours, with a yes or no for each of any number of tasks, as in CelebA.

    Args:
        objectives: tasks.
        samples: images to train on.
        side: of an image.
    """
    draw = torch.Generator().manual_seed(1)
    names = [f"task_{number}" for number in range(objectives)]

    def batch(size: int) -> Batch:
        images = torch.randint(0, 256, (size, 3, side, side), generator=draw, dtype=torch.uint8)
        return Batch(images, {n: (torch.rand(size, generator=draw) > 0.5).float() for n in names})

    return ImageProblem(
        name=f"random_faces_{objectives}",
        objectives=tuple(BinaryCrossEntropy(name=n, output=n, target=n) for n in names),
        reference=(2.0,) * objectives,
        input_shape=(3, side, side),
        outputs=dict.fromkeys(names, 1),
        splits={"train": batch(samples), "val": batch(32), "test": batch(32)},
        images="random bytes",
        sha256="",
        pixels="-1..1",
    )
