"""Where the raw image files are: a folder of yours, the cache, or the network."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paretocosmos.errors import DataError
from paretocosmos.io.download import Remote, fetch
from paretocosmos.io.files import VARIABLE, cache_folder

__all__ = [
    "FASHION_MNIST",
    "FILES",
    "MNIST",
    "Files",
    "Source",
    "download",
    "locate",
    "places",
]

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
# Bytes of each, unpacked, of both sources: 60,000 and 10,000 of 28 x 28, and their heads.
SIZES = dict(zip(FILES, (47_040_016, 60_008, 7_840_016, 10_008), strict=True))
Files = Mapping[str, Path]


@dataclass(frozen=True)
class Source:
    """Four idx files that everybody calls alike.

    Attributes:
        name: how people call it.
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
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)


def places(source: Source, folder: Path, *, alone: bool) -> list[Path]:
    """Where in a folder a source may be.

    Args:
        source: what is looked for.
        folder: the data folder.
        alone: whether the folder itself may hold the files; two sources would share their names.
    """
    return [*(folder / name for name in source.below), *([folder] if alone else [])]


def locate(where: Sequence[Path]) -> tuple[Files, list[str]]:
    """The four files, from the first place that has them all, plain or ``.gz``.

    Returns:
        The files of the fullest place, and the names of those that are in none.
    """
    best: dict[str, Path] = {}
    for place in where:
        found = {}
        for file in FILES:
            candidates = (place / file, place / f"{file}.gz")
            path = next((candidate for candidate in candidates if candidate.is_file()), None)
            if path is not None:
                found[file] = path
        if len(found) > len(best):
            best = found
    return best, [file for file in FILES if file not in best]


def download(source: Source) -> Files:
    """Fetch what the cache lacks of a source; a failure names every place that would have done."""
    folder = cache_folder() / source.below[0]
    found, absent = locate([folder])
    files = dict(found)
    for file, sha256 in zip(FILES, source.sha256, strict=True):
        if file not in absent:
            continue
        files[file] = folder / f"{file}.gz"
        try:
            size = SIZES[file]
            fetch(Remote(f"{source.url}{file}.gz", sha256, size, unpacked=True), files[file])
        except DataError as error:
            named = os.environ.get(VARIABLE)
            variable = f"${VARIABLE} (`{named}`)" if named else f"${VARIABLE} (not set)"
            raise DataError(
                f"the four files of {source.name} are neither all in {variable} nor in the cache "
                f"`{folder}`, and `{file}` cannot be downloaded: {error}; put the files there, or "
                "name their folder with `data`"
            ) from error
    return files
