import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from tests.plotting.drawn import find_scatters, read_legend

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.pareto import Front, even_rays
from paretocosmos.plotting import front_figure, save_front


def made(rays: Any, values: Any, names: tuple[str, ...], reference: Any, **rest: Any) -> Front:
    return Front(np.asarray(rays), np.asarray(values), names, np.asarray(reference), **rest)


def curve(split: str = "test", shift: float = 0.0) -> Front:
    """25 rays on a convex curve, three of them pushed off it."""
    rays = even_rays(25, 2).numpy().astype(np.float64)
    along = np.linspace(0, 1, 25)
    values = np.stack([0.324 + 0.211 * along, 0.013 + 0.095 * (1 - along) ** 2], axis=1) + shift
    values[[6, 13, 19]] += 0.02
    return made(rays, values, ("cross entropy", "parity gap"), (2, 2), split=split)


def axes_of(figure: Figure) -> dict[str, Axes]:
    return {str(axes.get_label()): axes for axes in figure.axes}


def scatters(axes: Axes) -> dict[str, PathCollection]:
    return {str(one.get_label()): one for one in find_scatters(axes)}


def test_two_objectives_have_labels_a_legend_and_two_panels() -> None:
    figure = front_figure([curve(), curve("val", 0.004)], title="adult · cosmos")
    axes = axes_of(figure)
    assert list(axes) == ["front", "rays"]
    assert axes["front"].get_xlabel() == "cross entropy   ← smaller is better"
    assert axes["front"].get_ylabel() == "parity gap   ← smaller is better"
    test, val, dominated = read_legend(figure)
    assert test.startswith("test: hypervolume 3.")
    assert val.startswith("val: hypervolume 3.")
    assert dominated == "dominated"
    assert figure.get_suptitle() == "adult · cosmos"


def test_where_groups_are_compared_a_panel_shows_the_share_of_each_that_is_selected() -> None:
    along, front = np.linspace(0, 1, 25), curve()
    values = front.values.copy()
    values[3] = np.nan  # cannot be drawn, there too
    front = dataclasses.replace(front, values=values)
    shares = {"selection_rate_m": 0.3 - 0.1 * along, "selection_rate_f": 0.1 + 0.1 * along}
    accuracy = 0.86 - 0.03 * along
    told = dataclasses.replace(front, metrics={"accuracy": accuracy, **shares})
    axes = axes_of(front_figure([told]))
    assert list(axes) == ["front", "rays", "shares"]
    assert axes["shares"].get_title(loc="left") == "selected, of 100 (test)"
    assert [text.get_text() for text in axes["shares"].texts] == ["m", "f"]
    keep = np.arange(25) != 3
    for line, share in zip(axes["shares"].get_lines(), shares.values(), strict=True):
        drawn = np.asarray(line.get_xydata(), dtype=float)
        wanted = 100 * np.stack([1 - accuracy, share], axis=1)
        np.testing.assert_allclose(drawn, wanted[keep])
    many = {f"selection_rate_{group}": along for group in range(5)}
    crowded = dataclasses.replace(front, metrics={"accuracy": accuracy, **many})
    assert list(axes_of(front_figure([crowded]))) == ["front", "rays"]


def test_dominated_points_are_faded_and_left_off_the_line() -> None:
    front = curve()
    panels = axes_of(front_figure([front]))
    axes, rays = panels["front"], panels["rays"].lines
    found = scatters(axes)
    keep = front.non_dominated
    for kind, select, share in (("dominated", ~keep, 0.38), ("non-dominated", keep, 1)):
        drawn = np.asarray(found[f"test {kind}"].get_facecolor())
        ours = np.array([to_rgba(line.get_color()) for line in rays[24::-1]])[select]
        np.testing.assert_allclose(drawn[:, :3], share * ours[:, :3] + 1 - share)
        assert (drawn[:, 3] == 1).all()  # on each other they look as one does
    kept = int(front.non_dominated.sum())
    assert len(np.asarray(found["test dominated"].get_offsets())) == 25 - kept
    line = np.asarray(axes.lines[0].get_xydata())
    assert len(line) == kept
    assert (np.diff(line[:, 0]) >= 0).all()
    assert (np.diff(line[:, 1]) <= 0).all()


def test_a_point_has_the_colour_of_its_ray() -> None:
    front = made([[0.8, 0.2], [0.2, 0.8]], [[0.3, 0.2], [0.5, 0.1]], ("a", "b"), (2, 2))
    axes = axes_of(front_figure([front]))
    colours = np.asarray(scatters(axes["front"])["test non-dominated"].get_facecolor())
    drawn = {to_rgba(line.get_color()) for line in axes["rays"].lines[:2]}
    assert drawn == {tuple(colour) for colour in colours}
    assert len(drawn) == 2


