"""Fronts to draw, and what a figure shows of them."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from paretocosmos.pareto import Array, Front, even_rays


def make_front(
    values: Any,
    names: tuple[str, ...] = ("loss", "gap", "third"),
    reference: float = 2.0,
    **more: Any,
) -> Front:
    """Return a front of even rays."""
    values = np.asarray(values, dtype=np.float64)
    objectives = values.shape[1]
    rays = even_rays(len(values), objectives).numpy()
    return Front(rays, values, names[:objectives], np.full(objectives, reference), **more)


def make_curve(shift: float = 0.0, points: int = 25, **more: Any) -> Front:
    """Return a convex front whose last two points are dominated."""
    t = np.linspace(0, 1, points)
    values = np.stack([0.32 + 0.2 * t, 0.003 + 0.1 * (1 - t) ** 2], axis=1) + shift
    values[-2:, 1] += 0.01
    return make_front(values, **more)


def find_scatters(axes: Axes, label: str = "") -> list[PathCollection]:
    """Return the points of a label, or all of them."""
    scatters = [one for one in axes.collections if isinstance(one, PathCollection)]
    return [one for one in scatters if label in ("", one.get_label())]


def get_points(axes: Axes, label: str = "") -> Array:
    return np.concatenate([np.asarray(one.get_offsets()) for one in find_scatters(axes, label)])


def shows(axes: Axes, values: Array) -> bool:
    """Return True if all points lie inside of the panel, and are drawn."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    inside = (values > [left, bottom]) & (values < [right, top])
    distances = np.abs(get_points(axes)[:, None] - values[None]).max(axis=2)
    return bool(inside.all() and (distances.min(axis=0) < 1e-12).all())


def read_legend(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def read_titles(figure: Figure) -> list[str]:
    titles = (axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes)
    return [title for title in titles if title]
