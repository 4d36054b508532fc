"""CelebA's easy pair."""

from paretocosmos.problems._base import Protocol
from paretocosmos.problems.faces.problem import celeba_problem
from paretocosmos.problems.images.problem import ImageProblem

__all__ = ["celeba_easy"]

ATTRIBUTES = ("Goatee", "Mustache")


def celeba_easy(
    *,
    protocol: Protocol = "clean",
    data: str | None = None,
    partition: str = "auto",
    size: int = 64,
    skip: bool = False,
) -> ImageProblem:
    """CelebA, the paper's easy pair: does a face have a goatee, and a mustache?

    Section 5.3 of the paper. Pictures are found as by `celeba`.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.
        data: a folder with CelebA, as for `celeba`.
        partition: ``"official"``, ``"local"``, or ``"auto"``, as for `celeba`.
        size: the side of a picture; the paper's is 64.
        skip: leave out listed pictures that are missing or damaged instead of refusing them.

    >>> celeba_easy(data="~/data").names  # doctest: +SKIP
    ('Goatee', 'Mustache')
    """
    return celeba_problem(
        "celeba_easy",
        ATTRIBUTES,
        protocol=protocol,
        data=data,
        partition=partition,
        size=size,
        skip=skip,
    )
