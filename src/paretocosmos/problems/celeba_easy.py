"""CelebA, the paper's easy pair: does a face have a goatee, and a mustache?

Section 5.3 of the paper.
"""

from paretocosmos.problems.faces.problem import attributes_of_celeba

__all__ = ["celeba_easy"]

celeba_easy = attributes_of_celeba(("Goatee", "Mustache"), module=__name__, about=__doc__)
