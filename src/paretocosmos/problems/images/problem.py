"""Problems made of images, and the one that asks for two classes in each."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from paretocosmos.objectives import CrossEntropy, accuracy
from paretocosmos.problems.base import SPLITS, Problem, Protocol, Split, Wording, check_split
from paretocosmos.problems.images.composites import Composites
from paretocosmos.problems.images.files import CLASSES
from paretocosmos.types import Batch, Inputs, map_tensors

__all__ = ["HEADS", "ImageProblem", "Pixels", "image_problem"]

HEADS = ("top_left", "bottom_right")

WORDING = Wording.of_tasks(
    "Two overlaid images: what does each show?",
    "pairs of images",
    {"top_left": "upper left images", "bottom_right": "lower right images"},
    wrong="are read wrong",
)

Pixels = Literal["0..255", "0..1", "-1..1"]
"""From black to white, as a network is given them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageProblem(Problem):
    """Images kept as bytes ``[B, C, H, W]``; `prepare` gives floats, from 0 to 1 by default.

    Attributes:
        splits: train, val and test.
        images: what the images are, in words.
        sha256: the checksum of the images and labels, to compare runs by.
        pixels: what `prepare` makes of a byte.
    """

    splits: Mapping[Split, Batch] = field(repr=False)
    images: str
    sha256: str
    pixels: Pixels = "0..1"

    def split(self, name: Split) -> Batch:
        check_split(name)
        return self.splits[name]

    def prepare(self, inputs: Inputs, dtype: torch.dtype) -> Inputs:
        def scale(pixels: Tensor) -> Tensor:
            if self.pixels == "0..255":
                return pixels.to(dtype)
            # dividing bytes gives float32 at once, where casting first would be a pass of its own
            values = pixels if dtype == torch.float32 else pixels.to(dtype)
            return values / 255 if self.pixels == "0..1" else values / 127.5 - 1

        prepared: Inputs = map_tensors(scale, inputs)
        return prepared

    @property
    def about(self) -> Mapping[str, object]:
        return {"images": self.images, "pixels": self.pixels, "sha256": self.sha256}


Loader = TypeVar("Loader", bound=Callable[..., object])


def document_loader(name: str, about: str, example: str = "") -> Callable[[Loader], Loader]:
    """Name a function that loads a member of a family, and complete its docstring.

    Args:
        name: the problem's.
        about: comes before the arguments, which the family shares.
        example: comes after them.
    """

    def decorate(load: Loader) -> Loader:
        texts = (about.strip(), inspect.getdoc(load), example.strip())
        load.__doc__ = "\n\n".join(text for text in texts if text)
        load.__name__ = load.__qualname__ = name
        return load

    return decorate


def image_problem(
    name: str,
    composites: Composites,
    *,
    images: str,
    sha256: str,
    protocol: Protocol,
    pixels: Pixels = "0..1",
    caveats: tuple[str, ...] = (),
) -> ImageProblem:
    """Build the problem to classify the top-left and the bottom-right image, with a head each.

    The splits share the memory of the composites, which must not be changed afterwards.
    """
    height, width = composites.images.shape[1:]
    canvases = torch.from_numpy(composites.images).unsqueeze(1)
    classes = torch.from_numpy(composites.labels.astype(np.int64)).unbind(1)
    parts = (tensor.split(list(composites.counts)) for tensor in (canvases, *classes))
    splits = {
        split: Batch(images, dict(zip(HEADS, map(torch.clone, labels), strict=True)))
        for split, images, *labels in zip(SPLITS, *parts, strict=True)
    }
    return ImageProblem(
        name=name,
        objectives=tuple(CrossEntropy(name=head, output=head, target=head) for head in HEADS),
        # the reference point of the paper's table 1
        reference=(2.0, 2.0),
        input_shape=(1, height, width),
        outputs=dict.fromkeys(HEADS, CLASSES),
        metrics={f"accuracy_{head}": partial(accuracy, output=head, target=head) for head in HEADS},
        protocol=protocol,
        caveats=caveats,
        splits=splits,
        images=images,
        sha256=sha256,
        pixels=pixels,
        wording=WORDING,
    )