def test_fronts_of_one_split_are_named_by_what_differs() -> None:
    def of(method: str) -> Front:
        values = [[0.3, 0.2], [0.5, 0.1]]
        rays = [[0.9, 0.1], [0.1, 0.9]]
        return made(rays, values, ("a", "b"), (2, 2), provenance={"method": method})

    assert read_legend(front_figure([of("cosmos"), of("epo")]))[1].startswith("epo: ")
    assert read_legend(front_figure([of("cosmos"), of("cosmos")]))[1].startswith("test 2: ")


def test_three_objectives_give_a_panel_per_pair() -> None:
    rays = even_rays(20, 3).numpy().astype(np.float64)
    front = made(rays, 1 - 0.6 * np.sqrt(rays), ("left", "right", "copy"), (2, 2, 2))
    figure = front_figure([front], title="three")
    axes = axes_of(figure)
    assert list(axes) == ["front 0 1", "front 0 2", "front 1 2", "rays"]
    assert axes["front 0 2"].get_xlabel().startswith("left")
    assert axes["front 0 2"].get_ylabel().startswith("copy")
    points = np.asarray(scatters(axes["front 1 2"])["test non-dominated"].get_offsets())
    np.testing.assert_array_equal(points, front.values[:, 1:])


@pytest.mark.parametrize(
    "values",
    [
        [[0.3, 0.2]],
        [[0.3, 0.2]] * 4,
        [[0.0, 0.0]] * 2,
        [[2.0, 2.0]],
        [[2.0, 2.0], [0.5, 0.4]],
        [[3.0, 2.5], [2.5, 3.0]],
        [[0.5, 5.0], [1.0, 1.0], [4.0, 0.2]],
        [[-0.5, 0.1], [0.5, -0.1]],
        [[1e-12, 1e6], [1e-13, 2e6]],
    ],
    ids=["one", "equal", "zero", "at", "one at", "worse", "across", "negative", "scales"],
)
def test_odd_fronts_are_drawn_without_a_warning(tmp_path: Path, values: list[list[float]]) -> None:
    front = made(even_rays(len(values), 2).numpy(), values, ("a", "b"), (2, 2))
    save_front(tmp_path / "front.png", [front])
    axes = axes_of(front_figure([front]))
    for low, high, of in zip(*axes["front"].dataLim.get_points(), front.values.T, strict=True):
        assert (low, high) == (of.min(), of.max()) or 2.0 in (low, high)
    (left, right), (bottom, top) = axes["front"].get_xlim(), axes["front"].get_ylim()
    assert left < front.values[:, 0].min() <= front.values[:, 0].max() < right
    assert bottom < front.values[:, 1].min() <= front.values[:, 1].max() < top


def test_a_point_without_a_number_is_left_out() -> None:
    rays = [[0.9, 0.1], [0.1, 0.9]]
    front = made(rays, [[0.3, 0.2], [np.nan, 0.1]], ("a", "b"), (2, 2))
    found = scatters(axes_of(front_figure([front]))["front"])
    assert len(np.asarray(found["test non-dominated"].get_offsets())) == 1
    with pytest.raises(DataError, match="nothing to draw"):
        front_figure([made([[0.5, 0.5]], [[np.nan, 0.1]], ("a", "b"), (2, 2))])


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="at least one front"):
        front_figure([])
    with pytest.raises(ConfigurationError, match=r"two objectives.*only `a`"):
        front_figure([made([[1.0]], [[0.3]], ("a",), (2,))])
    other = made([[0.5, 0.5]], [[0.3, 0.2]], ("loss", "gap"), (2, 2))
    with pytest.raises(ConfigurationError, match="the same objectives"):
        front_figure([curve(), other])


def alone(objectives: int = 2) -> Front:
    """A network for every objective by itself: good at that one only."""
    names = ("a", "b", "c")[:objectives]
    rays = np.eye(objectives)
    return made(rays, 1.5 - 1.2 * rays, names, np.full(objectives, 2.0))


@pytest.mark.parametrize("objectives", [2, 3])
def test_networks_for_one_objective_each_are_no_line_but_have_an_ideal_point(
    objectives: int,
) -> None:
    figure = front_figure([alone(objectives)])
    points, ideal = read_legend(figure)
    assert points.startswith("test: hypervolume ")
    assert ideal == f"test: ideal point, {1.7**objectives:.4f}"
    for label, axes in axes_of(figure).items():
        if label.startswith("front"):
            assert len(axes.lines) == 0
            (star,) = np.asarray(scatters(axes)["test ideal"].get_offsets())
            assert np.allclose(star, 0.3)
            (left, _), (bottom, _) = axes.get_xlim(), axes.get_ylim()
            assert (star > (left, bottom)).all()
