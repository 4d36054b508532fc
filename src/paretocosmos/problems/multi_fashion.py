"""Multi-Fashion: classify the garment at the top left and the one at the bottom right.

Made like `multi_mnist`, from Fashion-MNIST: 108,000 train, 12,000 val, 20,000 test images of
36 x 36 pixels. Garments fill their frame, so they hide more of each other than digits do.

>>> import pickle, tempfile
>>> import numpy as np
>>> images, labels = np.zeros((20, 36, 36), np.uint8), np.zeros((20, 2), np.uint8)
>>> folder = tempfile.mkdtemp()
>>> with open(f"{folder}/multi_fashion.pickle", "wb") as file:  # as published, but black
...     pickle.dump((images, labels, images, labels), file)
>>> problem = multi_fashion(data=folder)
>>> problem.names, [len(problem.split(part)) for part in ("train", "val", "test")]
(('top_left', 'bottom_right'), [18, 2, 20])
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
