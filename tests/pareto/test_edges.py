"""Edges of rays, scalarisations and metrics, where a changed sign or bound would go unseen."""

import re

import numpy as np
import numpy.typing as npt
import pytest
import torch

from paretocosmos.errors import ConfigurationError
from paretocosmos.pareto import Front, apply_floor, as_rays, even_rays
from paretocosmos.pareto.metrics import (
    angle,
    dominated_share,
    hypervolume,
    inverted_share,
    normalised_hypervolume,
    range_covered,
)

NAMES = ("binary_cross_entropy", "gap")


def front_of(
    values: npt.ArrayLike,
    rays: npt.ArrayLike | None = None,
    *,
    names: tuple[str, ...] = NAMES,
    metrics: dict[str, npt.NDArray[np.float64]] | None = None,
) -> Front:
    found = np.asarray(values, dtype=np.float64)
    weights = np.linspace(0.9, 0.1, len(found))
    given = np.stack([weights, 1 - weights], axis=1) if rays is None else np.asarray(rays, float)
    return Front(given, found, names, np.full(len(names), 2.0), metrics or {})


class TestRays:
    def test_weights_by_name_come_in_the_order_of_the_objectives(self) -> None:
        found = as_rays({"gap": 0.75, "binary_cross_entropy": 0.25}, 2, names=NAMES)
        torch.testing.assert_close(found, torch.tensor([[0.25, 0.75]]))

    def test_a_name_that_is_left_out_weighs_nothing(self) -> None:
        assert as_rays({"gap": 1.0}, 2, names=NAMES).tolist() == [[0.0, 1.0]]

    def test_accuracy_is_the_one_cross_entropy(self) -> None:
        assert as_rays({"accuracy": 1.0}, 2, names=NAMES).tolist() == [[1.0, 0.0]]
        several = ("cross_entropy", "other_cross_entropy")
        with pytest.raises(ConfigurationError, match="unknown objective `accuracy`"):
            as_rays({"accuracy": 1.0}, 2, names=several)

    def test_an_objective_called_accuracy_is_itself(self) -> None:
        found = as_rays({"accuracy": 1.0}, 2, names=("binary_cross_entropy", "accuracy"))
        assert found.tolist() == [[0.0, 1.0]]

    def test_an_unknown_name_and_names_where_there_are_none(self) -> None:
        with pytest.raises(ConfigurationError, match="did you mean `gap`"):
            as_rays({"gpa": 1.0}, 2, names=NAMES)
        with pytest.raises(ConfigurationError, match=r"one per objective, found \{'gap': 1.0\}"):
            as_rays({"gap": 1.0}, 2)

    @pytest.mark.parametrize("count", [2, 3, 9])
    def test_two_objectives_go_from_corner_to_corner(self, count: int) -> None:
        found = even_rays(count, 2, ends=True)
        expected = torch.linspace(0, 1, count)
        torch.testing.assert_close(found, torch.stack([1 - expected, expected], dim=1))

    @pytest.mark.parametrize("objectives", [3, 4])
    def test_more_objectives_begin_with_the_corners(self, objectives: int) -> None:
        found = even_rays(objectives + 4, objectives, ends=True)
        assert torch.equal(found[:objectives], torch.eye(objectives))
        centre = torch.full((int(objectives > 3), objectives), 1 / objectives)
        inner = even_rays(4 - len(centre), objectives)
        assert torch.equal(found[objectives:], torch.cat([centre, inner]))
        assert torch.equal(even_rays(objectives, objectives, ends=True), torch.eye(objectives))
        assert torch.equal(even_rays(2, objectives, ends=True), torch.eye(objectives)[:2])

    def test_the_rays_given_are_not_shared(self) -> None:
        given = np.array([0.5, 0.5], dtype=np.float32)
        found = as_rays(given, 2)
        given[:] = [0.25, 0.75]
        assert found.tolist() == [[0.5, 0.5]]
        given.flags.writeable = False
        assert as_rays(given, 2).tolist() == [[0.25, 0.75]]  # without a warning of torch's

    def test_the_bad_ray_is_named_with_an_example(self) -> None:
        with pytest.raises(ConfigurationError, match=re.escape("[0.5, -0.5]") + ".* 0.5,0.5$"):
            as_rays([[0.0, 1.0], [0.5, -0.5], [0.5, float("nan")]], 2)

    def test_the_sum_farthest_from_one_is_named(self) -> None:
        with pytest.raises(ConfigurationError, match=r"a sum of 1\.8"):
            as_rays([[0.5, 0.6], [0.9, 0.9], [0.5, 0.5]], 2)


