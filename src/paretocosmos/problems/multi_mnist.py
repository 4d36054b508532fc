"""Multi-MNIST: two overlapping digits in one image."""

from paretocosmos.problems._base import Protocol
from paretocosmos.problems.images.composites import RuleName
from paretocosmos.problems.images.pairs import pair_problem
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.problems.images.sources import MNIST

__all__ = ["multi_mnist"]


def multi_mnist(
    *,
    protocol: Protocol = "clean",
    rule: RuleName = "published",
    data: str | None = None,
    seed: int = 1,
) -> ImageProblem:
    """Multi-MNIST: name the digit at the top left and the one at the bottom right (140,000 images).

    Two digits of different classes on 36 x 36 pixels, each image of MNIST twice at the top left;
    108,000 train, 12,000 val, 20,000 test. The images are made on the first use, in seconds, and
    kept in the cache. A train image's digits may occur in val as well, as in the published split;
    none is in test.

    Args:
        protocol: ``"paper"`` does as the published code does: a split is scored in batches, and
            pixels are from 0 to 255 where `rule` is ``"published"``; else they are from 0 to 1.
        rule: where the two images are put. ``"published"`` is how the lost files were made, as far
            as it can be told: shifts along the diagonal. ``"text"`` follows the words of Lin et
            al. 2019, with row and column drawn apart, and is harder.
        data: a folder with ``mnist/`` or torchvision's ``MNIST/raw/`` or the idx files themselves,
            or with the published ``multi_mnist.pickle``, which then comes first. `None` looks in
            ``$PARETOCOSMOS_DATA`` and the cache, idx files before the pickle, then downloads.
        seed: decides partners and positions.

    >>> multi_mnist(data="~/data").input_shape  # doctest: +SKIP
    (1, 36, 36)
    """
    return pair_problem(
        "multi_mnist",
        (MNIST, MNIST),
        pickle="multi_mnist.pickle",
        images="two MNIST digits of different classes",
        protocol=protocol,
        rule=rule,
        data=data,
        seed=seed,
    )
