"""Sheets of panels: their rows, what panels share, and that nothing is lost or cut."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from tests.plotting.drawn import (
    find_scatters,
    make_curve,
    make_front,
    read_legend,
    read_titles,
    shows,
)

from paretocosmos.errors import ConfigurationError
from paretocosmos.plotting import Known, front_figure, fronts_figure, intuition_figure
from paretocosmos.problems import load_problem
from paretocosmos.problems.functions import ToyProblem

LOST = make_front([[np.nan, 0.1]])
LONG = (
    "REHEARSAL, 3 epochs: validation fronts of COSMOS, PHN-LS, PHN-EPO, ParetoMTL and Single Task "
    "over epochs, mean of 1 to 5 seeds"
)

SHEETS: dict[str, Callable[..., Figure]] = {
    "fronts": lambda panels, **more: fronts_figure(
        {p: {"a": make_curve(points=9)} for p in panels}, **more
    ),
    "intuition": lambda panels, **more: intuition_figure(
        {p: Known(make_curve(points=9), make_curve().values) for p in panels}, **more
    ),
}


def read_rows(figure: Figure) -> list[list[str]]:
    """Return the labels of the panels, row by row."""
    rows: dict[int, list[str]] = {}
    for axes in figure.axes:
        place = axes.get_subplotspec()
        assert place.colspan.start == len(rows.setdefault(place.rowspan.start, []))
        rows[place.rowspan.start].append(str(axes.get_label()))
    return [rows[row] for row in sorted(rows)]


def test_a_method_looks_the_same_in_all_panels_and_figures() -> None:
    panels = {"one": {"a": make_curve(), "b": make_curve(0.1)}, "two": {"b": make_curve()}}
    figure = fronts_figure(panels, order=["z", "a", "b"])
    colours = {
        axes.get_title(loc="left"): to_hex(np.asarray(points.get_facecolor())[0])
        for axes in figure.axes
        for points in find_scatters(axes, "b non-dominated")
    }
    assert len(colours) == 2
    assert len(set(colours.values())) == 1
    assert read_legend(figure)[:2] == ["a", "b"]
    (alone,) = fronts_figure({"one": {"b": make_curve()}}, order=["z", "a", "b"]).axes
    (points,) = find_scatters(alone, "b non-dominated")
    assert to_hex(np.asarray(points.get_facecolor())[0]) == colours["one"]


def test_every_point_is_drawn_or_lies_outside() -> None:
    far = make_front([[5.0, 5.0]])
    alone = make_front([[0.2, 0.4], [0.6, 0.0]], provenance={"networks": 2})
    figure = fronts_figure({"one": {"a": make_curve(), "far": far, "S": alone}}, ideal=["S"])
    (axes,) = figure.axes
    assert shows(axes, make_curve().values)
    assert shows(axes, np.array([[0.2, 0.0]]))
    assert axes.get_xlim()[1] < 1
    assert {"lies outside", "S, ideal point"} < {*read_legend(figure)}


def test_steps_go_from_light_to_dark() -> None:
    course = {f"epoch {epoch}": make_curve(1 / epoch) for epoch in (10, 20, 30)}
    figure = fronts_figure({"one": course}, graded=True)
    light = [sum(to_rgb(line.get_color())) for line in figure.axes[0].get_lines()]
    assert light == sorted(light, reverse=True)
    assert len(set(light)) == 3


def test_panels_of_a_row_share_their_limits_when_asked() -> None:
    panels = {
        f"{p}, α {a}": {"λ 1": make_curve(a * f)}
        for p, f in (("A", 1), ("B", 9))
        for a in (0.1, 0.7)
    }
    rows = {title: title[0] for title in panels}
    figure = fronts_figure(panels, rows=rows, share_limits=True)
    assert read_rows(figure) == [[*panels][:2], [*panels][2:]]
    for row in (figure.axes[:2], figure.axes[2:]):
        assert len({(axes.get_xlim(), axes.get_ylim()) for axes in row}) == 1
    for axes, fronts in zip(figure.axes, panels.values(), strict=True):
        assert shows(axes, fronts["λ 1"].values)


@pytest.mark.parametrize("name", ["toy_convex", "toy_concave"])
def test_the_true_front_is_drawn_and_angles_are_true(name: str) -> None:
    problem = load_problem(name)
    assert isinstance(problem, ToyProblem)
    exact = problem.exact_front(50)
    (axes,) = intuition_figure({"one": Known(exact.take(range(0, 50, 7)), exact.values)}).axes
    assert axes.get_aspect() == 1.0
    line = next(line for line in axes.get_lines() if line.get_label() == "true front")
    assert np.array_equal(np.asarray(line.get_xydata()), exact.values)
    assert axes.get_xlim() == axes.get_ylim()


@pytest.mark.parametrize("kind", SHEETS)
def test_another_name_of_a_row_begins_one(kind: str) -> None:
    rows = {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z", "f": "z"}
    assert read_rows(SHEETS[kind](rows, rows=rows)) == [["a", "b"], ["c"], ["d", "e", "f"]]


def test_a_row_takes_as_many_lines_as_it_needs() -> None:
    rows = dict.fromkeys("abcd", "x") | {"e": "y"}
    assert read_rows(SHEETS["fronts"](rows, rows=rows)) == [["a", "b", "c"], ["d"], ["e"]]
    assert read_rows(SHEETS["fronts"](rows)) == [["a", "b", "c"], ["d", "e"]]


def test_labels_stand_at_the_foot_of_a_column_whatever_its_length() -> None:
    panels = {p: {"m": make_curve()} for p in "abcde"}
    panels |= {p: {"m": make_curve(names=("left", "right"))} for p in "fgh"}
    rows = dict.fromkeys("abc", "x") | dict.fromkeys("de", "y") | dict.fromkeys("fgh", "z")
    figure = fronts_figure(panels, rows=rows)
    across = [axes.get_xlabel().partition("  ")[0] for axes in figure.axes]
    assert across == ["", "", "loss", "loss", "loss", "left", "left", "left"]
    up = [axes.get_ylabel().partition("  ")[0] for axes in figure.axes]
    assert up == ["gap", "", "", "gap", "", "right", "", ""]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kind", [*SHEETS, "front"])
def test_a_long_title_is_whole_and_on_the_sheet(kind: str, count: int) -> None:
    def draw(title: str) -> Figure:
        if kind == "front":
            return front_figure([make_curve()], title=title)
        return SHEETS[kind]("abc"[:count], title=title)

    figure, plain = draw(LONG), draw("short")
    assert figure.get_suptitle().split() == LONG.split()
    (title,) = (text for text in figure.texts if text.get_text() == figure.get_suptitle())
    box = title.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= figure.bbox.y1
    assert figure.get_size_inches()[0] == plain.get_size_inches()[0]
    for axes, other in zip(figure.axes, plain.axes, strict=True):
        inside = axes.get_tightbbox()
        assert inside.y1 <= box.y0
        # the sheet grew; the panels did not shrink
        height = other.get_window_extent().height
        assert axes.get_window_extent().height == pytest.approx(height, rel=0.02)


def test_points_that_are_not_finite_are_left_out() -> None:
    figure = fronts_figure({"one": {"a": make_curve(), "b": LOST}, "two": {"b": LOST}})
    assert read_titles(figure) == ["one"]
    with pytest.raises(ConfigurationError, match="finite values"):
        fronts_figure({"one": {"b": LOST}})
    with pytest.raises(ConfigurationError, match="finite values"):
        intuition_figure({"one": Known(LOST, make_curve().values)})


def test_a_panel_is_for_two_objectives() -> None:
    three = make_front(np.eye(3))
    with pytest.raises(ConfigurationError, match="two objectives, found loss, gap, third"):
        fronts_figure({"one": {"a": three}})
