import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from tests.plotting.drawn import (
    find_scatters,
    get_points,
    make_curve,
    make_front,
    read_legend,
    shows,
)

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.pareto import Front, even_rays
from paretocosmos.pareto.metrics import hypervolume, ideal_hypervolume
from paretocosmos.plotting import comparison_figure, save_comparison


def seven(seeds: int = 3) -> dict[str, list[Front]]:
    def over(of: Any) -> list[Front]:
        return [of(0.001 * seed) for seed in range(seeds)]

    return {
        "cosmos": over(make_curve),
        "phn_ls": over(lambda s: make_curve(0.01 + s)),
        "phn_epo": over(lambda s: make_curve(0.015 + s)),
        "pareto_mtl": over(lambda s: make_curve(0.02 + s, 5)),
        "mgda": over(lambda s: make_front([[0.42 + s, 0.02]])),
        "single_task": over(lambda s: make_front([[0.315 + s, 0.11], [0.9 + s, 0.0]])),
        "uniform": over(lambda s: make_front([[0.35, 0.05 + s]])),
    }


def test_the_legend_has_every_method_with_its_hypervolume() -> None:
    fronts = seven()
    figure = comparison_figure(fronts, title="adult", ideal=["single_task"])
    entries = read_legend(figure)
    assert [entry.partition("\n")[0] for entry in entries] == [
        *("cosmos", "phn_ls", "phn_epo", "pareto_mtl", "mgda", "single_task"),
        *("ideal point of single_task", "uniform"),
        *("dominated by its own front", "other seeds than the first", "lies outside"),
    ]
    found = [hypervolume(front) for front in fronts["cosmos"]]
    assert entries[0].endswith(f"\n{np.mean(found):.4f} ± {np.std(found, ddof=1):.4f}")
    best = [ideal_hypervolume(front) for front in fronts["single_task"]]
    assert entries[6].endswith(f"\n{np.mean(best):.4f} ± {np.std(best, ddof=1):.4f}")
    assert entries[5].endswith(", 3 outside")
    title = figure.legends[0].get_title().get_text()
    assert title == "hypervolume at (2, 2)\nmean ± deviation of 3 seeds"
    assert figure.get_suptitle() == "adult"
    assert figure.axes[0].get_xlabel() == "loss   ← smaller is better"


def test_colours_and_shapes_tell_methods_apart() -> None:
    names = [f"method {number}" for number in range(56)]
    (axes,) = comparison_figure({name: [make_curve()] for name in names}).axes
    looks = set()
    for name in names:
        (points,) = find_scatters(axes, f"{name} non-dominated")
        looks.add(
            (to_hex(np.asarray(points.get_facecolor())[0]), str(points.get_paths()[0].vertices))
        )
    assert len(looks) == len(names)


def test_a_front_is_joined_and_what_it_dominates_faded() -> None:
    front = make_curve()
    (axes,) = comparison_figure({"cosmos": [front, make_curve(0.001)]}).axes
    kept = front.values[front.non_dominated]
    first, second = axes.lines
    np.testing.assert_array_equal(np.asarray(first.get_xydata()), kept)
    assert (first.get_alpha(), second.get_alpha()) == (1, 0.3)
    np.testing.assert_array_equal(get_points(axes, "cosmos non-dominated"), kept)
    assert len(get_points(axes, "cosmos dominated")) == 2
    (faded,) = find_scatters(axes, "cosmos dominated")
    assert faded.get_alpha() == 1  # paler, not translucent
    assert not find_scatters(axes, "cosmos, other seed, non-dominated")  # its line says enough
    mixed = 0.38 * np.array(to_rgb(first.get_color())) + 0.62
    np.testing.assert_allclose(np.asarray(faded.get_facecolor())[0, :3], mixed)


@pytest.mark.parametrize("rays", [1, 5], ids=["one ray", "the same at every ray"])
def test_a_method_of_one_point_is_one_larger_mark_without_a_line(rays: int) -> None:
    here = {"cosmos": [make_curve()], "mgda": [make_front([[0.4, 0.02]] * rays)]}
    (axes,) = comparison_figure(here).axes
    assert len(axes.lines) == 1
    (one,), (many,) = (find_scatters(axes, f"{name} non-dominated") for name in ("mgda", "cosmos"))
    assert one.get_sizes()[0] > 2 * many.get_sizes()[0]


def test_the_ideal_point_is_a_star_with_lines_to_both_sides() -> None:
    (axes,) = comparison_figure(seven(), ideal=["single_task"]).axes
    np.testing.assert_allclose(get_points(axes, "single_task ideal"), [[0.315, 0.0]])
    assert len(get_points(axes, "single_task ideal other seed")) == 2
    (lines,) = (one for one in axes.lines if str(one.get_label()).endswith("ideal lines"))
    across, up = axes.get_xlim()[1], axes.get_ylim()[1]
    np.testing.assert_allclose(
        np.asarray(lines.get_xydata()), [[0.315, up], [0.315, 0], [across, 0]]
    )
    assert shows(axes, get_points(axes, "single_task ideal"))


def test_the_panel_shows_the_fronts_and_says_what_lies_outside() -> None:
    fronts = seven()
    (axes,) = comparison_figure(fronts, ideal=["single_task"]).axes
    for name in set(fronts) - {"single_task"}:
        assert shows(axes, fronts[name][0].values)
    right = axes.get_xlim()[1]
    assert right < 0.7
    np.testing.assert_array_equal(get_points(axes, "single_task outside"), [[right, 0.0]] * 3)
    assert not any(find_scatters(axes, f"{name} outside") for name in ("cosmos", "mgda"))


