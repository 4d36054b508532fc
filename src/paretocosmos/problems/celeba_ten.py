"""CelebA, the paper's ten random attributes, from black hair to chubby.

The paper's appendix, "More objectives on CelebA".
"""

from paretocosmos.problems.faces.problem import attributes_of_celeba

__all__ = ["celeba_ten"]

ATTRIBUTES = (
    *("Black_Hair", "Wearing_Lipstick", "Bald", "Goatee", "Big_Nose"),
    *("Smiling", "Receding_Hairline", "Sideburns", "No_Beard", "Chubby"),
)

celeba_ten = attributes_of_celeba(ATTRIBUTES, module=__name__, about=__doc__)
