"""CelebA: faces with attributes."""

from paretocosmos.problems.faces.decoding import DecodedPictures, decode_picture, load_pictures
from paretocosmos.problems.faces.files import (
    ATTRIBUTES,
    TOTAL,
    CelebaFiles,
    open_pictures,
    parse_number,
    read_lists,
)

__all__ = [
    "ATTRIBUTES",
    "TOTAL",
    "CelebaFiles",
    "DecodedPictures",
    "decode_picture",
    "load_pictures",
    "open_pictures",
    "parse_number",
    "read_lists",
]
