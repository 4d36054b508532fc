"""From CelebA's files to a problem: what its members share."""

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from paretocosmos.errors import BenchmarkWarning, ConfigurationError, DataError, unknown
from paretocosmos.objectives import BinaryCrossEntropy, accuracy, misclassification, roc_auc
from paretocosmos.problems.base import SPLITS, Protocol, Wording, belongs_to, check_protocol
from paretocosmos.problems.faces.archives import open_pictures
from paretocosmos.problems.faces.decoded import Decoded, decoded
from paretocosmos.problems.faces.files import CelebaFiles, find_celeba
from paretocosmos.problems.faces.lists import ATTRIBUTES, TOTAL, Listed, read_lists
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.types import Batch, Metric, Outputs, Targets

__all__ = ["attributes_of_celeba", "celeba_problem"]


def attributes_of_celeba(
    attributes: Sequence[str], *, module: str, about: str | None
) -> Callable[..., ImageProblem]:
    """A problem of CelebA with the attributes that the paper chose.

    Args:
        attributes: what to tell.
        module: the ``__name__`` of the problem's file.
        about: its docstring.
    """

    @belongs_to(module, about)
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
        return celeba_problem(load.__name__, attributes, protocol, data, partition, size, skip)

    return load


def celeba_problem(
    name: str,
    attributes: Sequence[str],
    protocol: Protocol,
    data: str | None,
    partition: str,
    size: int,
    skip: bool,
) -> ImageProblem:
    """Faces with a yes or no for each attribute, a head of one logit each.

    Args:
        name: the problem's.
        attributes: what to tell, two or more of the 40.
        protocol: ``"clean"`` or ``"paper"``.
        data: a folder; `None` looks in ``$PARETOCOSMOS_DATA`` and the cache.
        partition: ``"official"``, ``"local"`` or ``"auto"``.
        size: the side of a picture.
        skip: leave out listed pictures that are missing or damaged instead of refusing them.
    """
    check_protocol(protocol)
    heads = _heads(attributes)
    if size < 1:
        raise ConfigurationError(f"`size` must be at least 1, found {size}")
    files = find_celeba(data)
    listed = read_lists(files, partition)
    faces = _faces(files, listed, size, skip=skip)
    rows = np.isin(listed.numbers, faces.numbers)
    labels = listed.labels[rows][:, [ATTRIBUTES.index(head) for head in heads]]
    counts = np.bincount(listed.parts[rows], minlength=len(SPLITS)).tolist()
    if not all(counts):
        absent = [split for split, count in zip(SPLITS, counts, strict=True) if not count]
        raise DataError(
            f"`{files.pictures}` must hold pictures for train, val and test by the "
            f"{listed.partition}, "
            f"found none for {' and '.join(absent)} among {len(labels):,}: add some, or put your "
            "own `list_eval_partition.txt` (lines such as `000001.jpg 0`, 1 for val, 2 for "
            "test) beside a list_attr_celeba"
        )
    digest = hashlib.sha256(f"{faces.sha256} {size} {heads} {counts}".encode())
    digest.update(np.ascontiguousarray(labels).data)
    caveats = _caveats(listed, faces)
    if caveats:
        warnings.warn(f"`{name}`: {' '.join(caveats)}", BenchmarkWarning, stacklevel=3)
    # views of the mapped file: nothing is read before it is used
    pixels = torch.from_numpy(faces.pixels).split(counts)
    truths = torch.from_numpy(labels.astype(np.float32)).split(counts)
    return ImageProblem(
        name=name,
        objectives=tuple(BinaryCrossEntropy(name=h, output=h, target=h) for h in heads),
        reference=(2.0,) * len(heads),  # the paper's, for every loss
        input_shape=tuple(faces.pixels.shape[1:]),
        outputs=dict.fromkeys(heads, 1),
        metrics=_metrics(heads, protocol),
        protocol=protocol,
        caveats=caveats,
        pixels="-1..1",
        splits={
            split: Batch(images, dict(zip(heads, truth.T.contiguous(), strict=True)))
            for split, images, truth in zip(SPLITS, pixels, truths, strict=True)
        },
        images=f"{len(labels):,} of CelebA's {TOTAL:,} faces at {size} x {size} by the "
        f"{listed.partition} ({', '.join(f'{count:,}' for count in counts)})",
        sha256=digest.hexdigest(),
        wording=Wording.of_tasks(
            "What does a face show?",
            "faces",
            {head: f"answers on {head.replace('_', ' ').lower()}" for head in heads},
        ),
    )


