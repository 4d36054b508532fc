"""Sheets of panels: what is in which, what is shared, and that nothing is lost or cut."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto import Array, Front, even_rays
from paretocosmos.plotting import (
    Known,
    ablation_figure,
    convergence_figure,
    fronts_figure,
    intuition_figure,
    save_figure,
    three_figure,
)
from paretocosmos.plotting.style import ABSENT
from paretocosmos.problems import load_problem
from paretocosmos.problems.toys import ToyProblem

NAN = float("nan")


def made(
    values: Any, names: tuple[str, ...] = ("loss", "gap"), networks: int | None = None
) -> Front:
    values = np.asarray(values, dtype=np.float64)
    rays = even_rays(len(values), values.shape[1]).numpy()
    reference = np.full(values.shape[1], 2.0)
    return Front(rays, values, names, reference, provenance={"networks": networks})


def curve(shift: float = 0.0, width: float = 1.0, **more: Any) -> Front:
    t = np.linspace(0, 1, 9)
    return made(shift + width * np.stack([0.3 + 0.2 * t, 0.1 * (1 - t) ** 2], axis=1), **more)


def points(axes: Axes) -> Array:
    found = [c for c in axes.collections if isinstance(c, PathCollection)]
    return np.concatenate([np.asarray(c.get_offsets()) for c in found])


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def entries(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def has(axes: Axes, values: Array) -> bool:
    """Whether every point is drawn, and inside the panel."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    drawn = points(axes)
    near = np.abs(drawn[:, None] - values[None]).max(axis=2).min(axis=0) < 1e-12
    inside = (values >= [left, bottom]) & (values <= [right, top])
    return bool(near.all() and inside.all())


SHEETS: dict[str, Callable[[], Figure]] = {
    "fronts": lambda: fronts_figure({"one": {"a": curve(), "b": curve(0.1)}}, title="t"),
    "convergence": lambda: convergence_figure({"one": [(1, curve(0.2)), (2, curve())]}, title="t"),
    "ablation": lambda: ablation_figure({"one": {(0.0, 0.1): curve()}}, title="t"),
    "intuition": lambda: intuition_figure({"one": Known(curve(), curve().values)}, title="t"),
    "three": lambda: three_figure(made(np.eye(3), ("a", "b", "c")), title="t"),
}


@pytest.mark.system
@pytest.mark.parametrize("kind", SHEETS)
@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_every_sheet_becomes_a_file_and_the_same_bytes_again(
    kind: str, ending: str, tmp_path: Path
) -> None:
    one, two = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    save_figure(one, SHEETS[kind]())
    save_figure(two, SHEETS[kind]())
    start = {"png": b"\x89PNG", "pdf": b"%PDF"}[ending]
    assert one.read_bytes().startswith(start)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("kind", SHEETS)
def test_no_text_leaves_a_sheet_or_lies_on_another(kind: str) -> None:
    figure = SHEETS[kind]()
    figure.draw_without_rendering()
    for axes in figure.axes:
        title = axes.title if axes.get_title() else axes._left_title  # type: ignore[attr-defined]
        for text in (title, axes.xaxis.label, axes.yaxis.label):
            box = text.get_window_extent()
            if text.get_text():
                assert box.x0 >= 0, text
                assert box.x1 <= figure.bbox.x1, text
                assert box.y0 >= 0, text
                assert box.y1 <= figure.bbox.y1, text


def test_panels_stand_three_a_row_and_share_labels_where_they_are_the_same() -> None:
    other = ("top_left", "bottom_right")
    panels = {f"fair {n}": {"a": curve()} for n in range(3)}
    panels |= {f"pair {n}": {"a": curve(names=other)} for n in range(3)}
    figure = fronts_figure(panels)
    assert titles(figure) == list(panels)
    tops = [round(axes.get_position().y0, 3) for axes in figure.axes]
    assert len(set(tops[:3])) == len(set(tops[3:])) == 1
    assert tops[0] > tops[3]
    ups = [axes.get_ylabel() for axes in figure.axes]
    assert [up.partition("  ")[0] for up in ups] == ["gap", "", "", "bottom right", "", ""]
    acrosses = [axes.get_xlabel().partition("  ")[0] for axes in figure.axes]
    assert acrosses == ["loss"] * 3 + ["top left"] * 3


def test_a_method_looks_the_same_in_every_panel() -> None:
    figure = fronts_figure({"one": {"a": curve(), "b": curve(0.1)}, "two": {"b": curve(0.1)}})

    def colour(axes: Axes) -> str:
        (found,) = (c for c in axes.collections if c.get_label() == "b non-dominated")
        return str(to_hex(np.asarray(found.get_facecolor())[0]))

    assert colour(figure.axes[0]) == colour(figure.axes[1])
    assert entries(figure) == ["a", "b"]
    alone = fronts_figure({"two": {"b": curve(0.1)}}, order=["a", "b"])
    assert colour(alone.axes[0]) == colour(figure.axes[0])
    assert entries(alone) == ["b"]


def test_all_points_of_the_fronts_are_drawn_and_far_ones_told() -> None:
    far = made([[0.3, 0.05], [9.0, 9.0]], networks=2)
    figure = fronts_figure({"one": {"a": curve(), "far": far}})
    (axes,) = figure.axes
    assert has(axes, curve().values)
    assert "lies outside" in entries(figure)
    assert axes.get_xlim()[1] < 1


