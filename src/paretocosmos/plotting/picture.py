"""A picture that a notebook shows by itself."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.io.paths import user_path
from paretocosmos.plotting._sheet import save_figure
from paretocosmos.plotting._style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture"]

# Dots an inch of a page in a browser, and of the picture in it, which is fine enough.
BROWSER, SHOWN = 96, 150


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of matplotlib, shown as the last value of a notebook's cell.

    Attributes:
        figure: to change it further.
    """

    figure: "Figure"

    def save(self, path: str | Path) -> Path:
        """Write it as a PNG, or as a PDF if the path ends in ``.pdf``; gives the path."""
        place = user_path(path)
        save_figure(place, self.figure)
        return place

    def __repr__(self) -> str:
        wide, high = self.figure.get_size_inches()
        return f"Picture({wide:g} x {high:g} inches; `.save(path)` writes it)"

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        stream = io.BytesIO()
        with styled():
            self.figure.savefig(stream, format="png", dpi=SHOWN)
        wide = self.figure.get_size_inches()[0]
        return stream.getvalue(), {"width": round(wide * BROWSER)}
