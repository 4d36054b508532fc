"""Multi-Fashion: classify the garment at the top left and the one at the bottom right.

Made like `multi_mnist`, from Fashion-MNIST: 108,000 train, 12,000 val, 20,000 test images of
36 x 36 pixels. Garments fill their frame, so they hide more of each other than digits do.

>>> import tempfile
>>> from pathlib import Path
>>> folder, count = Path(tempfile.mkdtemp()), (0, 0, 0, 20)
>>> for part in ("train", "t10k"):  # twenty black images each, as the original files hold them
...     images = bytes((0, 0, 8, 3, *count, 0, 0, 0, 28, 0, 0, 0, 28)) + bytes(20 * 28 * 28)
...     _ = (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
...     labels = bytes((0, 0, 8, 1, *count, *range(10), *range(10)))
...     _ = (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)
>>> problem = multi_fashion(data=folder)
>>> problem.names, [len(problem.split(part)) for part in ("train", "val", "test")]
(('top_left', 'bottom_right'), [36, 4, 40])
"""

from paretocosmos.problems.images.pairs import image_pairs
from paretocosmos.problems.images.sources import FASHION_MNIST

__all__ = ["multi_fashion"]

multi_fashion = image_pairs(
    (FASHION_MNIST, FASHION_MNIST),
    images="two Fashion-MNIST garments of different classes",
    module=__name__,
    about=__doc__,
)
