"""Images: pairs in one picture with a task each, and CelebA's faces."""

from paretocosmos.problems.images.celeba_files import ATTRIBUTES, decode_picture, load_pictures
from paretocosmos.problems.images.composites import (
    RULES,
    Labelled,
    Rule,
    RuleName,
    compose_pairs,
    draw_recipes,
    paint_images,
)
from paretocosmos.problems.images.files import (
    FASHION_MNIST,
    FILES,
    MNIST,
    Files,
    Source,
    download_source,
    find_files,
    read_pair,
    read_unpacked,
)
from paretocosmos.problems.images.problem import (
    HEADS,
    ImageProblem,
    Pixels,
    build_pair_problem,
    fashion_and_mnist,
    find_source_files,
    multi_digits,
    multi_fashion,
    multi_mnist,
    read_part,
)
