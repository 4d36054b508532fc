"""Problems made of images, and those of two images in one picture, a task each."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import DataError, check_choice, require_extra
from paretocosmos.io.files import VARIABLE, get_cache_folder, list_data_folders
from paretocosmos.objectives import CrossEntropy, accuracy
from paretocosmos.problems.base import (
    SPLITS,
    InMemoryProblem,
    Protocol,
    Wording,
)
from paretocosmos.problems.images.pairs import (
    CLASSES,
    FASHION_MNIST,
    FILES,
    MNIST,
    RULES,
    Composites,
    Files,
    Labelled,
    RuleName,
    Source,
    compose_pairs,
    download_source,
    find_files,
    read_pair,
    split_rows,
)
from paretocosmos.types import Batch, Inputs, map_tensors

HEADS = ("top_left", "bottom_right")

WORDING = Wording.of_tasks(
    "Two overlaid images: what does each show?",
    "pairs of images",
    {"top_left": "upper left images", "bottom_right": "lower right images"},
    wrong="are read wrong",
)

Pixels = Literal["0..255", "0..1", "-1..1"]
"""From black to white, as a network is given them."""

# The file names of train and of test begin with these.
PARTS = ("train", "t10k")
CAVEATS: dict[RuleName, str] = {
    "published": (
        "The published Multi-MNIST images are lost. These are composed by a rule recovered from "
        "networks trained on them (docs/decisions/image_data.md): the same kind of images, not the "
        "same bytes."
    ),
    "text": (
        "These images follow the description in Lin et al. 2019, not the published files. They are "
        "harder, so compare hypervolumes with runs on the same images, not with the paper's."
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageProblem(InMemoryProblem):
    """Images kept as bytes ``[B, C, H, W]``; `prepare` gives floats, from 0 to 1 by default.

    Attributes:
        images: what the images are, in words.
        sha256: the checksum of the images and labels, to compare runs by.
        pixels: what `prepare` makes of a byte.
    """

    images: str
    sha256: str
    pixels: Pixels = "0..1"

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
        # `help` shows the text of the member, then the arguments of the family
        texts = (about.strip(), inspect.getdoc(load), example.strip())
        load.__doc__ = "\n\n".join(text for text in texts if text)
        load.__name__ = load.__qualname__ = name
        return load

    return decorate


def build_pair_problem(
    name: str,
    composites: Composites,
    *,
    images: str,
    protocol: Protocol,
    pixels: Pixels = "0..1",
    caveats: tuple[str, ...] = (),
) -> ImageProblem:
    """Build a problem that classifies the top-left and the bottom-right image, with a head each.

    The splits share the memory of the composites, which must not be changed afterwards.
    """
    height, width = composites.images.shape[1:]
    # no copy: the canvases of Multi-MNIST take 180 MB
    canvases = torch.from_numpy(composites.images).unsqueeze(1)
    classes = torch.from_numpy(composites.labels.astype(np.int64)).unbind(1)
    parts = (tensor.split(list(composites.counts)) for tensor in (canvases, *classes))
    splits = {
        # cloned, since a column of the labels is not contiguous
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
        sha256=composites.sha256,
        pixels=pixels,
        wording=WORDING,
    )


def make_loader(
    name: str,
    sources: tuple[Source, Source],
    *,
    images: str,
    about: str,
) -> Callable[..., ImageProblem]:
    """Return a function that loads a problem of two images in one, from idx files.

    Args:
        name: the problem's.
        sources: of the top-left and of the bottom-right images; a source paired with itself gives
            two images of different classes.
        images: what they are, in words.
        about: the beginning of its docstring.
    """

    @document_loader(name, about, EXAMPLE.format(name=name))
    def load(
        *,
        protocol: Protocol = "clean",
        rule: RuleName = "published",
        data: str | None = None,
        seed: int = 1,
    ) -> ImageProblem:
        """The images are made when the problem is loaded, in seconds.

        Args:
            protocol: ``"paper"`` does as the published code does: a split is scored in batches, and
                pixels are from 0 to 255 where `rule` is ``"published"``; else they are from 0 to 1.
            rule: where the two images are put. ``"published"`` is how the lost files were made, as
                far as anyone knows: shifts along the diagonal. ``"text"`` follows the words of
                Lin et al. 2019, with row and column drawn apart, and is harder.
            data: a folder with ``mnist/`` and ``fashion_mnist/``, or torchvision's ``MNIST/raw/``
                and ``FashionMNIST/raw/``. `None` looks in ``$PARETOCOSMOS_DATA`` and the cache,
                then downloads.
            seed: decides which images are paired, and where they are put.
        """
        check_choice("rule", rule, RULES)
        files = find_source_files(sources, data)
        return build_pair_problem(
            name,
            compose_pairs(
                *((read_part(files[0], part), read_part(files[1], part)) for part in PARTS),
                rule=RULES[rule],
                # Multi-MNIST pairs images of different classes
                different=len(set(sources)) == 1,
                seed=seed,
            ),
            images=f"{images}, composed by the rule `{rule}` with seed {seed}",
            protocol=protocol,
            # the published code hands the bytes of those files to its networks as they are
            pixels="0..255" if (protocol, rule) == ("paper", "published") else "0..1",
            caveats=(CAVEATS[rule],),
        )

    return load


def find_source_files(sources: tuple[Source, Source], data: str | None) -> list[Files]:
    """Return the files of each source, downloaded if no folder was named and none has them."""
    where = list_data_folders(data)
    by_source: dict[Source, Files] = {}
    # each source once, although a problem may pair it with itself
    for source in dict.fromkeys(sources):
        searched = [folder / name for folder in where for name in source.below]
        files, absent = find_files(searched)
        # a folder that was named means these files and no others
        if absent and data is not None:
            listed = " or ".join(f"`{path}`" for path in searched)
            missing = "none of them" if len(absent) == len(FILES) else f"no {', '.join(absent)}"
            # a mistyped folder is likelier than one without files
            if not where[0].is_dir():
                missing = f"that `{where[0]}` is no folder"
            raise DataError(
                f"{source.name} is the four files {', '.join(FILES)}, plain or .gz, in {listed}, "
                f"found {missing}: name the folder that holds them, or leave `data` out to look in "
                f"${VARIABLE} and the cache `{get_cache_folder()}` and then to download them"
            )
        by_source[source] = download_source(source) if absent else files
    return [by_source[source] for source in sources]


def read_part(files: Files, part: str) -> Labelled:
    """Read the images and labels of `train` or `t10k`."""
    return read_pair(*(files[file] for file in FILES if file.startswith(part)))


# One example for the family, on twenty black images so that nothing is downloaded.
EXAMPLE = """\
>>> import tempfile
>>> from pathlib import Path
>>> folder, count = Path(tempfile.mkdtemp()), (0, 0, 0, 20)
>>> for source in (folder / "mnist", folder / "fashion_mnist"):
...     source.mkdir()
...     for part in ("train", "t10k"):  # twenty black images each, as the original files hold them
...         images = bytes((0, 0, 8, 3, *count, 0, 0, 0, 28, 0, 0, 0, 28)) + bytes(20 * 28 * 28)
...         _ = (source / f"{{part}}-images-idx3-ubyte").write_bytes(images)
...         labels = bytes((0, 0, 8, 1, *count, *range(10), *range(10)))
...         _ = (source / f"{{part}}-labels-idx1-ubyte").write_bytes(labels)
>>> problem = {name}(data=folder)
>>> problem.names, [len(problem.split(part)) for part in ("train", "val", "test")]
(('top_left', 'bottom_right'), [36, 4, 40])
"""

multi_mnist = make_loader(
    "multi_mnist",
    (MNIST, MNIST),
    images="two MNIST digits of different classes",
    about="""Multi-MNIST: classify the digits at the top left and the bottom right (140,000 images).

