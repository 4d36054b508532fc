"""Where CelebA lies: its pictures, its list of attributes and its partition."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paretocosmos.errors import DataError
from paretocosmos.io.files import VARIABLE, folders, user_path
from paretocosmos.problems.faces.archives import ARCHIVES, number_of

__all__ = ["META", "CelebaFiles", "find_celeba"]

HOME = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
META = "celeba_meta.npz"
# The published pictures, then those brought to 64 x 64 that `META` describes.
FULL, SMALL = "img_align_celeba", "img_align_celeba_64"
LISTS = (".txt", ".csv", ".txt.gz", ".csv.gz")


@dataclass(frozen=True)
class CelebaFiles:
    """What a copy of CelebA is made of.

    Attributes:
        pictures: a folder or an archive.
        attributes: the list of all attributes, or `META`.
        partition: the list of the partition, if there is one beside a list of attributes.
    """

    pictures: Path
    attributes: Path
    partition: Path | None


def find_celeba(data: str | None) -> CelebaFiles:
    """The first complete copy, or an error that names every place and what is expected there."""
    if data is not None and not user_path(data).is_dir():
        why = "is no folder" if user_path(data).exists() else "does not exist"
        raise DataError(
            f"`data` must be a folder with CelebA, found `{data}`, which {why}: name the folder "
            "with its pictures and lists"
        ).with_hint({"data": None})
    places = [
        place
        for folder in folders(data)
        for place in (folder / "celeba", folder / "CelebA", folder)
    ]
    half = ""
    for place in places:
        pictures = next(_pictures(place), None)
        attributes = _attributes(place, pictures)
        if pictures is not None and attributes is not None:
            alone = attributes.name == META
            return CelebaFiles(pictures, attributes, None if alone else _partition(place))
        if pictures is not None:
            half = half or f" (only `{pictures}`, but no list beside it)"
        elif attributes is not None:
            half = half or f" (only `{attributes}`, but no pictures beside it)"
    named = os.environ.get(VARIABLE)
    unset = "" if data is not None or named else f" (${VARIABLE} is not set)"
    looked = ", ".join(f"`{place}`" for place in dict.fromkeys(places))
    raise DataError(
        f"CelebA consists of its aligned pictures, `{FULL}` as a folder or {', '.join(ARCHIVES)} "
        "(also in "
        "`Img/`), and `list_attr_celeba.txt` or .csv (also in `Anno/`), and, if there, "
        f"`list_eval_partition` (also in `Eval/`); or `{META}` and `{SMALL}`, packed or not "
        f"(`{SMALL}.tar.gz`); found no such pair in {looked}{unset}{half}: its terms (research "
        f"only, no redistribution) forbid an automatic download, so get it from {HOME} and name "
        f"its folder with `data` or ${VARIABLE}"
    ).with_hint({"data": None})


def _pictures(place: Path) -> Iterator[Path]:
    """Folders and archives of pictures, the unpacked and the published ones first."""
    for stem in (FULL, SMALL):
        # Kaggle's zip unpacks to a folder in a folder of the same name
        for folder in (place / "Img" / stem, place / stem, place / stem / stem):
            if _holds_pictures(folder):
                yield folder
        for parent in (place / "Img", place):
            for ending in ARCHIVES:
                if (parent / f"{stem}{ending}").is_file():
                    yield parent / f"{stem}{ending}"


def _holds_pictures(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    with os.scandir(folder) as entries:
        return any(number_of(entry.name) is not None for entry in entries)


def _attributes(place: Path, pictures: Path | None) -> Path | None:
    """`META` goes with its own pictures, the list with all others; alone, either goes with any."""
    found = [_list(place, "Anno", "list_attr_celeba"), place / META]
    if pictures is not None and pictures.name.partition(".")[0] == SMALL:
        found.reverse()
    return next((path for path in found if path is not None and path.is_file()), None)


def _partition(place: Path) -> Path | None:
    return _list(place, "Eval", "list_eval_partition")


def _list(place: Path, below: str, stem: str) -> Path | None:
    every = (parent / f"{stem}{ending}" for parent in (place / below, place) for ending in LISTS)
    return next((path for path in every if path.is_file()), None)
