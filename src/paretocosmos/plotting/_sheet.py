"""From an empty figure to a file: what is done with every picture, whatever it shows."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretocosmos.errors import ConfigurationError
from paretocosmos.io.files import write_bytes
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.metrics import hypervolume
from paretocosmos.plotting._style import DPI, lines_of, shown, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGE = 0.018  # how far the title begins from the left, of the width


@contextmanager
def sheet(title: str) -> Iterator["Figure"]:
    """An empty figure of this style, which belongs to no window; the title comes at the end.

    Ticks are made when they are first drawn: while the style holds.
    """
    with styled():
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = Figure(dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.10))
        yield figure
        if title:
            _set_title(figure, shown(title, 180))
        figure.draw_without_rendering()


def _set_title(figure: "Figure", title: str) -> None:
    """Above all panels, in as many lines as it needs; the figure grows with them."""
    text = figure.suptitle(title, x=EDGE, ha="left", fontsize=10.5, fontweight="bold")
    room = (1 - 2 * EDGE) * figure.bbox.width
    low = text.get_window_extent().height
    letters = len(title)
    while text.get_window_extent().width > room and letters > 1:
        letters = min(letters - 1, int(letters * room / text.get_window_extent().width) + 1)
        text.set_text(lines_of(title, letters))
    more = (text.get_window_extent().height - low) / figure.dpi
    wide, high = figure.get_size_inches()
    figure.set_size_inches(wide, high + more)


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
    metrics = {name: values[keep] for name, values in front.metrics.items()}
    return replace(front, rays=front.rays[keep], values=front.values[keep], metrics=metrics)


def volume(front: Front) -> float:
    """The hypervolume without a warning: the evaluation of the front warned if no point counts."""
    counts = (front.values < front.reference).all(axis=1).any()
    return hypervolume(front) if counts else 0.0


def separate(front: Front) -> bool:
    """Whether its points are networks of their own, between which there is nothing."""
    return front.provenance.get("networks") is not None
