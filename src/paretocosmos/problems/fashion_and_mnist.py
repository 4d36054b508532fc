"""Fashion+MNIST: classify the digit at the top left and the garment at the bottom right.

Made as `multi_mnist` is, of MNIST and Fashion-MNIST, whatever their classes: 108,000 train,
12,000 val, 20,000 test images of 36 x 36 pixels.
"""

from paretocosmos.problems.images.pairs import image_pairs
from paretocosmos.problems.images.sources import FASHION_MNIST, MNIST

__all__ = ["fashion_and_mnist"]

fashion_and_mnist = image_pairs(
    (MNIST, FASHION_MNIST),
    pickle="multi_fashion_and_mnist.pickle",
    images="an MNIST digit and a Fashion-MNIST garment",
    module=__name__,
    about=__doc__,
)
