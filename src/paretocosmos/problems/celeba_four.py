"""CelebA, the paper's four attributes: goatee, mustache, no beard, pale skin.

The paper's appendix, "More objectives on CelebA".
"""

from paretocosmos.problems.faces.problem import attributes_of_celeba

__all__ = ["celeba_four"]

celeba_four = attributes_of_celeba(
    ("Goatee", "Mustache", "No_Beard", "Pale_Skin"), module=__name__, about=__doc__
)