class TestScalarisations:
    @pytest.mark.parametrize("objectives", [2, 3])
    def test_the_largest_floor_is_the_centre(self, objectives: int) -> None:
        found = apply_floor(torch.eye(objectives), 1 / objectives)
        torch.testing.assert_close(found, torch.full_like(found, 1 / objectives))

    def test_no_floor_is_the_ray_itself(self) -> None:
        ray = torch.tensor([0.3, 0.7])
        assert apply_floor(ray, 0.0) is ray


class TestMetrics:
    def test_whole_numbers_are_numbers(self) -> None:
        assert hypervolume([[0, 1], [1, 0]], [2, 2]) == 3.0

    def test_a_point_on_the_edge_of_the_box_adds_nothing(self) -> None:
        assert hypervolume([[2.0, 0.0], [1.0, 1.0]], (2, 2)) == 1.0

    def test_draws_may_be_whole_numbers(self) -> None:
        front = front_of([[0.0, 0.0], [1.0, 1.0]])
        assert dominated_share(front, [[[0, 0], [1, 1]]] * 40) == 0.5

    def test_draws_beyond_chance_are_counted_from_the_limit_on(self) -> None:
        # 39 of 40 draws are 97.5 %
        front = front_of([[0.0, 0.0], [1.0, 1.0]])
        draws = np.stack([front.values] * 39 + [front.values[::-1]])
        assert dominated_share(front, draws) == 0.5
        assert dominated_share(front, np.concatenate([draws, draws[-1:]])) == 0.0

    def test_equal_values_are_in_order(self) -> None:
        front = front_of([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
        draws = np.stack([front.values] * 10)
        assert inverted_share(front, draws).tolist() == [0, 0]

    def test_small_values_have_an_angle(self) -> None:
        # (0, 0.01) lies 45 degrees from (0.5, 0.5)
        assert angle(front_of([[0.0, 0.01]], [[0.5, 0.5]])) == pytest.approx(45)

    def test_small_ranges_are_covered(self) -> None:
        wide = front_of([[0.0, 0.2], [0.2, 0.0]])
        narrow = front_of([[0.05, 0.1], [0.1, 0.05]])
        np.testing.assert_allclose(range_covered(narrow, wide), [0.25, 0.25])

    @pytest.mark.parametrize("box", [((0, 0), (1, 1, 1)), ((0, 0, 0), (1, 1)), ((0,), (1,))])
    def test_a_box_has_two_ends_of_one_size(
        self, box: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> None:
        with pytest.raises(ConfigurationError, match="`box`"):
            normalised_hypervolume(front_of([[0.5, 0.5]]), box)


class TestShown:
    def test_a_front_shows_weights_values_and_metrics(self) -> None:
        metrics = {"accuracy": np.array([0.875, 0.75])}
        front = front_of([[0.25, 0.5], [0.5, 0.25]], metrics=metrics)
        said = repr(front)
        assert said.startswith("Front of binary_cross_entropy and gap on test, 2 rays")
        for word in ("weight_binary_cross_entropy", "accuracy", "0.8750", "0.2500"):
            assert word in said
        assert "weight_gap" not in said  # the other weight follows
        assert "to_frame" not in said  # all is shown
        shown = front._repr_html_()
        assert "<table" in shown
        assert shown.count("<circle") == 2

    def test_a_long_front_says_how_much_is_left_out(self) -> None:
        values = np.stack([np.linspace(0, 1, 40), np.linspace(1, 0, 40)], axis=1)
        wide = {f"a_rather_long_name_{n}": np.zeros(40) for n in range(8)}
        said = repr(front_of(values, metrics=wide))
        assert "of 40 rays, without a_rather_long_name_" in said
        assert "`.to_frame()` returns all." in said

    def test_three_objectives_show_every_weight(self) -> None:
        said = repr(front_of(np.eye(3), np.eye(3), names=("a", "b", "c")))
        assert all(f"weight_{name}" in said for name in "abc")

    def test_a_frame_has_everything(self) -> None:
        pytest.importorskip("pandas")
        metrics = {"accuracy": np.array([0.875, 0.75])}
        front = front_of([[0.25, 0.5], [0.5, 0.25]], metrics=metrics)
        frame = front.to_frame()
        weights = frame[["weight_binary_cross_entropy", "weight_gap"]]
        np.testing.assert_array_equal(weights.to_numpy(), front.rays)
        assert frame["non_dominated"].all()
        assert frame["gap"].tolist() == [0.5, 0.25]
        assert frame["accuracy"].tolist() == [0.875, 0.75]
        assert len(frame) == 2

    def test_fronts_that_do_not_fit_are_named(self) -> None:
        one, other = front_of([[0.5, 0.5]]), front_of([[0, 1]], names=("a", "b"))
        with pytest.raises(ConfigurationError, match="gap on test, 1 rays and Front of a and b"):
            one.join(other)