def test_triangles_point_to_where_a_point_is() -> None:
    far = make_front([[0.4, 3.0], [3.0, 0.05], [3.0, 3.0]])
    (axes,) = comparison_figure({"cosmos": [make_curve()], "single": [far]}, ideal=["single"]).axes
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    expected = {(0, 1): (0.4, top), (1, 0): (right, 0.05), (1, 1): (right, top)}
    for one in find_scatters(axes, "single outside"):
        corners = np.asarray(one.get_paths()[0].vertices)[:3]
        corners = corners / np.linalg.norm(corners, axis=1, keepdims=True)
        (toward,) = (way for way in expected if np.isclose(corners @ way, np.hypot(*way)).any())
        assert tuple(np.asarray(one.get_offsets())[0]) == expected.pop(toward)
    assert not expected


def test_a_seed_that_diverged_is_said_and_the_rest_drawn() -> None:
    nothing = make_front(np.full((3, 2), np.nan))
    partly = make_front([[0.4, 0.02], [np.nan, 0.01], [np.inf, 0.01]])
    here = {"cosmos": [make_curve(), nothing], "mgda": [partly], "phn_ls": [nothing, nothing]}
    figure = comparison_figure(here, ideal=["phn_ls"])
    cosmos, mgda, phn = read_legend(figure)[:3]
    assert cosmos.startswith(f"cosmos\n{hypervolume(make_curve()) / 2:.4f} ± ")
    assert cosmos.endswith(", 1 not finite")
    assert mgda == f"mgda\n{hypervolume([[0.4, 0.02]], 2):.4f}"
    assert phn == "phn_ls\nnot one finite value"
    assert len(get_points(figure.axes[0], "mgda non-dominated")) == 1
    with pytest.raises(DataError, match=r"a, b.*finite"):
        comparison_figure({"a": [nothing], "b": [nothing]})


def test_more_objectives_give_a_panel_per_pair_with_common_limits(tmp_path: Path) -> None:
    rays = even_rays(28, 3).numpy().astype(np.float64)
    values = 0.5 - 0.2 * np.sqrt(rays)
    alone = make_front(np.full((3, 3), 2.3) - 2 * np.eye(3))
    here = {
        "cosmos": [make_front(values)],
        "mgda": [make_front([[0.4, 0.4, 0.4]])],
        "single_task": [alone],
    }
    figure = comparison_figure(here, title="three", ideal=["single_task"])
    assert [axes.get_label() for axes in figure.axes] == ["front 0 1", "front 0 2", "front 1 2"]
    for axes, pair in zip(figure.axes, ([0, 1], [0, 2], [1, 2]), strict=True):
        np.testing.assert_array_equal(get_points(axes, "cosmos non-dominated"), values[:, pair])
        assert shows(axes, values[:, pair])
        assert len(get_points(axes, "single_task outside")) == 3  # every point, in every pair
        assert len(axes.lines) == 1  # from the star
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert read_legend(figure)[-1] == "lies outside"
    save_comparison(tmp_path / "three.png", here)


@pytest.mark.parametrize("objectives", [2, 4])
def test_the_figure_grows_until_its_legend_is_whole(objectives: int) -> None:
    front = make_front(np.full((1, objectives), 0.3), names=tuple("abcdef"))
    many = {f"my_package.methods:MyMethod{number}": [front] * 2 for number in range(20)}
    figure = comparison_figure(many, title="many")
    box = figure.legends[0].get_window_extent()
    width, height = figure.get_size_inches() * figure.dpi
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= width
    assert box.y1 <= height
    for axes in figure.axes:
        assert not axes.get_window_extent().overlaps(box)


def test_names_are_shown_as_they_are_and_never_as_formulas(tmp_path: Path) -> None:
    odd = {
        name: [make_curve()]
        for name in ("a_b.c:D", r"$\frac{ a$", "_hidden", "交叉熵", "m" * 80 + ":C")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = comparison_figure(odd, ideal=["_hidden"])
        figure.savefig(tmp_path / "theirs.png")
    names = [entry.partition("\n")[0].strip() for entry in read_legend(figure)]
    assert names[:4] == ["a_b.c:D", r"$\frac{ a$", "_hidden", "ideal point of  _hidden"]
    assert names[4:6] == ["□□□", "…" + "m" * 29 + ":C"]


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match=r"one method.*found none"):
        comparison_figure({})
    with pytest.raises(ConfigurationError, match=r"`mgda`.*found none"):
        comparison_figure({"cosmos": [make_curve()], "mgda": []})
    with pytest.raises(ConfigurationError, match="`ideal` `singletask`"):
        comparison_figure({"single_task": [make_curve()]}, ideal=["singletask"])
    other = make_front([[0.3, 0.2]], names=("left", "gap"))
    with pytest.raises(ConfigurationError, match=r"same objectives.*loss"):
        comparison_figure({"cosmos": [make_curve()], "mgda": [other]})
    with pytest.raises(ConfigurationError, match=r"same `reference`, found \[2.0, 2.0\] and \[3"):
        comparison_figure({"cosmos": [make_curve(), make_front([[0.3, 0.2]], reference=3)]})
    one = np.ones((1, 1))
    with pytest.raises(ConfigurationError, match=r"two objectives.*only `loss"):
        comparison_figure({"cosmos": [Front(one, one, ("loss",), one[0])]})
