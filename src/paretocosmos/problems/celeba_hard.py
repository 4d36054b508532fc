"""CelebA, the paper's hard pair: is the face oval, and is the nose pointy?

Section 5.3 of the paper.
"""

from paretocosmos.problems.faces.problem import attributes_of_celeba

__all__ = ["celeba_hard"]

celeba_hard = attributes_of_celeba(("Oval_Face", "Pointy_Nose"), module=__name__, about=__doc__)
