import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.pareto import Array, Front, even_rays
from paretocosmos.pareto.metrics import hypervolume, ideal_hypervolume
from paretocosmos.plotting import comparison_figure, save_comparison
from paretocosmos.plotting.comparison import PALE
from paretocosmos.plotting.style import COLOURS, SHAPES, method_look

NAMES = ("binary_cross_entropy", "deo", "third")


def made(values: Any, names: tuple[str, ...] = NAMES, reference: float = 2.0) -> Front:
    values = np.asarray(values, dtype=np.float64)
    rays = even_rays(len(values), values.shape[1]).numpy()
    return Front(rays, values, names[: values.shape[1]], np.full(values.shape[1], reference))


def curve(shift: float = 0.0, points: int = 25) -> Front:
    """Like Adult: a convex front, its last two points dominated."""
    t = np.linspace(0, 1, points)
    values = np.stack([0.32 + 0.2 * t, 0.003 + 0.1 * (1 - t) ** 2], axis=1) + shift
    values[-2:, 1] += 0.01
    return made(values)


def seven(seeds: int = 3) -> dict[str, list[Front]]:
    def over(of: Any) -> list[Front]:
        return [of(0.001 * seed) for seed in range(seeds)]

    return {
        "cosmos": over(curve),
        "phn_ls": over(lambda s: curve(0.01 + s)),
        "phn_epo": over(lambda s: curve(0.015 + s)),
        "pareto_mtl": over(lambda s: curve(0.02 + s, 5)),
        "mgda": over(lambda s: made([[0.42 + s, 0.02]])),
        "single_task": over(lambda s: made([[0.315 + s, 0.11], [0.9 + s, 0.0]])),
        "uniform": over(lambda s: made([[0.35, 0.05 + s]])),
    }


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def scatters(axes: Axes, label: str) -> list[PathCollection]:
    found = (one for one in axes.collections if isinstance(one, PathCollection))
    return [one for one in found if one.get_label() == label]


def offsets(axes: Axes, label: str) -> Array:
    return np.concatenate([np.asarray(one.get_offsets()) for one in scatters(axes, label)])


def is_inside(axes: Axes, points: Array) -> bool:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    inside = (points > [left, bottom]) & (points < [right, top])
    return bool(inside.all())


def test_the_legend_has_every_method_with_its_hypervolume() -> None:
    fronts = seven()
    figure = comparison_figure(fronts, title="adult", ideal=["single_task"])
    entries = legend_of(figure)
    assert [entry.partition("\n")[0] for entry in entries] == [
        *("cosmos", "phn_ls", "phn_epo", "pareto_mtl", "mgda", "single_task"),
        *("ideal point of single_task", "uniform"),
        *("dominated by its own front", "other seeds than the first", "3 points lie outside"),
    ]
    found = [hypervolume(front) for front in fronts["cosmos"]]
    assert entries[0].endswith(f"\n{np.mean(found):.4f} ± {np.std(found, ddof=1):.4f}")
    best = [ideal_hypervolume(front) for front in fronts["single_task"]]
    assert entries[6].endswith(f"\n{np.mean(best):.4f} ± {np.std(best, ddof=1):.4f}")
    assert entries[5].endswith(", 3 outside")
    title = figure.legends[0].get_title().get_text()
    assert title == "hypervolume at (2, 2)\nmean ± deviation of 3 seeds"
    assert figure.get_suptitle() == "adult"
    assert figure.axes[0].get_xlabel() == "loss (cross-entropy)   ← smaller is better"


def test_one_seed_has_no_deviation_and_different_numbers_are_said() -> None:
    figure = comparison_figure({"cosmos": [curve()]})
    assert legend_of(figure)[0] == f"cosmos\n{hypervolume(curve()):.4f}"
    assert figure.legends[0].get_title().get_text() == "hypervolume at (2, 2)"
    figure = comparison_figure({"cosmos": [curve(), curve(0.01)], "mgda": [curve()]})
    assert figure.legends[0].get_title().get_text().endswith("deviation of up to 2 seeds")


def test_colours_and_shapes_tell_methods_apart() -> None:
    (axes,) = comparison_figure(seven(), ideal=["single_task"]).axes
    drawn = [scatters(axes, f"{name} non-dominated")[0] for name in seven()]
    assert [to_hex(np.asarray(one.get_facecolor())[0]) for one in drawn] == list(COLOURS)
    looks = [method_look(number)[:2] for number in range(len(COLOURS) * len(SHAPES))]
    assert len(set(looks)) == len(looks)


