"""Fashion+MNIST: a digit and a garment in one image."""

from paretocosmos.problems._base import Protocol
from paretocosmos.problems.images.composites import RuleName
from paretocosmos.problems.images.pairs import pair_problem
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.problems.images.sources import FASHION_MNIST, MNIST

__all__ = ["fashion_and_mnist"]


def fashion_and_mnist(
    *,
    protocol: Protocol = "clean",
    rule: RuleName = "published",
    data: str | None = None,
    seed: int = 1,
) -> ImageProblem:
    """Fashion+MNIST: name the digit at the top left and the garment at the bottom right.

    Made as `multi_mnist` is, of MNIST and Fashion-MNIST, whatever their classes: 108,000 train,
    12,000 val, 20,000 test images of 36 x 36 pixels.

    Args:
        protocol: ``"paper"`` does as the published code does: a split is scored in batches, and
            pixels are from 0 to 255 where `rule` is ``"published"``; else they are from 0 to 1.
        rule: where the two images are put. ``"published"`` is how the lost files were made, as far
            as it can be told: shifts along the diagonal. ``"text"`` follows the words of Lin et
            al. 2019, with row and column drawn apart, and is harder.
        data: a folder with ``mnist/`` and ``fashion_mnist/``, or torchvision's ``MNIST/raw/`` and
            ``FashionMNIST/raw/``, or with the published ``multi_fashion_and_mnist.pickle``, which
            then comes first. `None` looks in ``$PARETOCOSMOS_DATA`` and the cache, idx files before
            the pickle, then downloads.
        seed: decides partners and positions.

    >>> fashion_and_mnist(data="~/data").input_shape  # doctest: +SKIP
    (1, 36, 36)
    """
    return pair_problem(
        "fashion_and_mnist",
        (MNIST, FASHION_MNIST),
        pickle="multi_fashion_and_mnist.pickle",
        images="an MNIST digit and a Fashion-MNIST garment",
        protocol=protocol,
        rule=rule,
        data=data,
        seed=seed,
    )
