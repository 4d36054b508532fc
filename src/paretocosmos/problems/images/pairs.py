"""From raw files to a problem: what the members of the Multi-MNIST family share."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from paretocosmos.errors import DataError, unknown
from paretocosmos.io.download import sha256_of
from paretocosmos.io.files import VARIABLE, cache_folder, folders
from paretocosmos.problems.base import Protocol, belongs_to, check_protocol
from paretocosmos.problems.images.composites import (
    RULES,
    VERSION,
    Composites,
    Labelled,
    RuleName,
    make,
)
from paretocosmos.problems.images.idx import read_pair
from paretocosmos.problems.images.kept import kept
from paretocosmos.problems.images.problem import ImageProblem, image_problem
from paretocosmos.problems.images.sources import (
    FASHION_MNIST,
    FILES,
    MNIST,
    Files,
    Source,
    download,
    locate,
    places,
)

__all__ = ["image_pairs"]

KNOWN = (MNIST, FASHION_MNIST)
PARTS = ("train", "t10k")
CAVEATS: dict[RuleName, str] = {
    "published": (
        "The published Multi-MNIST images are lost. These are composed by a rule recovered from "
        "networks trained on them (docs/decisions/0024): the same kind of images, not the same "
        "bytes."
    ),
    "text": (
        "These images follow the description in Lin et al. 2019, not the published files. They are "
        "harder, so compare hypervolumes with runs on the same images, not with the paper's."
    ),
}


def image_pairs(
    sources: tuple[Source, Source],
    *,
    images: str,
    module: str,
    about: str | None,
) -> Callable[..., ImageProblem]:
    """A problem of two images in one, from idx files.

    Args:
        sources: of the top-left and of the bottom-right images; a source paired with itself gives
            two images of different classes.
        images: what they are, in words.
        module: the ``__name__`` of the problem's file.
        about: its docstring.
    """

    @belongs_to(module, about)
    def load(
        *,
        protocol: Protocol = "clean",
        rule: RuleName = "published",
        data: str | None = None,
        seed: int = 1,
    ) -> ImageProblem:
        """The images are made on the first use, in seconds, and kept in the cache.

        Args:
            protocol: ``"paper"`` does as the published code does: a split is scored in batches, and
                pixels are from 0 to 255 where `rule` is ``"published"``; else they are from 0 to 1.
            rule: where the two images are put. ``"published"`` is how the lost files were made, as
                far as anyone knows: shifts along the diagonal. ``"text"`` follows the words of
                Lin et al. 2019, with row and column drawn apart, and is harder.
            data: a folder with ``mnist/`` and ``fashion_mnist/``, or torchvision's ``MNIST/raw/``
                and ``FashionMNIST/raw/``, or the idx files themselves where one set is enough.
                `None` looks in ``$PARETOCOSMOS_DATA`` and the cache, then downloads.
            seed: decides which images are paired, and where they are put.
        """
        check_protocol(protocol)
        if rule not in RULES:
            raise unknown("rule", rule, tuple(RULES))
        files = _find(sources, data)
        # of the files as they lie: unpacking them takes longer than reading the composites
        sums = "".join(sha256_of(paths[file]) for paths in files for file in FILES)
        key = hashlib.sha256(sums.encode()).hexdigest()[:16]
        build = partial(_build, sources, files, rule, seed)
        made, sha256 = kept(f"{load.__name__}-v{VERSION}-{rule}-seed{seed}-{key}", build)
        return image_problem(
            load.__name__,
            made,
            images=f"{images}, composed by the rule `{rule}` with seed {seed}",
            sha256=sha256,
            protocol=protocol,
            # the published code hands the bytes of those files to its networks as they are
            pixels="0..255" if (protocol, rule) == ("paper", "published") else "0..1",
            caveats=(CAVEATS[rule],),
        )

    return load


def _find(sources: tuple[Source, Source], data: str | None) -> list[Files]:
    """Return the files of each source, downloaded if no folder was named and none has them."""
    where = folders(data)
    found: dict[Source, Files] = {}
    for source in dict.fromkeys(sources):
        alone = len(set(sources)) == 1
        looked = [spot for folder in where for spot in places(source, folder, alone=alone)]
        files, absent = locate(looked)
        if absent and data is not None:
            raise DataError(_absence(source, looked, absent, where[0]))
        found[source] = download(source) if absent else files
    return [found[source] for source in sources]


def _absence(source: Source, spots: list[Path], absent: list[str], folder: Path) -> str:
    looked = " or ".join(f"`{spot}`" for spot in spots)
    lacking = "none of them" if len(absent) == len(FILES) else f"no {', '.join(absent)}"
    if not folder.is_dir():
        lacking = f"that `{folder}` is no folder"
    return (
        f"{source.name} is the four files {', '.join(FILES)}, plain or .gz, in {looked}, found "
        f"{lacking}: name the folder that holds them, or leave `data` "
        f"out to look in ${VARIABLE} and the cache `{cache_folder()}` and then to download them"
    )


def _build(
    sources: tuple[Source, Source], found: list[Files], rule: RuleName, seed: int
) -> Composites:
    train, test = (
        [_read(*one, part) for one in zip(sources, found, strict=True)] for part in PARTS
    )
    return make(
        (train[0], train[1]),
        (test[0], test[1]),
        rule=RULES[rule],
        different=len(set(sources)) == 1,
        seed=seed,
    )


def _read(source: Source, files: Files, part: str) -> Labelled:
    paths = [files[file] for file in FILES if file.startswith(part)]
    images, labels = read_pair(*paths)
    head = b"\0\0\x08\x01" + len(labels).to_bytes(4, "big")
    found = hashlib.sha256(head + labels.tobytes()).hexdigest()
    other = next((one for one in KNOWN if one != source and found in one.sha256), None)
    if other is not None:  # their files bear the same names
        raise DataError(
            f"`{paths[1]}` should hold labels of {source.name}, found those of {other.name}: name "
            "the parent folder, or the right one"
        )
    return images, labels
