"""CelebA, the paper's three attributes: goatee, mustache, no beard.

The paper's appendix, "More objectives on CelebA".
"""

from paretocosmos.problems.faces.problem import attributes_of_celeba

__all__ = ["celeba_three"]

celeba_three = attributes_of_celeba(
    ("Goatee", "Mustache", "No_Beard"), module=__name__, about=__doc__
)
