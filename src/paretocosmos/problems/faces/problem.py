"""CelebA: any attributes of faces, and the sets of them that the paper uses."""

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import BenchmarkWarning, ConfigurationError, DataError, unknown
from paretocosmos.objectives import BinaryCrossEntropy, accuracy, misclassification, roc_auc
from paretocosmos.problems.base import SPLITS, Protocol, Wording, check_protocol
from paretocosmos.problems.faces.decoding import DecodedPictures, load_pictures
from paretocosmos.problems.faces.files import (
    ATTRIBUTES,
    TOTAL,
    CelebaFiles,
    PictureLists,
    find_celeba,
    open_pictures,
    read_lists,
)
from paretocosmos.problems.images.problem import ImageProblem, document_loader
from paretocosmos.types import Batch, Metric, Outputs, Targets


def build_celeba(
    name: str,
    attributes: Sequence[str],
    protocol: Protocol,
    data: str | None,
    partition: str,
    size: int,
    skip: bool,
) -> ImageProblem:
    """Build a problem of faces with a yes or no for each attribute, a head of one logit each.

    Args:
        name: the problem's.
        attributes: what to predict, two or more of the 40.
        protocol: ``"clean"`` or ``"paper"``.
        data: a folder; `None` looks in ``$PARETOCOSMOS_DATA`` and the cache.
        partition: ``"official"``, ``"local"`` or ``"auto"``.
        size: the side of a picture.
        skip: leave out listed pictures that are missing or damaged instead of refusing them.
    """
    check_protocol(protocol)
    heads = _normalize_attributes(attributes)
    # before files are searched for and decoded
    if size < 1:
        raise ConfigurationError(f"`size` must be at least 1, found {size}")
    files = find_celeba(data)
    lists = read_lists(files, partition)
    faces = _load_faces(files, lists, size, skip=skip)
    # of the listed pictures, those that could be decoded
    rows = np.isin(lists.numbers, faces.numbers)
    labels = lists.labels[rows][:, [ATTRIBUTES.index(head) for head in heads]]
    counts = np.bincount(lists.parts[rows], minlength=len(SPLITS)).tolist()
    _check_splits(files, lists, counts)
    # of everything that decides a sample: files, size, attributes, splits and labels
    digest = hashlib.sha256(f"{faces.sha256} {size} {heads} {counts}".encode())
    digest.update(np.ascontiguousarray(labels).data)
    caveats = _describe_caveats(lists, faces)
    if caveats:
        warnings.warn(f"`{name}`: {' '.join(caveats)}", BenchmarkWarning, stacklevel=3)
    # views of the mapped file: nothing is read before it is used
    pixels = torch.from_numpy(faces.pixels).split(counts)
    # floats, since the loss of one logit compares numbers
    truths = torch.from_numpy(labels.astype(np.float32)).split(counts)
    return ImageProblem(
        name=name,
        objectives=tuple(BinaryCrossEntropy(name=h, output=h, target=h) for h in heads),
        reference=(2.0,) * len(heads),  # the paper's, for every loss
        input_shape=tuple(faces.pixels.shape[1:]),
        outputs=dict.fromkeys(heads, 1),
        metrics=_make_metrics(heads, protocol),
        protocol=protocol,
        caveats=caveats,
        pixels="-1..1",
        splits={
            # transposed, so that the labels of a head lie side by side
            split: Batch(images, dict(zip(heads, truth.T.contiguous(), strict=True)))
            for split, images, truth in zip(SPLITS, pixels, truths, strict=True)
        },
        images=f"{len(labels):,} of CelebA's {TOTAL:,} faces at {size} x {size} by the "
        f"{lists.partition} ({', '.join(f'{count:,}' for count in counts)})",
        sha256=digest.hexdigest(),
        wording=Wording.of_tasks(
            "What does a face show?",
            "faces",
            {head: f"answers on {head.replace('_', ' ').lower()}" for head in heads},
        ),
    )


def _check_splits(files: CelebaFiles, lists: PictureLists, counts: Sequence[int]) -> None:
    """Raise if a split has no pictures."""
    # a list of one's own, or a copy of a few pictures, may leave a split empty
    if not all(counts):
        absent = [split for split, count in zip(SPLITS, counts, strict=True) if not count]
        raise DataError(
            f"`{files.pictures}` must hold pictures for train, val and test by the "
            f"{lists.partition}, found none for {' and '.join(absent)} among {sum(counts):,}: add "
            "some, or put your own `list_eval_partition.txt` (lines such as `000001.jpg 0`, 1 for "
            "val, 2 for test) beside a list_attr_celeba"
        )


