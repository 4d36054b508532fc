"""Two images in one: the idx files of MNIST and Fashion-MNIST, and composites as in Multi-MNIST.

A composite is exact and repeatable. Its canvas is 8 pixels wider than an image. Pixels add up,
clipped at 255. The published generator is lost; where it put the two images is a `Rule`
(docs/decisions/image_data.md).
"""

import gzip
import hashlib
import http.client
import math
import os
import urllib.error
import urllib.request
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.io.files import VARIABLE, get_cache_folder, make_temporary_path, one_line
from paretocosmos.io.progress import progress_bar

# The names under which MNIST was published, and Fashion-MNIST after it.
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
Files = Mapping[str, Path]

# Limit in bytes of an unpacked file, five times the largest: a few kilobytes can be terabytes.
LARGEST = 1 << 28
CHUNK = 1 << 20
TIMEOUT = 30  # seconds without a byte; not for the whole file
# The first two bytes of every gzipped file.
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """Four idx files of a data set, under their usual names.

    Attributes:
        name: the data set's.
        below: the folders it may be in, below a data folder: ours, then torchvision's.
        url: the folder on the network that holds the files, packed.
        sha256: the checksum of each unpacked file, in the order of `FILES`.
    """

    name: str
    below: tuple[str, ...]
    url: str
    sha256: tuple[str, ...]


# The checksums are of the unpacked files; every one equals that of torchvision's `raw` folder.
MNIST = Source(
    "MNIST",
    ("mnist", "MNIST/raw"),
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)
FASHION_MNIST = Source(
    "Fashion-MNIST",
    ("fashion_mnist", "FashionMNIST/raw"),
    # plain http, as its authors offer it: the checksums protect it
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)


def find_files(folders: Sequence[Path]) -> tuple[Files, list[str]]:
    """Find the four files in the folder that has most of them, plain or ``.gz``.

    Returns:
        The files of that folder, and the names of those it lacks.
    """
    best: dict[str, Path] = {}
    for folder in folders:
        files = {}
        for file in FILES:
            # a browser may have unpacked the file when it downloaded it
            candidates = (folder / file, folder / f"{file}.gz")
            path = next((candidate for candidate in candidates if candidate.is_file()), None)
            if path is not None:
                files[file] = path
        # from one folder only: images and labels of two copies need not belong together
        if len(files) > len(best):
            best = files
    return best, [file for file in FILES if file not in best]


def download_source(source: Source) -> Files:
    """Download what the cache lacks of a source."""
    folder = get_cache_folder() / source.below[0]
    cached, absent = find_files([folder])
    files = dict(cached)
    for file, sha256 in zip(FILES, source.sha256, strict=True):
        if file not in absent:
            continue
        files[file] = folder / f"{file}.gz"
        try:
            _download(f"{source.url}{file}.gz", sha256, files[file])
        except DataError as error:
            named = os.environ.get(VARIABLE)
            variable = f"${VARIABLE} (`{named}`)" if named else f"${VARIABLE} (not set)"
            raise DataError(
                f"the four files of {source.name} are neither all in {variable} nor in the cache "
                f"`{folder}`, and `{file}` cannot be downloaded: {error}; put the files there, or "
                "name their folder with `data`"
            ) from error
    return files


def _download(url: str, sha256: str, path: Path) -> None:
    """Download to a temporary name, check the content, then rename."""
    temporary = make_temporary_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            urllib.request.urlopen(url, timeout=TIMEOUT) as answer,
            temporary.open("xb") as stream,  # exclusively: a link is not followed
            progress_bar(path.name, answer.length, of_bytes=True) as advance,
        ):
            while chunk := answer.read(CHUNK):
                stream.write(chunk)
                advance(len(chunk))
                if stream.tell() > LARGEST:
                    raise DataError(f"`{url}` has more than {LARGEST:,} bytes")
        # of the content, since mirrors pack it anew
        digest = hashlib.sha256(read_unpacked(temporary)).hexdigest()
        if digest != sha256:
            raise DataError(f"`{url}` should have the sha256 {sha256}, found {digest}")
        temporary.replace(path)
    except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        reason = one_line(error) or type(error).__name__
        raise DataError(f"`{url}` cannot be downloaded to `{path}`: {reason}") from error
    finally:
        with suppress(OSError):  # a folder that cannot be written holds nothing to remove
            temporary.unlink(missing_ok=True)


