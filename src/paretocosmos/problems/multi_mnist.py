"""Multi-MNIST: classify the digits at the top left and the bottom right (140,000 images).

Two digits of different classes on 36 x 36 pixels, each image of MNIST twice at the top left;
108,000 train, 12,000 val, 20,000 test. A train image's digits may occur in val as well, as in the
published split; none is in test.
"""

from paretocosmos.problems.images.pairs import image_pairs
from paretocosmos.problems.images.sources import MNIST

__all__ = ["multi_mnist"]

multi_mnist = image_pairs(
    (MNIST, MNIST),
    pickle="multi_mnist.pickle",
    images="two MNIST digits of different classes",
    module=__name__,
    about=__doc__,
)
