"""Four attributes of CelebA."""

from paretocosmos.problems._base import Protocol
from paretocosmos.problems.faces.problem import celeba_problem
from paretocosmos.problems.images.problem import ImageProblem

__all__ = ["celeba_four"]

ATTRIBUTES = ("Goatee", "Mustache", "No_Beard", "Pale_Skin")


def celeba_four(
    *,
    protocol: Protocol = "clean",
    data: str | None = None,
    partition: str = "auto",
    size: int = 64,
    skip: bool = False,
) -> ImageProblem:
    """CelebA, the paper's four attributes: goatee, mustache, no beard, pale skin.

    The paper's appendix, "More objectives on CelebA". Pictures are found as by `celeba`.

    Args:
        protocol: ``"paper"`` scores a split in batches, as the published code does.
        data: a folder with CelebA, as for `celeba`.
        partition: ``"official"``, ``"local"``, or ``"auto"``, as for `celeba`.
        size: the side of a picture; the paper's is 64.
        skip: leave out listed pictures that are missing or damaged instead of refusing them.

    >>> celeba_four(data="~/data").names  # doctest: +SKIP
    ('Goatee', 'Mustache', 'No_Beard', 'Pale_Skin')
    """
    return celeba_problem(
        "celeba_four",
        ATTRIBUTES,
        protocol=protocol,
        data=data,
        partition=partition,
        size=size,
        skip=skip,
    )
