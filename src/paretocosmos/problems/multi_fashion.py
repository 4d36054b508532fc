"""Multi-Fashion: two overlapping garments in one image."""

from paretocosmos.problems._base import Protocol
from paretocosmos.problems.images.composites import RuleName
from paretocosmos.problems.images.pairs import pair_problem
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.problems.images.sources import FASHION_MNIST

__all__ = ["multi_fashion"]


def multi_fashion(
    *,
    protocol: Protocol = "clean",
    rule: RuleName = "published",
    data: str | None = None,
    seed: int = 1,
) -> ImageProblem:
    """Multi-Fashion: name the garment at the top left and the one at the bottom right.

    Made as `multi_mnist` is, of Fashion-MNIST: 108,000 train, 12,000 val, 20,000 test images of
    36 x 36 pixels. Garments fill their frame, so they hide more of each other than digits do.

    Args:
        protocol: ``"paper"`` does as the published code does: a split is scored in batches, and
            pixels are from 0 to 255 where `rule` is ``"published"``; else they are from 0 to 1.
        rule: where the two images are put. ``"published"`` is how the lost files were made, as far
            as it can be told: shifts along the diagonal. ``"text"`` follows the words of Lin et
            al. 2019, with row and column drawn apart, and is harder.
        data: a folder with ``fashion_mnist/`` or torchvision's ``FashionMNIST/raw/`` or the idx
            files themselves, or with the published ``multi_fashion.pickle``, which then comes
            first. `None` looks in ``$PARETOCOSMOS_DATA`` and the cache, idx files before the
            pickle, then downloads.
        seed: decides partners and positions.

    >>> multi_fashion(data="~/data").input_shape  # doctest: +SKIP
    (1, 36, 36)
    """
    return pair_problem(
        "multi_fashion",
        (FASHION_MNIST, FASHION_MNIST),
        pickle="multi_fashion.pickle",
        images="two Fashion-MNIST garments of different classes",
        protocol=protocol,
        rule=rule,
        data=data,
        seed=seed,
    )
