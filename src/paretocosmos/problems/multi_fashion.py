"""Multi-Fashion: classify the garment at the top left and the one at the bottom right.

Made as `multi_mnist` is, of Fashion-MNIST: 108,000 train, 12,000 val, 20,000 test images of
36 x 36 pixels. Garments fill their frame, so they hide more of each other than digits do.
"""

from paretocosmos.problems.images.pairs import image_pairs
from paretocosmos.problems.images.sources import FASHION_MNIST

__all__ = ["multi_fashion"]

multi_fashion = image_pairs(
    (FASHION_MNIST, FASHION_MNIST),
    pickle="multi_fashion.pickle",
    images="two Fashion-MNIST garments of different classes",
    module=__name__,
    about=__doc__,
)
