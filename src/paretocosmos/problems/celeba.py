"""CelebA: attributes of faces, any two or more of its 40."""

from paretocosmos.problems.base import Protocol
from paretocosmos.problems.faces.problem import celeba_problem
from paretocosmos.problems.images.problem import ImageProblem

__all__ = ["celeba"]


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
    return celeba_problem("celeba", attributes, protocol, data, partition, size, skip)
