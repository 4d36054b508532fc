"""The rows of a sheet of panels, and titles that are longer than it is wide."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from paretocosmos.pareto import Front, even_rays
from paretocosmos.plotting import (
    Known,
    ablation_figure,
    convergence_figure,
    front_figure,
    fronts_figure,
    intuition_figure,
)
from paretocosmos.plotting.style import wrap_text

LONG = (
    "REHEARSAL, 3 epochs: validation fronts of COSMOS, PHN-LS, PHN-EPO, ParetoMTL and Single Task "
    "over epochs, mean of 1 to 5 seeds"
)


def curve(names: tuple[str, str] = ("loss", "gap")) -> Front:
    t = np.linspace(0, 1, 9)
    values = np.stack([0.3 + 0.2 * t, 0.1 * (1 - t) ** 2], axis=1)
    return Front(even_rays(9, 2).numpy(), values, names, np.full(2, 2.0))


DRAWN: dict[str, Callable[..., Figure]] = {
    "fronts": lambda *panels, **more: fronts_figure({p: {"a": curve()} for p in panels}, **more),
    "convergence": lambda *panels, **more: convergence_figure(
        {p: [(1, curve()), (2, curve())] for p in panels}, **more
    ),
    "intuition": lambda *panels, **more: intuition_figure(
        {p: Known(curve(), curve().values) for p in panels}, **more
    ),
}


def rows(figure: Figure) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for axes in figure.axes:
        place = axes.get_subplotspec()
        if place is not None:
            assert place.colspan.start == len(found.setdefault(place.rowspan.start, []))
            found[place.rowspan.start].append(str(axes.get_label()))
    return [found[row] for row in sorted(found)]


@pytest.mark.parametrize("kind", DRAWN)
def test_another_group_begins_a_row(kind: str) -> None:
    groups = {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z", "f": "z"}
    figure = DRAWN[kind](*groups, rows=groups)
    assert rows(figure) == [["a", "b"], ["c"], ["d", "e", "f"]]


@pytest.mark.parametrize("kind", ["fronts", "convergence"])
def test_a_group_takes_as_many_rows_as_it_needs(kind: str) -> None:
    groups = dict.fromkeys("abcd", "x") | {"e": "y"}
    assert rows(DRAWN[kind](*groups, rows=groups)) == [["a", "b", "c"], ["d"], ["e"]]
    assert rows(DRAWN[kind](*groups)) == [["a", "b", "c"], ["d", "e"]]


def test_labels_stand_at_the_foot_of_a_column_whatever_its_length() -> None:
    other = ("left", "right")
    panels = {p: {"m": curve()} for p in "abcde"} | {p: {"m": curve(other)} for p in "fgh"}
    groups = dict.fromkeys("abc", "x") | dict.fromkeys("de", "y") | dict.fromkeys("fgh", "z")
    figure = fronts_figure(panels, rows=groups)
    across = [axes.get_xlabel().partition("  ")[0] for axes in figure.axes]
    assert across == ["", "", "loss", "loss", "loss", "left", "left", "left"]
    ups = [axes.get_ylabel().partition("  ")[0] for axes in figure.axes]
    assert ups == ["gap", "", "", "gap", "", "right", "", ""]


def open_sheet(kind: str, count: int, title: str) -> Figure:
    if kind == "ablation":
        return ablation_figure(
            {"one": {(0.0, 0.1 * n): curve() for n in range(count)}}, title=title
        )
    if kind == "front":
        return front_figure([curve()], title=title)
    return DRAWN[kind](*"abc"[:count], title=title)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kind", [*DRAWN, "ablation", "front"])
def test_a_long_title_is_whole_and_on_the_sheet(kind: str, count: int) -> None:
    figure = open_sheet(kind, count, LONG)
    assert figure.get_suptitle().split() == LONG.split()
    (title,) = (text for text in figure.texts if text.get_text() == figure.get_suptitle())
    box = title.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= figure.bbox.y1
    for axes in figure.axes:
        inside = axes.get_tightbbox()
        assert inside is not None
        assert inside.y1 <= box.y0
    plain = open_sheet(kind, count, "short")
    assert figure.get_size_inches()[0] == plain.get_size_inches()[0]
    for one, other in zip(figure.axes, plain.axes, strict=True):
        high = (axes.get_window_extent().height for axes in (one, other))
        assert next(high) == pytest.approx(next(high), rel=0.02)  # the sheet grew, not they shrank


def test_a_panel_alone_is_large_enough_to_read() -> None:
    width, height = fronts_figure({"one": {"a": curve()}}).get_size_inches()
    assert width > 5
    assert width > height


def test_a_long_panel_title_takes_two_lines_and_leaves_no_panel_small() -> None:
    long = "Fashion+MNIST, paper, COSMOS, penalty 0.1, batch size 64"
    figure = DRAWN["convergence"]("a", "b", long)
    last = figure.axes[2]
    assert last.get_title(loc="left").split() == long.split()
    widths = [axes.get_window_extent().width for axes in figure.axes[:3]]
    assert min(widths) > 0.98 * max(widths)
    plain = DRAWN["convergence"]("a", "b", "c")
    assert widths[0] > 0.95 * plain.axes[0].get_window_extent().width


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Adult", ["Adult"]),
        ("Adult, batch size 64", ["Adult,", "batch size 64"]),
        ("Adult: a very long name of a method", ["Adult: a very", "long name of a", "method"]),
        ("Multi-Fashion, penalty 1", ["Multi-Fashion,", "penalty 1"]),
    ],
)
def test_lines_break_where_a_reader_would(text: str, expected: list[str]) -> None:
    assert wrap_text(text, 14).splitlines() == expected