def _normalize_attributes(attributes: Sequence[str]) -> tuple[str, ...]:
    """Return the official names of attributes; raise for unknown or repeated ones."""
    official_names = {name.lower(): name for name in ATTRIBUTES}
    heads = []
    for attribute in attributes:
        # `oval face`, `Oval-Face` and `OVAL_FACE` all mean the same
        plain = "_".join(attribute.lower().replace("_", " ").replace("-", " ").split())
        if plain not in official_names:
            raise unknown("attribute", attribute, ATTRIBUTES)
        heads.append(official_names[plain])
    # fewer than two, or one of them twice
    if len(set(heads)) < max(2, len(heads)):
        raise ConfigurationError(
            f"`attributes` takes two or more of CelebA's 40, each once, found {list(attributes)}: "
            "such as Goatee,Mustache"
        )
    return tuple(heads)


def _make_metrics(heads: Sequence[str], protocol: Protocol) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {
        "misclassification": partial(_mean_misclassification, heads=heads)
    }
    for head in heads:
        metrics[f"accuracy_{head}"] = partial(accuracy, output=head, target=head)
        if protocol == "clean":  # over batches of 256, some without a goatee, it is undefined
            metrics[f"roc_auc_{head}"] = partial(roc_auc, output=head, target=head)
    return metrics


def _mean_misclassification(outputs: Outputs, targets: Targets, *, heads: Sequence[str]) -> Tensor:
    """Average over tasks, as the paper reports at the centre ray."""
    rates = [misclassification(outputs, targets, output=head, target=head) for head in heads]
    return torch.stack(rates).mean()


def _describe_caveats(lists: PictureLists, faces: DecodedPictures) -> tuple[str, ...]:
    count, missing = len(faces.numbers), _find_missing(lists, faces)
    caveats = []
    # hypervolumes on some of the pictures cannot be compared with the paper's
    if count < TOTAL:
        caveats.append(
            f"{count:,} of CelebA's {TOTAL:,} pictures, by the {lists.partition}: compare with "
            "runs on the same pictures, not with the paper's."
        )
    if missing or faces.damaged:
        caveats.append(
            f"{len(missing):,} of the listed pictures are missing and {len(faces.damaged):,} "
            "damaged: they are left out."
        )
    return tuple(caveats)


def _load_faces(
    files: CelebaFiles, lists: PictureLists, size: int, *, skip: bool
) -> DecodedPictures:
    """Load the listed pictures; raise if some are missing or damaged and `skip` is not set."""
    pictures = open_pictures(files.pictures)
    wanted = lists.numbers.tolist()
    if pictures.numbers is not None and not skip:  # before minutes of decoding, where that is known
        _check_complete(files, [number for number in wanted if number not in pictures.numbers], {})
    faces = load_pictures(pictures, wanted, size)
    if not skip:
        _check_complete(files, _find_missing(lists, faces), faces.damaged)
    return faces


def _find_missing(lists: PictureLists, faces: DecodedPictures) -> list[int]:
    # a damaged picture is not missing: it is reported with its own reason
    present = {*faces.numbers.tolist(), *faces.damaged}
    return [number for number in lists.numbers.tolist() if number not in present]


def _check_complete(files: CelebaFiles, missing: Sequence[int], damaged: Mapping[int, str]) -> None:
    problems = []
    if missing:
        problems.append(f"{len(missing):,} missing, {min(missing):06d}.jpg the first")
    if damaged:
        # the smallest number, whatever the order of decoding
        number = min(damaged)
        problems.append(f"{len(damaged):,} damaged, {number:06d}.jpg the first ({damaged[number]})")
    if problems:
        raise DataError(
            f"`{files.pictures}` must hold every picture in `{files.attributes}`, found "
            f"{' and '.join(problems)}: add them, or leave them out (skip=True)"
        ).with_hint({"skip": True})


