"""Fashion+MNIST: classify the digit at the top left and the garment at the bottom right.

Made like `multi_mnist`, from MNIST and Fashion-MNIST, with any two classes: 108,000 train,
12,000 val, 20,000 test images of 36 x 36 pixels.

>>> import tempfile
>>> from pathlib import Path
>>> folder, count = Path(tempfile.mkdtemp()), (0, 0, 0, 20)
>>> for place in (folder / "mnist", folder / "fashion_mnist"):
...     place.mkdir()
...     for part in ("train", "t10k"):  # twenty black images each, as the original files hold them
...         images = bytes((0, 0, 8, 3, *count, 0, 0, 0, 28, 0, 0, 0, 28)) + bytes(20 * 28 * 28)
...         _ = (place / f"{part}-images-idx3-ubyte").write_bytes(images)
...         labels = bytes((0, 0, 8, 1, *count, *range(10), *range(10)))
...         _ = (place / f"{part}-labels-idx1-ubyte").write_bytes(labels)
>>> problem = fashion_and_mnist(data=folder)
>>> problem.names, [len(problem.split(part)) for part in ("train", "val", "test")]
(('top_left', 'bottom_right'), [36, 4, 40])
"""

from paretocosmos.problems.images.pairs import image_pairs
from paretocosmos.problems.images.sources import FASHION_MNIST, MNIST

__all__ = ["fashion_and_mnist"]

fashion_and_mnist = image_pairs(
    (MNIST, FASHION_MNIST),
    images="an MNIST digit and a Fashion-MNIST garment",
    module=__name__,
    about=__doc__,
)