def read_unpacked(path: Path) -> bytes:
    """Read all of a file, plain or gzipped, up to a limit."""
    with path.open("rb") as plain:
        # by content, not by name: browsers unpack a download and keep its .gz
        packed = plain.read(len(GZIP)) == GZIP
        plain.seek(0)
        content = (gzip.GzipFile(fileobj=plain) if packed else plain).read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DataError(f"`{path}` has more than {LARGEST:,} bytes, unpacked: {WAY_OUT}")
    return content


Bytes = npt.NDArray[np.uint8]

# Both data sets have grey images of 28 x 28 pixels in ten classes.
SIZE = 28
CLASSES = 10
WAY_OUT = "put a fresh copy in its place (in the cache: delete it, and it is downloaded anew)"


def read_pair(images: Path, labels: Path) -> tuple[Bytes, Bytes]:
    """Read images ``[n, 28, 28]`` and their labels ``[n]``, from 0 to 9, both read-only."""
    pixels, classes = read_idx(images, 3), read_idx(labels, 1)
    if pixels.shape[1:] != (SIZE, SIZE):
        size = " x ".join(str(length) for length in pixels.shape[1:])
        _raise_invalid(images, f"holds images of {SIZE} x {SIZE}", size)
    if len(pixels) == 0:
        _raise_invalid(images, "holds images", "none")
    if len(pixels) != len(classes):
        raise DataError(
            f"every image needs a label, found {len(pixels)} images in `{images}` and "
            f"{len(classes)} labels in `{labels}`: take both files from the same source"
        )
    # on a GPU such a label kills the kernel, much later than here
    if int(classes.max()) >= CLASSES:
        _raise_invalid(labels, f"holds labels from 0 to {CLASSES - 1}", str(classes.max()))
    return pixels, classes


def read_idx(path: Path, axes: int) -> Bytes:
    """Read an array of unsigned bytes with that many axes, from a plain or gzipped file."""
    try:
        content = read_unpacked(path)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"`{path}` cannot be read ({error}): {WAY_OUT}") from error
    # the head: two zero bytes, 8 for unsigned bytes, the number of axes, four bytes for each length
    head, kind = bytes((0, 0, 8, axes)), "labels" if axes == 1 else "images"
    if content[:4] != head:
        magic = content[:4].hex(" ") or "an empty file"
        _raise_invalid(path, f"is an idx file of {kind}, which starts with {head.hex(' ')}", magic)
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(content[i : i + 4], "big") for i in range(4, start, 4))
    expected = start + math.prod(shape)
    if len(content) != expected:
        size = " x ".join(str(length) for length in shape)
        _raise_invalid(
            path, f"has {expected:,} bytes, as its head of {size} says", f"{len(content):,}"
        )
    # no copy; the array is read-only because the bytes are
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _raise_invalid(path: Path, rule: str, observed: str) -> NoReturn:
    raise DataError(f"`{path}` {rule}, found {observed}: {WAY_OUT}")


MARGIN = 8  # how much wider than an image the canvas is
VALIDATION = 0.1
RANDOM_STATE = 42  # of scikit-learn's train_test_split, in the published code

Labelled = tuple[Bytes, Bytes]
"""Images ``[n, size, size]`` and their labels ``[n]``."""

Rows = npt.NDArray[np.int64]

RuleName = Literal["published", "text"]


@dataclass(frozen=True)
class Rule:
    """Upper left corners of the two images in a composite.

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
