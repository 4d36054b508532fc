"""Pictures for dark pages: lightness turned round, hues as they are."""

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paretocosmos.errors import require_extra
from paretocosmos.io.files import write_bytes
from paretocosmos.io.palette import DARK, LIGHT

# From linear RGB to the responses of the eye, and from their cube roots to lightness and two hues
# (Ottosson 2020, OKLab).
_EYE = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)

# Of a colour as vivid as this or more, how dark it may become.
VIVID, DARKEST = 0.12, 0.62

Pixels = npt.NDArray[np.float64]


def save_dark(path: Path) -> Path:
    """Write a picture once more, for dark pages, as ``NAME-dark.png`` beside it.

    Args:
        path: a PNG that `save_figure` wrote, on white.
    """
    require_extra("matplotlib", "plot", "drawing a front")
    from matplotlib import image

    pixels = np.asarray(image.imread(path), dtype=np.float64)[..., :3]
    stream = io.BytesIO()
    image.imsave(stream, invert_lightness(pixels), format="png", metadata={"Software": ""})
    dark = path.with_name(f"{path.stem}-dark{path.suffix}")
    write_bytes(dark, stream.getvalue())
    return dark


def invert_lightness(pixels: Pixels) -> Pixels:
    """Turn ``[..., 3]`` colours from 0 to 1 for dark pages: white becomes paper, ink light.

    >>> white = invert_lightness(np.ones((1, 3)))[0]
    >>> "#" + "".join(f"{round(255 * value):02x}" for value in white) == DARK["paper"]
    True
    """
    colours = _to_oklab(pixels)
    white, ink, paper, light = (
        _to_oklab(_from_hex(colour))
        for colour in ("#ffffff", LIGHT["ink"], DARK["paper"], DARK["ink"])
    )
    share = (colours[..., :1] - ink[0]) / (white[0] - ink[0])  # 1 is white, 0 is ink
    neutral = light + share * (paper - light)
    # a bright colour would turn too dark to be seen
    vivid = np.clip(np.linalg.norm(colours[..., 1:], axis=-1, keepdims=True) / VIVID, 0, 1)
    lightness = np.maximum(neutral[..., :1], DARKEST * vivid)
    # hues stay, so a method keeps its colour
    turned = np.concatenate([lightness, colours[..., 1:] + neutral[..., 1:]], axis=-1)
    linear = np.linalg.solve(_EYE, np.linalg.solve(_LAB, turned[..., None]) ** 3)[..., 0]
    linear = np.clip(linear, 0, 1)  # OKLab reaches colours that a screen cannot show
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _to_oklab(pixels: Pixels) -> Pixels:
    # the inverse of the transfer function of sRGB
    linear = np.where(pixels <= 0.04045, pixels / 12.92, ((pixels + 0.055) / 1.055) ** 2.4)
    responses: Pixels = np.cbrt(linear @ _EYE.T) @ _LAB.T
    return responses


def _from_hex(text: str) -> Pixels:
    return np.array([int(text[start : start + 2], 16) for start in (1, 3, 5)]) / 255