def _heads(attributes: Sequence[str]) -> tuple[str, ...]:
    """The official names of attributes, each once."""
    known = {name.lower(): name for name in ATTRIBUTES}
    heads = []
    for attribute in attributes:
        plain = "_".join(attribute.lower().replace("_", " ").replace("-", " ").split())
        if plain not in known:
            raise unknown("attribute", attribute, ATTRIBUTES)
        heads.append(known[plain])
    if len(set(heads)) < max(2, len(heads)):
        raise ConfigurationError(
            f"`attributes` takes two or more of CelebA's 40, each once, found {list(attributes)}: "
            "such as Goatee,Mustache"
        )
    return tuple(heads)


def _metrics(heads: Sequence[str], protocol: Protocol) -> dict[str, Metric]:
    every: dict[str, Metric] = {"misclassification": partial(_mean_misclassification, heads=heads)}
    for head in heads:
        every[f"accuracy_{head}"] = partial(accuracy, output=head, target=head)
        if protocol == "clean":  # over batches of 256, some without a goatee, it is none
            every[f"roc_auc_{head}"] = partial(roc_auc, output=head, target=head)
    return every


def _mean_misclassification(outputs: Outputs, targets: Targets, *, heads: Sequence[str]) -> Tensor:
    """The mean over tasks, which the paper reports at the centre ray."""
    each = [misclassification(outputs, targets, output=head, target=head) for head in heads]
    return torch.stack(each).mean()


def _caveats(listed: Listed, faces: Decoded) -> tuple[str, ...]:
    count, missing = len(faces.numbers), _missing(listed, faces)
    said = []
    if count < TOTAL:
        said.append(
            f"{count:,} of CelebA's {TOTAL:,} pictures, by the {listed.partition}: compare with "
            "runs on the same pictures, not with the paper's."
        )
    if missing or faces.damaged:
        said.append(
            f"{len(missing):,} of the listed pictures are missing and {len(faces.damaged):,} "
            "damaged: they are left out."
        )
    return tuple(said)


def _faces(files: CelebaFiles, listed: Listed, size: int, *, skip: bool) -> Decoded:
    """The listed pictures, unless some are missing or damaged and `skip` is not set."""
    pictures = open_pictures(files.pictures)
    wanted = listed.numbers.tolist()
    if pictures.numbers is not None and not skip:  # before minutes of decoding, where that is known
        _check(files, [number for number in wanted if number not in pictures.numbers], {})
    faces = decoded(pictures, wanted, size)
    if not skip:
        _check(files, _missing(listed, faces), faces.damaged)
    return faces


def _missing(listed: Listed, faces: Decoded) -> list[int]:
    there = {*faces.numbers.tolist(), *faces.damaged}
    return [number for number in listed.numbers.tolist() if number not in there]


def _check(files: CelebaFiles, missing: Sequence[int], damaged: Mapping[int, str]) -> None:
    found = []
    if missing:
        found.append(f"{len(missing):,} missing, {min(missing):06d}.jpg the first")
    if damaged:
        one = min(damaged)
        found.append(f"{len(damaged):,} damaged, {one:06d}.jpg the first ({damaged[one]})")
    if found:
        raise DataError(
            f"`{files.pictures}` must hold every picture in `{files.attributes}`, found "
            f"{' and '.join(found)}: add them, or leave them out (skip=True)"
        ).with_hint({"skip": True})
