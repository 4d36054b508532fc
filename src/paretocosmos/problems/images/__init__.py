"""Pairs of images in one picture, a task each."""

from paretocosmos.problems.images.composites import (
    RULES,
    Rule,
    RuleName,
    compose_pairs,
    draw_recipes,
    paint_images,
)
from paretocosmos.problems.images.files import FASHION_MNIST, FILES, MNIST, Files, read_pair
from paretocosmos.problems.images.problem import (
    HEADS,
    ImageProblem,
    build_pair_problem,
    find_source_files,
    read_part,
)

__all__ = [
    "FASHION_MNIST",
    "FILES",
    "HEADS",
    "MNIST",
    "RULES",
    "Files",
    "ImageProblem",
    "Rule",
    "RuleName",
    "build_pair_problem",
    "compose_pairs",
    "draw_recipes",
    "find_source_files",
    "paint_images",
    "read_pair",
    "read_part",
]
