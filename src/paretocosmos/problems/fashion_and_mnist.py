"""Fashion+MNIST: classify the digit at the top left and the garment at the bottom right.

Made like `multi_mnist`, from MNIST and Fashion-MNIST, with any two classes: 108,000 train,
12,000 val, 20,000 test images of 36 x 36 pixels.

>>> import pickle, tempfile
>>> import numpy as np
>>> images, labels = np.zeros((20, 36, 36), np.uint8), np.zeros((20, 2), np.uint8)
>>> folder = tempfile.mkdtemp()
>>> with open(f"{folder}/multi_fashion_and_mnist.pickle", "wb") as file:  # as published, but black
...     pickle.dump((images, labels, images, labels), file)
>>> problem = fashion_and_mnist(data=folder)
>>> problem.names, [len(problem.split(part)) for part in ("train", "val", "test")]
(('top_left', 'bottom_right'), [18, 2, 20])
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
