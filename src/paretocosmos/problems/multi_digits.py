"""Multi-Digits: Multi-MNIST for a laptop without a network."""

import numpy as np

from paretocosmos.errors import require_extra
from paretocosmos.problems.base import Protocol, check_protocol
from paretocosmos.problems.images.composites import RULES, Labelled, held_out, make
from paretocosmos.problems.images.problem import ImageProblem, image_problem

__all__ = ["multi_digits"]

# Doubled to 16 pixels, two digits overlap as much as MNIST's do: those are 20 pixels wide in a
# frame of 28, and the shift between the two, 4 on average, is the same. A LeNet needs 16 or more.
SCALE = 2
TEST = 0.2


def multi_digits(*, protocol: Protocol = "clean", copies: int = 10, seed: int = 1) -> ImageProblem:
    """Multi-Digits: Multi-MNIST of scikit-learn's 1,797 small digits, offline and in seconds.

    Made as `multi_mnist` is with its rule ``"text"``, on 24 x 24 pixels. A fifth of the digits are
    set aside for test first.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.
        copies: how often each digit is the top-left one; fewer make a smaller problem.
        seed: decides partners and positions.

    >>> problem = multi_digits(copies=2)
    >>> problem.input_shape, [len(problem.split(name)) for name in ("train", "val", "test")]
    ((1, 24, 24), [2586, 288, 720])
    """
    check_protocol(protocol)
    train, test = _digits()
    made = make(
        (train, train), (test, test), rule=RULES["text"], different=True, seed=seed, copies=copies
    )
    return image_problem(
        "multi_digits",
        made,
        images=f"two digits of scikit-learn's of different classes, composed with seed {seed}",
        sha256=made.sha256,
        protocol=protocol,
    )


def _digits() -> tuple[Labelled, Labelled]:
    """The digits for train and those for test, ``[n, 16, 16]``."""
    require_extra("sklearn", "tabular", "the problem `multi_digits`")
    from sklearn.datasets import load_digits

    found = load_digits()
    # from 0..16 to 0..255, in whole numbers, so that every machine makes the same bytes
    small = (found.images.astype(np.int64) * 255 + 8) // 16
    images = small.astype(np.uint8).repeat(SCALE, axis=1).repeat(SCALE, axis=2)
    labels = found.target.astype(np.uint8)
    train, test = held_out(len(labels), TEST)
    return (images[train], labels[train]), (images[test], labels[test])