def test_a_front_is_joined_and_what_it_dominates_faded() -> None:
    front = curve()
    (axes,) = comparison_figure({"cosmos": [front, curve(0.001)]}).axes
    kept = front.values[front.non_dominated]
    first, second = axes.lines
    np.testing.assert_array_equal(np.asarray(first.get_xydata()), kept)
    assert (first.get_alpha(), second.get_alpha()) == (1, PALE)
    np.testing.assert_array_equal(offsets(axes, "cosmos non-dominated"), kept)
    assert len(offsets(axes, "cosmos dominated")) == 2
    (faded,) = scatters(axes, "cosmos dominated")
    assert faded.get_alpha() == 1  # paler, not translucent
    assert not scatters(axes, "cosmos non-dominated other seed")  # its line says enough
    mixed = 0.38 * np.array(to_rgb(COLOURS[0])) + 0.62
    np.testing.assert_allclose(np.asarray(faded.get_facecolor())[0, :3], mixed)


@pytest.mark.parametrize("rays", [1, 5], ids=["one ray", "the same at every ray"])
def test_a_method_of_one_point_is_one_larger_mark_without_a_line(rays: int) -> None:
    here = {"cosmos": [curve()], "mgda": [made([[0.4, 0.02]] * rays)]}
    (axes,) = comparison_figure(here).axes
    assert len(axes.lines) == 1
    (one,), (many,) = (scatters(axes, f"{name} non-dominated") for name in ("mgda", "cosmos"))
    assert one.get_sizes()[0] > 2 * many.get_sizes()[0]


def test_the_ideal_point_is_a_star_with_lines_to_both_sides() -> None:
    (axes,) = comparison_figure(seven(), ideal=["single_task"]).axes
    np.testing.assert_allclose(offsets(axes, "single_task ideal"), [[0.315, 0.0]])
    assert len(offsets(axes, "single_task ideal other seed")) == 2
    (lines,) = (one for one in axes.lines if str(one.get_label()).endswith("ideal lines"))
    across, up = axes.get_xlim()[1], axes.get_ylim()[1]
    np.testing.assert_allclose(
        np.asarray(lines.get_xydata()), [[0.315, up], [0.315, 0], [across, 0]]
    )
    assert is_inside(axes, offsets(axes, "single_task ideal"))


def test_the_panel_shows_the_fronts_and_says_what_lies_outside() -> None:
    fronts = seven()
    (axes,) = comparison_figure(fronts, ideal=["single_task"]).axes
    for name in set(fronts) - {"single_task"}:
        assert all(is_inside(axes, front.values) for front in fronts[name])
    right = axes.get_xlim()[1]
    assert right < 0.7
    np.testing.assert_array_equal(offsets(axes, "single_task outside"), [[right, 0.0]] * 3)
    assert not any(scatters(axes, f"{name} outside") for name in ("cosmos", "mgda"))


def test_triangles_point_to_where_a_point_is() -> None:
    far = made([[0.4, 3.0], [3.0, 0.05], [3.0, 3.0]])
    (axes,) = comparison_figure({"cosmos": [curve()], "single": [far]}, ideal=["single"]).axes
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    expected = {(0, 1): (0.4, top), (1, 0): (right, 0.05), (1, 1): (right, top)}
    for one in scatters(axes, "single outside"):
        corners = np.asarray(one.get_paths()[0].vertices)[:3]
        corners = corners / np.linalg.norm(corners, axis=1, keepdims=True)
        (toward,) = (way for way in expected if np.isclose(corners @ way, np.hypot(*way)).any())
        assert tuple(np.asarray(one.get_offsets())[0]) == expected.pop(toward)
    assert not expected


def test_without_a_front_the_points_decide() -> None:
    points = {"mgda": [made([[0.4, 0.02]])], "uniform": [made([[0.35, 0.05]])]}
    (axes,) = comparison_figure(points).axes
    assert is_inside(axes, np.array([[0.4, 0.02], [0.35, 0.05]]))
    alone = {"single_task": [made([[0.3, 2.3], [2.2, 0.3]])]}
    (axes,) = comparison_figure(alone, ideal=["single_task"]).axes
    assert is_inside(axes, alone["single_task"][0].values)


