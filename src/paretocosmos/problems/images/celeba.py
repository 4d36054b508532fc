"""CelebA: any attributes of faces, and the sets of them that the paper uses."""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import BenchmarkWarning, ConfigurationError, DataError, unknown
from paretocosmos.objectives import BinaryCrossEntropy, accuracy, misclassification, roc_auc
from paretocosmos.problems.base import SPLITS, Protocol, Wording
from paretocosmos.problems.images.celeba_files import (
    ATTRIBUTES,
    PARTITION,
    TOTAL,
    find_celeba,
    load_pictures,
    read_lists,
)
from paretocosmos.problems.images.problem import ImageProblem, document_loader
from paretocosmos.types import Batch, Metric, Outputs, Targets


def build_celeba(
    name: str, attributes: Sequence[str], protocol: Protocol, data: str | None, size: int
) -> ImageProblem:
    """Build a problem of faces with a yes or no for each attribute, a head of one logit each.

    Args:
        name: the problem's.
        attributes: what to predict, two or more of the 40.
        protocol: ``"clean"`` or ``"paper"``.
        data: a folder; `None` looks in ``$PARETOCOSMOS_DATA`` and the cache.
        size: the side of a picture.
    """
    heads = _normalize_attributes(attributes)
    # before files are searched for and decoded
    if size < 1:
        raise ConfigurationError(f"`size` must be at least 1, found {size}")
    files = find_celeba(data)
    lists = read_lists(files)
    labels = lists.labels[:, [ATTRIBUTES.index(head) for head in heads]]
    counts = np.bincount(lists.parts, minlength=len(SPLITS)).tolist()
    if not all(counts):  # a list of one's own may leave a split empty
        absent = [split for split, count in zip(SPLITS, counts, strict=True) if not count]
        raise DataError(
            f"the {lists.partition} must hold pictures for train, val and test, found none for "
            f"{' and '.join(absent)} among {sum(counts):,}: write a `{PARTITION}` beside "
            f"`{files.labels}` with lines such as `000001.jpg 0`, 1 for val, 2 for test"
        )
    faces, sha256 = load_pictures(files.pictures, lists.numbers.tolist(), size)
    # of everything that decides a sample: files, size, attributes, splits and labels
    digest = hashlib.sha256(f"{sha256} {size} {heads} {counts}".encode())
    digest.update(np.ascontiguousarray(labels).data)
    caveats: tuple[str, ...] = ()
    if len(labels) < TOTAL:
        # hypervolumes on some of the pictures cannot be compared with the paper's
        caveats = (
            f"{len(labels):,} of CelebA's {TOTAL:,} pictures, by the {lists.partition}: compare "
            "with runs on the same pictures, not with the paper's.",
        )
        warnings.warn(f"`{name}`: {caveats[0]}", BenchmarkWarning, stacklevel=3)
    # views of the mapped file: nothing is read before it is used
    pixels = torch.from_numpy(faces).split(counts)
    # floats, since the loss of one logit compares numbers
    truths = torch.from_numpy(labels.astype(np.float32)).split(counts)
    return ImageProblem(
        name=name,
        objectives=tuple(BinaryCrossEntropy(name=h, output=h, target=h) for h in heads),
        reference=(2.0,) * len(heads),  # the paper's, for every loss
        input_shape=tuple(faces.shape[1:]),
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


def celeba(
    *,
    attributes: tuple[str, ...] = ("Goatee", "Mustache"),
    protocol: Protocol = "clean",
    data: str | None = None,
    size: int = 64,
) -> ImageProblem:
    """CelebA: predict any attributes of a face at once, yes or no (202,599 pictures).

    The aligned pictures are used: the shorter edge is scaled to 64 pixels, then the centre is
    taken; pixels are from -1 to 1. They are decoded on the first use, in a minute or two, and kept
    in the cache as one file (2.5 GB), which later uses map into memory. CelebA is for research only
    and must not be passed on, so it is never downloaded: get it from its home page,
    https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html.

    Every listed picture must be there and intact, since half a copy must not pass for the whole. A
    ``list_eval_partition.txt`` of your own may list fewer: the others do not count, and the
    problem's caveats say how many there are.

    Example: ``examples/drawn_faces.py``, which draws a small data set in this layout.

    Args:
        attributes: their names (``Oval_Face`` or ``oval face``), the objectives in this order.
        protocol: ``"paper"`` scores a split in batches, as the published code does, without the
            areas under ROC curves.
        data: a folder with CelebA, itself or below it in ``celeba/`` or ``CelebA/``: the unpacked
            pictures in ``img_align_celeba``, ``list_attr_celeba.txt`` and, if there,
            ``list_eval_partition.txt`` (else the official partition goes by number), as published
            (``Img/``, ``Anno/``, ``Eval/``) or as torchvision lays them down. `None` looks in
            ``$PARETOCOSMOS_DATA`` and the cache.
        size: the side of a picture; the paper's is 64.
    """
    return build_celeba("celeba", attributes, protocol, data, size)


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
        *, protocol: Protocol = "clean", data: str | None = None, size: int = 64
    ) -> ImageProblem:
        """The pictures are found as for `celeba`, which says how to get them.

        Example: ``examples/drawn_faces.py``, which draws a small data set in CelebA's layout.

        Args:
            protocol: ``"paper"`` scores a split in batches, as the published code does.
            data: a folder with CelebA, as for `celeba`.
            size: the side of a picture; the paper's is 64.
        """
        return build_celeba(name, attributes, protocol, data, size)

    return load


# A name each, since the registry finds functions by their names.
celeba_easy = make_loader("celeba_easy")
celeba_hard = make_loader("celeba_hard")
celeba_three = make_loader("celeba_three")
celeba_four = make_loader("celeba_four")
celeba_ten = make_loader("celeba_ten")