Two digits of different classes on 36 x 36 pixels; every MNIST image is at the top left twice. There
are 108,000 train, 12,000 val and 20,000 test images. As in the published split, a digit of a train
image may also be in val; none is in test.
""",
)
multi_fashion = make_loader(
    "multi_fashion",
    (FASHION_MNIST, FASHION_MNIST),
    images="two Fashion-MNIST garments of different classes",
    about="""Multi-Fashion: classify the garment at the top left and the one at the bottom right.

Made like `multi_mnist`, from Fashion-MNIST: 108,000 train, 12,000 val, 20,000 test images of
36 x 36 pixels. Garments fill their frame, so they hide more of each other than digits do.
""",
)
fashion_and_mnist = make_loader(
    "fashion_and_mnist",
    (MNIST, FASHION_MNIST),
    images="an MNIST digit and a Fashion-MNIST garment",
    about="""Fashion+MNIST: classify the digit at the top left and the garment at the bottom right.

Made like `multi_mnist`, from MNIST and Fashion-MNIST, with any two classes: 108,000 train,
12,000 val, 20,000 test images of 36 x 36 pixels.
""",
)


# Doubled to 16 pixels, two digits overlap as much as MNIST's do: those are 20 pixels wide in a
# frame of 28, and the shift between the two, 4 on average, is the same. A LeNet needs 16 or more.
SCALE = 2
TEST = 0.2


def multi_digits(*, protocol: Protocol = "clean", copies: int = 10, seed: int = 1) -> ImageProblem:
    """Multi-Digits: Multi-MNIST of scikit-learn's 1,797 small digits, offline and in seconds.

    Made as `multi_mnist` is with its rule ``"text"``, on 24 x 24 pixels. A fifth of the digits are
    set aside for test first.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.
        copies: how often each digit is the top-left one; fewer make a smaller problem.
        seed: decides partners and positions.

    >>> problem = multi_digits(copies=2)
    >>> problem.input_shape, [len(problem.split(name)) for name in ("train", "val", "test")]
    ((1, 24, 24), [2586, 288, 720])
    """
    train, test = _load_digits()
    composites = compose_pairs(
        (train, train), (test, test), rule=RULES["text"], different=True, seed=seed, copies=copies
    )
    return build_pair_problem(
        "multi_digits",
        composites,
        images=f"two digits of scikit-learn's of different classes, composed with seed {seed}",
        protocol=protocol,
    )


def _load_digits() -> tuple[Labelled, Labelled]:
    """Load the digits for train and those for test, ``[n, 16, 16]``."""
    require_extra("sklearn", "tabular", "the problem `multi_digits`")
    from sklearn.datasets import load_digits

    digits = load_digits()
    # from 0..16 to 0..255, in whole numbers, so that every machine makes the same bytes
    small = (digits.images.astype(np.int64) * 255 + 8) // 16
    images = small.astype(np.uint8).repeat(SCALE, axis=1).repeat(SCALE, axis=2)
    labels = digits.target.astype(np.uint8)
    # before anything is composed, so that no digit is in both
    train, test = split_rows(len(labels), TEST)
    return (images[train], labels[train]), (images[test], labels[test])
