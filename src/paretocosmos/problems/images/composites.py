"""Composites of two images, as in Multi-MNIST: exact and repeatable.

The canvas is 8 pixels wider than an image. Pixels add up, clipped at 255. The published generator
is lost; where it put the two images is a `Rule` (docs/decisions/image_data.md).
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.problems.images.files import Bytes

MARGIN = 8  # how much wider than an image the canvas is
VALIDATION = 0.1
RANDOM_STATE = 42  # of scikit-learn's train_test_split, in the published code

Labelled = tuple[Bytes, Bytes]
"""Images ``[n, size, size]`` and their labels ``[n]``."""

Rows = npt.NDArray[np.int64]

RuleName = Literal["published", "text"]


@dataclass(frozen=True)
class Rule:
    """Where the two images of a composite are put: their upper left corners.

    Attributes:
        top_left: what a coordinate of the first image may be, each equally likely.
        bottom_right: likewise of the second.
        diagonal: whether row and column are the same number, instead of drawn one by one.
    """

    top_left: range
    bottom_right: range
    diagonal: bool


RULES: dict[RuleName, Rule] = {
    # found out from networks that others trained on the lost files: docs/decisions/image_data.md
    "published": Rule(range(5), range(5, 8), diagonal=True),
    # the words of Lin et al. 2019, Pareto Multi-Task Learning
    "text": Rule(range(5), range(4, 9), diagonal=False),
}


@dataclass(frozen=True, eq=False)
class Composites:
    """Images with two labels each; train comes first, then val, then test.

    Attributes:
        images: ``[n, height, width]``.
        labels: ``[n, 2]``, the top-left one first.
        counts: how many are train, val and test.
    """

    images: Bytes
    labels: Bytes
    counts: tuple[int, int, int]

    @property
    def sha256(self) -> str:
        """The checksum of the bytes: of the images, then of the labels."""
        digest = hashlib.sha256(np.ascontiguousarray(self.images).data)
        digest.update(np.ascontiguousarray(self.labels).data)
        return digest.hexdigest()


def compose_pairs(
    train: tuple[Labelled, Labelled],
    test: tuple[Labelled, Labelled],
    *,
    rule: Rule,
    different: bool,
    seed: int,
    copies: int = 2,
) -> Composites:
    """Compose the train images, a tenth of them held out as val, and of the test images.

    Args:
        train: the images for the top left and for the bottom right.
        test: likewise; no composite mixes train and test.
        rule: where the images are put.
        different: whether the two images of a composite must be of different classes.
        seed: decides partners and positions.
        copies: how often each image is the top-left one.
    """
    if seed < 0:
        raise ConfigurationError(f"`seed` must be 0 or more, found {seed}")
    if copies < 1:
        raise ConfigurationError(f"`copies` must be 1 or more, found {copies}")
    recipes = [
        draw_recipes(
            first[1], second[1], rule, different=different, copies=copies, stream=[seed, index]
        )
        for index, (first, second) in enumerate((train, test))
    ]
    train_rows, val_rows = split_rows(recipes[0].shape[1], VALIDATION)
    # the recipe is put in order, not the images: those are large
    recipes[0] = recipes[0][:, np.concatenate([train_rows, val_rows])]
    rows = [recipe.shape[1] for recipe in recipes]
    side = train[0][0].shape[1] + MARGIN
    images = np.zeros((sum(rows), side, side), np.uint8)
    outputs = (images[: rows[0]], images[rows[0] :])
    labels = []
    for recipe, (first, second), out in zip(recipes, (train, test), outputs, strict=True):
        paint_images(first[0], second[0], recipe, out)
        labels.append(np.stack([first[1][recipe[0]], second[1][recipe[1]]], axis=1))
    return Composites(images, np.concatenate(labels), (len(train_rows), len(val_rows), rows[1]))


def split_rows(count: int, share: float) -> tuple[Rows, Rows]:
    """Split rows as scikit-learn's `train_test_split` with state 42 does: (train, held out)."""
    order = np.random.RandomState(RANDOM_STATE).permutation(count).astype(np.int64)
    cut = int(np.ceil(share * count))
    if not 0 < cut < count:
        raise DataError(f"{count} images are too few to hold some out: give more images")
    return order[cut:], order[:cut]


def draw_recipes(
    first: Bytes, second: Bytes, rule: Rule, *, different: bool, copies: int, stream: list[int]
) -> npt.NDArray[np.int64]:
    """Draw the recipe of each composite, ``[6, n]``.

    The rows of its two images, then the row and column of the first's corner and of the second's.
    """
    top = np.tile(np.arange(len(first)), copies)
    # raw bits: NumPy promises never to change these, unlike the numbers its Generator makes of them
    bits = np.random.PCG64(stream).random_raw(5 * len(top)).reshape(5, len(top))
    if different:
        order = np.argsort(second, kind="stable")
        begin = np.searchsorted(second[order], first, side="left")[top]
        length = np.searchsorted(second[order], first, side="right")[top] - begin
        if int(length.max()) == len(second):
            raise DataError(
                "the two images of a pair must have different classes, found only class "
                f"{second[0]}: give images of at least two classes"
            )
        # uniform over the other classes: skip the block of the same class
        index = (bits[0] % (len(second) - length).astype(np.uint64)).astype(np.int64)
        bottom = order[np.where(index < begin, index, index + length)]
    else:
        bottom = (bits[0] % np.uint64(len(second))).astype(np.int64)
    recipe = [top, bottom]
    for among, row_and_column in ((rule.top_left, bits[1:3]), (rule.bottom_right, bits[3:])):
        corner = (row_and_column % np.uint64(len(among))).astype(np.int64) + among.start
        recipe += [corner[0], corner[0] if rule.diagonal else corner[1]]
    return np.stack(recipe)


def paint_images(first: Bytes, second: Bytes, recipe: npt.NDArray[np.int64], out: Bytes) -> None:
    """Add both images to the black canvases ``[n, side, side]``, one position at a time."""
    size, side = first.shape[1], out.shape[1]
    for images, chosen, corner in (
        (first, recipe[0], recipe[2:4]),
        (second, recipe[1], recipe[4:]),
    ):
        position_codes = corner[0] * side + corner[1]
        order = np.argsort(position_codes, kind="stable")
        positions, starts = np.unique(position_codes[order], return_index=True)
        for position, rows in zip(positions, np.split(order, starts[1:]), strict=True):
            y, x = divmod(int(position), side)
            window = (rows, slice(y, y + size), slice(x, x + size))
            below, added = out[window], images[chosen[rows]]
            added += below
            added[added < below] = 255  # the sum of two bytes went past 255 and wrapped around
            out[window] = added
