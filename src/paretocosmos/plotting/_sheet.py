"""From an empty figure to a file: what is done with every picture, whatever it shows."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.errors import ConfigurationError
from paretocosmos.files import write_bytes
from paretocosmos.front import Front
from paretocosmos.metrics import hypervolume
from paretocosmos.plotting._style import DPI, shown, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def blank() -> "Figure":
    """A figure that belongs to no window; call it, and draw, while the style holds."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.10))


def finish(figure: "Figure", title: str) -> None:
    """The title, and the ticks, which are made when first drawn: while the style holds."""
    if title:
        figure.suptitle(shown(title, 90), x=0.018, ha="left", fontsize=10.5, fontweight="bold")
    figure.draw_without_rendering()


def save_figure(path: Path, figure: "Figure") -> None:
    """A PNG, or a PDF if the path ends so, whole or not at all, the same bytes every time."""
    stream = io.BytesIO()
    with styled():
        if path.suffix.lower() == ".pdf":
            figure.savefig(stream, format="pdf", metadata={"CreationDate": None})
        else:
            figure.savefig(stream, format="png", dpi=DPI)
    write_bytes(path, stream.getvalue())


def same_objectives(fronts: Sequence[Front]) -> None:
    """Refuse fronts that do not fit into one picture."""
    names = fronts[0].names
    if len(names) < 2:
        raise ConfigurationError(
            f"a picture of a front needs two objectives or more, found only `{names[0]}`"
        )
    for front in fronts:
        if front.names != names:
            raise ConfigurationError(
                f"fronts in one picture need the same objectives, found {', '.join(names)} and "
                f"{', '.join(front.names)}: draw them in two pictures"
            )


def two_objectives(fronts: Sequence[Front]) -> None:
    """Refuse fronts that a plane cannot show."""
    for front in fronts:
        if front.objectives != 2:
            raise ConfigurationError(
                f"a panel shows two objectives, found {', '.join(front.names)}: draw this front "
                "with `front_figure`"
            )


def finite(front: Front) -> Front | None:
    """The front without the points that cannot be drawn; `None` if it has no other."""
    keep = np.isfinite(front.values).all(axis=1)
    if not keep.any():
        return None
    return replace(front, rays=front.rays[keep], values=front.values[keep], metrics={})


def volume(front: Front) -> float:
    """The hypervolume, in silence: whoever evaluated the front was told if no point counts."""
    counts = (front.values < front.reference).all(axis=1).any()
    return hypervolume(front) if counts else 0.0


def separate(front: Front) -> bool:
    """Whether its points are networks of their own, between which there is nothing."""
    return front.provenance.get("networks") is not None