def celeba(
    *,
    attributes: tuple[str, ...] = ("Goatee", "Mustache"),
    protocol: Protocol = "clean",
    data: str | None = None,
    partition: str = "auto",
    size: int = 64,
    skip: bool = False,
) -> ImageProblem:
    """CelebA: predict any attributes of a face at once, yes or no (202,599 pictures).

    The aligned pictures are used: the shorter edge is brought to 64 pixels, then the centre is
    taken; pixels are from -1 to 1. They are decoded on the first use, in a minute or two, and kept
    in the cache as one file (2.5 GB), which later uses map into memory. CelebA is for research only
    and must not be passed on, so it is never downloaded: get it from its home page,
    https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html.

    Only listed pictures count. If a listed one is missing or damaged, the data are refused, since
    half a copy must not pass for the whole. `skip` goes on with the others, and the problem's
    caveats say how many there are.

    Example: ``examples/drawn_faces.py``, which draws a small data set in this layout.

    Args:
        attributes: their names (``Oval_Face`` or ``oval face``), the objectives in this order.
        protocol: ``"paper"`` scores a split in batches, as the published code does, without the
            areas under ROC curves.
        data: a folder with CelebA, itself or below it in ``celeba/`` or ``CelebA/``: pictures in
            ``img_align_celeba``, a folder, zip or tar, the latter never unpacked, and
            ``list_attr_celeba.txt`` or ``.csv``, as published (``Img/``, ``Anno/``, ``Eval/``), as
            torchvision lays them down, or as Kaggle's; or ``img_align_celeba_64``, already small,
            with ``celeba_meta.npz``. `None` looks in ``$PARETOCOSMOS_DATA`` and the cache.
        partition: ``"official"`` (``list_eval_partition``, or else by number), ``"local"`` (the
            one of ``celeba_meta.npz``), or ``"auto"``: the local one where that file is used. A
            ``list_eval_partition`` of your own may list fewer pictures: the others do not count.
        size: the side of a picture; the paper's is 64.
        skip: leave out listed pictures that are missing or damaged instead of refusing them.
    """
    return build_celeba("celeba", attributes, protocol, data, partition, size, skip)


PAPER_SETS = {
    "celeba_easy": (
        ("Goatee", "Mustache"),
        """CelebA, the paper's easy pair: does a face have a goatee, and a mustache?

Section 5.3 of the paper.""",
    ),
    "celeba_hard": (
        ("Oval_Face", "Pointy_Nose"),
        """CelebA, the paper's hard pair: is the face oval, and is the nose pointy?

Section 5.3 of the paper.""",
    ),
    "celeba_three": (
        ("Goatee", "Mustache", "No_Beard"),
        """CelebA, the paper's three attributes: goatee, mustache, no beard.

The paper's appendix, "More objectives on CelebA".""",
    ),
    "celeba_four": (
        ("Goatee", "Mustache", "No_Beard", "Pale_Skin"),
        """CelebA, the paper's four attributes: goatee, mustache, no beard, pale skin.

The paper's appendix, "More objectives on CelebA".""",
    ),
    "celeba_ten": (
        (
            *("Black_Hair", "Wearing_Lipstick", "Bald", "Goatee", "Big_Nose"),
            *("Smiling", "Receding_Hairline", "Sideburns", "No_Beard", "Chubby"),
        ),
        """CelebA, the paper's ten random attributes, from black hair to chubby.

The paper's appendix, "More objectives on CelebA".""",
    ),
}
"""The attributes of each set, and the beginning of its docstring."""


def make_loader(name: str) -> Callable[..., ImageProblem]:
    """Return a function that loads CelebA with one of the paper's sets of attributes."""
    attributes, about = PAPER_SETS[name]

    @document_loader(name, about)
    def load(
        *,
        protocol: Protocol = "clean",
        data: str | None = None,
        partition: str = "auto",
        size: int = 64,
        skip: bool = False,
    ) -> ImageProblem:
        """The pictures are found as for `celeba`, which says how to get them.

        Example: ``examples/drawn_faces.py``, which draws a small data set in CelebA's layout.

        Args:
            protocol: ``"paper"`` scores a split in batches, as the published code does.
            data: a folder with CelebA, as for `celeba`.
            partition: ``"official"``, ``"local"``, or ``"auto"``, as for `celeba`.
            size: the side of a picture; the paper's is 64.
            skip: leave out listed pictures that are missing or damaged instead of refusing them.
        """
        return build_celeba(name, attributes, protocol, data, partition, size, skip)

    return load


# A name each, since the registry finds functions by their names.
celeba_easy = make_loader("celeba_easy")
celeba_hard = make_loader("celeba_hard")
celeba_three = make_loader("celeba_three")
celeba_four = make_loader("celeba_four")
celeba_ten = make_loader("celeba_ten")
