"""What every picture shares: one style, marks for fronts, colours for rays and methods, letters."""

import re
from contextlib import AbstractContextManager
from functools import cache
from textwrap import wrap
from typing import Any, Literal, NamedTuple

import numpy as np

from paretocosmos.errors import need
from paretocosmos.io.palette import LIGHT, RUNS
from paretocosmos.objectives import measure_of
from paretocosmos.pareto.front import Array, Front

DPI = 200
INK, MUTED, HAIRLINE = LIGHT["ink"], LIGHT["quiet"], LIGHT["line"]
FADED = 0.38  # how much of its colour a dominated point has
ANCHORS = RUNS["light"][:6]
# The end of viridis is too bright on white.
BRIGHTEST = 0.9
FONT = "DejaVu Sans"  # comes with matplotlib: the same letters on every machine
ABSENT = "□"  # in place of a letter the font lacks, about which matplotlib would warn

# The reader's own matplotlib settings (usetex, a dark style) must not reach a run's picture.
STYLE: dict[str, Any] = {
    "figure.facecolor": "white",
    "font.family": [FONT],
    "font.size": 8.5,
    "text.usetex": False,
    "text.parse_math": False,  # a dollar sign is a dollar sign
    "text.color": INK,
    "axes.unicode_minus": True,
    "axes.facecolor": "white",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.labelpad": 6,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.axisbelow": True,
    "axes.titlesize": 8,
    "axes.titlecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


class Mark(NamedTuple):
    """How the points of one front look; the shape tells fronts apart, the colour rays."""

    marker: str
    filled: bool
    size: float
    line: Literal["-", "--", ":", "-."]


MARKS = (
    Mark("o", True, 30, "-"),
    Mark("D", False, 20, "--"),
    Mark("s", True, 26, ":"),
    Mark("^", False, 28, "-."),
)


# Seven colours and eight shapes, so that 56 methods look different. No star, which is an ideal
# point, and no triangle to the side or down: those lie at the border.
COLOURS = (*ANCHORS, INK)
SHAPES = ("o", "s", "^", "D", "P", "X", "p", "h")


class Look(NamedTuple):
    """How one method looks among others."""

    colour: str
    shape: str
    size: float


def look(number: int) -> Look:
    """The look of the method of that number; shapes of one width do not look equally large."""
    shape = SHAPES[number % len(SHAPES)]
    size = {"o": 20.0, "s": 17.0, "D": 15.0, "h": 24.0}.get(shape, 25.0)
    return Look(COLOURS[number % len(COLOURS)], shape, size)


def styled() -> AbstractContextManager[None]:
    """Draw in this style and in nothing the reader has set."""
    need("matplotlib", "plot", "drawing a front")
    from matplotlib import style

    return style.context(["default", STYLE])


def colours(rays: Array) -> Array:
    """``[N, 4]``: two objectives along viridis, more as a mixture of one colour per objective."""
    import matplotlib
    from matplotlib.colors import to_rgba_array

    total = rays.sum(axis=1, keepdims=True)
    weights = np.divide(rays, total, out=np.full_like(rays, 1 / rays.shape[1]), where=total > 0)
    if rays.shape[1] == 2:
        return np.asarray(matplotlib.colormaps["viridis"](BRIGHTEST * weights[:, 1]))
    anchors = to_rgba_array([ANCHORS[n % len(ANCHORS)] for n in range(rays.shape[1])])
    mixed: Array = np.clip(weights @ anchors, 0, 1)
    return mixed


def faded(colour: Any) -> Array:
    """``[N, 4]``: one colour or several as they are for dominated points, nearer to white.

    They stay opaque, or those that lie on each other would look as if nothing dominated them.

    >>> faded("black")[0].round(2).tolist()
    [0.62, 0.62, 0.62, 1.0]
    """
    from matplotlib.colors import to_rgba_array

    found: Array = to_rgba_array(colour)
    found[:, :3] = 1 - FADED * (1 - found[:, :3])
    return found


def distinct_rays(fronts: list[Front]) -> Array:
    """``[N, J]``: every ray of the fronts once."""
    return np.unique(np.concatenate([front.rays for front in fronts]).round(9), axis=0)


def shown(text: str, width: int) -> str:
    """One line of at most `width` letters, all of which the font has."""
    line = " ".join(text.split())
    line = line if len(line) <= width else line[: width - 1] + "…"
    return "".join(letter if ord(letter) in _letters() else ABSENT for letter in line)


def lines_of(text: str, width: int) -> str:
    """A text in lines of at most that many letters, broken after commas and colons if it can be.

    >>> lines_of("Adult, COSMOS, batch size 64, α 0.1", 32).splitlines()
    ['Adult, COSMOS, batch size 64,', 'α 0.1']
    """
    glued = re.sub(r"(?<![,:]) ", "\N{NO-BREAK SPACE}", text)
    whole = all(len(part) <= width for part in glued.split(" "))
    lines = wrap(glued if whole else text, width, break_on_hyphens=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def shown_names(front: Front, width: int) -> list[str]:
    """The objectives in words; one of which no letter can be shown goes by its number."""
    names = [shown(measure_of(name).label, width) for name in front.names]
    return [
        name if name.strip(f"{ABSENT}… ") else f"objective {number}"
        for number, name in enumerate(names, start=1)
    ]


@cache
def _letters() -> frozenset[int]:
    """What the font has in both of its weights."""
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    plain, bold = (FT2Font(findfont(FONT + weight)).get_charmap() for weight in ("", ":bold"))
    return frozenset(plain.keys() & bold.keys())
