"""Multi-MNIST: classify the digits at the top left and the bottom right (140,000 images).

Two digits of different classes on 36 x 36 pixels; every MNIST image is at the top left twice. There
are 108,000 train, 12,000 val and 20,000 test images. As in the published split, a digit of a train
image may also be in val; none is in test.

>>> import tempfile
>>> from pathlib import Path
>>> folder, count = Path(tempfile.mkdtemp()), (0, 0, 0, 20)
>>> for part in ("train", "t10k"):  # twenty black images each, as the original files hold them
...     images = bytes((0, 0, 8, 3, *count, 0, 0, 0, 28, 0, 0, 0, 28)) + bytes(20 * 28 * 28)
...     _ = (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
...     labels = bytes((0, 0, 8, 1, *count, *range(10), *range(10)))
...     _ = (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)
>>> problem = multi_mnist(data=folder)
>>> problem.names, [len(problem.split(part)) for part in ("train", "val", "test")]
(('top_left', 'bottom_right'), [36, 4, 40])
"""

from paretocosmos.problems.images.pairs import image_pairs
from paretocosmos.problems.images.sources import MNIST

__all__ = ["multi_mnist"]

multi_mnist = image_pairs(
    (MNIST, MNIST),
    images="two MNIST digits of different classes",
    module=__name__,
    about=__doc__,
)