def test_single_task_has_its_ideal_point() -> None:
    alone = made([[0.2, 0.4], [0.6, 0.0]], networks=2)
    figure = fronts_figure({"one": {"a": curve(), "Single Task": alone}}, ideal=["Single Task"])
    assert has(figure.axes[0], np.array([[0.2, 0.0]]))
    assert "Single Task, ideal point" in entries(figure)


def test_the_legend_never_leaves_the_figure() -> None:
    many = {f"a method of some length {n}": curve(0.01 * n) for n in range(12)}
    figure = fronts_figure({"one": many})
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= figure.bbox.x1
    assert len(entries(figure)) == 12


def test_later_epochs_are_darker() -> None:
    course = [(epoch, curve(1 / epoch)) for epoch in (10, 20, 30)]
    figure = convergence_figure({"one": course[::-1]})
    axes = figure.axes[0]
    lines = [line for line in axes.get_lines() if len(np.asarray(line.get_xdata())) > 1]
    light = [np.asarray(to_rgb(line.get_color())).sum() for line in lines]
    assert light[0] > light[1] > light[2]
    assert has(axes, course[-1][1].values)
    assert figure.axes[-1].get_ylabel() == "epoch"


def to_rgb(colour: Any) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb as converted

    return converted(colour)


def test_an_ablation_has_a_row_per_problem_and_a_panel_per_alpha_with_one_scale() -> None:
    def grid(penalties: tuple[float, ...]) -> dict[tuple[float, float], Front]:
        return {(p, a): curve(0.01 * a, 1 + p) for p in penalties for a in (0.1, 0.7, 1.2)}

    figure = ablation_figure({"Adult": grid((0.0, 0.1)), "Pairs": grid((1.0, 3.0))})
    assert titles(figure) == [f"{p}, α {a}" for p in ("Adult", "Pairs") for a in (0.1, 0.7, 1.2)]
    for row in (figure.axes[:3], figure.axes[3:]):
        assert len({axes.get_xlim() for axes in row}) == 1
        assert len({axes.get_ylim() for axes in row}) == 1
    for at, front in grid((0.0, 0.1)).items():
        assert has(figure.axes[(0.1, 0.7, 1.2).index(at[1])], front.values)
    keys = [[t.get_text() for t in axes.get_legend().get_texts()] for axes in figure.axes[2::3]]  # type: ignore[union-attr]
    assert keys == [["λ 0", "λ 0.1"], ["λ 1", "λ 3"]]


@pytest.mark.parametrize("name", ["toy_convex", "toy_concave"])
def test_the_true_front_is_drawn_and_angles_are_true(name: str) -> None:
    problem = load_problem(name)
    assert isinstance(problem, ToyProblem)
    exact = problem.exact_front(50)
    figure = intuition_figure({"one": Known(exact.take(range(0, 50, 7)), exact.values)})
    (axes,) = figure.axes
    assert axes.get_aspect() == 1.0
    line = next(line for line in axes.get_lines() if line.get_label() == "true front")
    assert np.array_equal(np.asarray(line.get_xydata()), exact.values)
    assert axes.get_xlim() == axes.get_ylim()


def test_three_objectives_are_three_pairs_in_one_row() -> None:
    values = np.random.default_rng(0).uniform(0.1, 0.9, (25, 3))
    figure = three_figure(made(values, ("Goatee", "Mustache", "No_Beard")))
    assert [axes.get_label() for axes in figure.axes] == [
        *("Goatee, Mustache", "Goatee, No Beard", "Mustache, No Beard", "rays"),
    ]
    for axes, pair in zip(figure.axes, ((0, 1), (0, 2), (1, 2)), strict=False):
        assert has(axes, values[:, pair])


def test_what_is_not_finite_is_left_out_and_nothing_else_is_a_picture() -> None:
    lost = made([[NAN, 0.1]])
    figure = fronts_figure({"one": {"a": curve(), "b": lost}, "two": {"b": lost}})
    assert titles(figure) == ["one"]
    figure = convergence_figure({"one": [(1, lost), (2, curve())], "two": [(1, lost)]})
    assert titles(figure)[0] == "one"
    assert len(figure.axes) == 2
    drawings: list[Callable[[], Figure]] = [
        lambda: fronts_figure({"one": {"b": lost}}),
        lambda: convergence_figure({"one": [(1, lost)]}),
        lambda: ablation_figure({"one": {(0.0, 0.1): lost}}),
        lambda: intuition_figure({"one": Known(lost, curve().values)}),
        lambda: three_figure(made([[NAN, 0.1, 0.1]], ("a", "b", "c"))),
    ]
    for draw in drawings:
        with pytest.raises(ConfigurationError, match="finite values"):
            draw()


def test_a_panel_is_for_two_objectives() -> None:
    three = made(np.eye(3), ("a", "b", "c"))
    with pytest.raises(ConfigurationError, match="two objectives, found a, b, c"):
        fronts_figure({"one": {"a": three}})
    with pytest.raises(ConfigurationError, match="three objectives"):
        three_figure(curve())


def test_names_are_shown_as_they_are() -> None:
    odd = replace(curve(), names=("a$b$", "\N{BEAR FACE}"))
    figure = fronts_figure({"x^2_$y$ \N{BEAR FACE}": {"_m": odd}})
    assert titles(figure) == [f"x^2_$y$ {ABSENT}"]
    assert figure.axes[0].get_xlabel().startswith("a$b$")
