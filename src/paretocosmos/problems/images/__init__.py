"""Images: pairs in one picture with a task each, and CelebA's faces."""

from paretocosmos.problems.images.celeba_files import ATTRIBUTES, decode_picture, load_pictures
from paretocosmos.problems.images.composites import (
    RULES,
    Rule,
    RuleName,
    compose_pairs,
    draw_recipes,
    paint_images,
)
from paretocosmos.problems.images.files import FASHION_MNIST, MNIST, read_pair
from paretocosmos.problems.images.problem import (
    HEADS,
    ImageProblem,
    build_pair_problem,
    find_source_files,
    read_part,
)

__all__ = [
    "ATTRIBUTES",
    "FASHION_MNIST",
    "HEADS",
    "MNIST",
    "RULES",
    "ImageProblem",
    "Rule",
    "RuleName",
    "build_pair_problem",
    "compose_pairs",
    "decode_picture",
    "draw_recipes",
    "find_source_files",
    "load_pictures",
    "paint_images",
    "read_pair",
    "read_part",
]
