"""Multi-MNIST: classify the digits at the top left and the bottom right (140,000 images).

Two digits of different classes on 36 x 36 pixels; every MNIST image is at the top left twice. There
are 108,000 train, 12,000 val and 20,000 test images. As in the published split, a digit of a train
image may also be in val; none is in test.

>>> import pickle, tempfile
>>> import numpy as np
>>> images, labels = np.zeros((20, 36, 36), np.uint8), np.zeros((20, 2), np.uint8)
>>> folder = tempfile.mkdtemp()
>>> with open(f"{folder}/multi_mnist.pickle", "wb") as file:  # as published, but black
...     pickle.dump((images, labels, images, labels), file)
>>> problem = multi_mnist(data=folder)
>>> problem.names, [len(problem.split(part)) for part in ("train", "val", "test")]
(('top_left', 'bottom_right'), [18, 2, 20])
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