def test_a_seed_that_diverged_is_said_and_the_rest_drawn() -> None:
    nothing = made(np.full((3, 2), np.nan))
    partly = made([[0.4, 0.02], [np.nan, 0.01], [np.inf, 0.01]])
    here = {"cosmos": [curve(), nothing], "mgda": [partly], "phn_ls": [nothing, nothing]}
    figure = comparison_figure(here, ideal=["phn_ls"])
    cosmos, mgda, phn = legend_of(figure)[:3]
    assert cosmos.startswith(f"cosmos\n{hypervolume(curve()) / 2:.4f} ± ")
    assert cosmos.endswith(", 1 not finite")
    assert mgda == f"mgda\n{hypervolume([[0.4, 0.02]], 2):.4f}"
    assert phn == "phn_ls\nnot one finite value"
    assert len(offsets(figure.axes[0], "mgda non-dominated")) == 1
    with pytest.raises(DataError, match=r"a, b.*finite"):
        comparison_figure({"a": [nothing], "b": [nothing]})


def test_more_objectives_give_a_panel_per_pair_with_common_limits(tmp_path: Path) -> None:
    rays = even_rays(28, 3).numpy().astype(np.float64)
    values = 0.5 - 0.2 * np.sqrt(rays)
    alone = made(np.full((3, 3), 2.3) - 2 * np.eye(3))
    here = {"cosmos": [made(values)], "mgda": [made([[0.4, 0.4, 0.4]])], "single_task": [alone]}
    figure = comparison_figure(here, title="three", ideal=["single_task"])
    assert [axes.get_label() for axes in figure.axes] == ["front 0 1", "front 0 2", "front 1 2"]
    for axes, pair in zip(figure.axes, ([0, 1], [0, 2], [1, 2]), strict=True):
        np.testing.assert_array_equal(offsets(axes, "cosmos non-dominated"), values[:, pair])
        assert is_inside(axes, values[:, pair])
        assert len(offsets(axes, "single_task outside")) == 3  # every point, in every pair
        assert len(axes.lines) == 1  # from the star
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert legend_of(figure)[-1] == "3 points lie outside"
    save_comparison(tmp_path / "three.png", here)


@pytest.mark.parametrize("objectives", [2, 4])
def test_the_figure_grows_until_its_legend_is_whole(objectives: int) -> None:
    front = made(np.full((1, objectives), 0.3), names=tuple("abcdef"))
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
        name: [curve()] for name in ("a_b.c:D", r"$\frac{ a$", "_hidden", "交叉熵", "m" * 80 + ":C")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = comparison_figure(odd, ideal=["_hidden"])
        figure.savefig(tmp_path / "theirs.png")
    names = [entry.partition("\n")[0].strip() for entry in legend_of(figure)]
    assert names[:4] == ["a_b.c:D", r"$\frac{ a$", "_hidden", "ideal point of  _hidden"]
    assert names[4:6] == ["□□□", "…" + "m" * 29 + ":C"]


def test_the_picture_is_written_whole_and_alone(tmp_path: Path) -> None:
    for name in ("one.png", "two.png", "one.pdf", "two.PDF"):
        save_comparison(tmp_path / name, seven(), title="adult", ideal=["single_task"])
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(written) == ["one.pdf", "one.png", "two.PDF", "two.png"]
    assert written["one.png"] == written["two.png"]
    assert written["one.pdf"] == written["two.PDF"]
    assert written["one.png"].startswith(b"\x89PNG\r\n\x1a\n")
    assert written["one.png"].endswith(b"IEND\xaeB`\x82")
    assert written["one.pdf"].startswith(b"%PDF")


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match=r"one method.*found none"):
        comparison_figure({})
    with pytest.raises(ConfigurationError, match=r"`mgda`.*found none"):
        comparison_figure({"cosmos": [curve()], "mgda": []})
    with pytest.raises(ConfigurationError, match="`ideal` `singletask`"):
        comparison_figure({"single_task": [curve()]}, ideal=["singletask"])
    other = made([[0.3, 0.2]], names=("loss", "gap"))
    with pytest.raises(ConfigurationError, match=r"same objectives.*binary_cross_entropy"):
        comparison_figure({"cosmos": [curve()], "mgda": [other]})
    with pytest.raises(ConfigurationError, match=r"same `reference`, found \[2.0, 2.0\] and \[3"):
        comparison_figure({"cosmos": [curve(), made([[0.3, 0.2]], reference=3)]})
    one = np.ones((1, 1))
    with pytest.raises(ConfigurationError, match=r"two objectives.*only `binary"):
        comparison_figure({"cosmos": [Front(one, one, NAMES[:1], one[0])]})
