"""The transform of the paper against other ways of computing it."""

import io

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from paretocosmos.problems.faces import decode_picture


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Without loss, so that every grey level can be followed."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format="PNG")
    return stream.getvalue()


def random_picture(height: int, width: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(height * width).integers(0, 256, (height, width, 3), np.uint8)


# The published pictures, half of them, wider than high, square, already small, to be enlarged.
SHAPES = [(218, 178), (109, 89), (90, 131), (70, 70), (64, 64), (64, 80), (31, 40)]


@pytest.mark.parametrize(("height", "width"), SHAPES)
@pytest.mark.parametrize("size", [64, 48])
def test_shorter_edge_then_centre(height: int, width: int, size: int) -> None:
    """Against torch's antialiased interpolation, rounded, and a crop by hand."""
    pixels = random_picture(height, width)
    found = decode_picture(png(pixels), size)
    assert found.shape == (3, size, size)
    assert found.dtype == np.uint8
    assert found.flags.c_contiguous
    scale = size / min(height, width)
    new = (size, int(width * scale + 1e-9)) if height <= width else (int(height * scale), size)
    whole = torch.from_numpy(pixels).permute(2, 0, 1)[None].double()
    scaled = F.interpolate(whole, new, mode="bilinear", antialias=True)[0]
    top, left = ((length - size) / 2 for length in new)
    top, left = round(top), round(left)
    expected = scaled[:, top : top + size, left : left + size].numpy()
    # Pillow rounds after each of its two passes: half a grey level each
    assert np.abs(found - expected).max() <= 1.01


def test_the_published_shape_by_hand() -> None:
    """178 x 218 becomes 64 x 78, of which rows 7 to 70 stay: a ramp shows which."""
    ramp = np.repeat(np.arange(218, dtype=np.uint8)[:, None], 178, axis=1)
    found = decode_picture(png(np.stack([ramp] * 3, axis=2)), 64).astype(float)
    centres = (np.arange(7, 71) + 0.5) * 218 / 78 - 0.5
    np.testing.assert_allclose(found[0], np.repeat(centres[:, None], 64, axis=1), atol=0.6)


def test_small_pictures_are_left_as_they_are() -> None:
    pixels = random_picture(64, 64)
    np.testing.assert_array_equal(decode_picture(png(pixels), 64), pixels.transpose(2, 0, 1))


def test_grey_and_palette_become_colour() -> None:
    grey = random_picture(80, 64)[..., 0]
    found = decode_picture(png(grey), 64)
    assert (found == found[0]).all()
    np.testing.assert_array_equal(found[0], grey[8:72])
