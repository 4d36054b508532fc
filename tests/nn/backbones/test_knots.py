import numpy as np
import torch
from torch import Tensor

from paretocosmos.nn.backbones import Tabular
from paretocosmos.types import Batch

# The smallest distance of knots in deviations, and the most in a column and in a table.
LEAST_DISTANCE, MOST_KNOTS, MOST_KNOTS_IN_ALL = 1e-3, 128, 1536
ROWS = 4000
GENERATOR = np.random.default_rng(0)
NUMBERS = torch.from_numpy(GENERATOR.normal(size=(ROWS, 3)).astype(np.float32))


def _knots(inputs: Tensor, targets: dict[str, Tensor]) -> tuple[tuple[float, ...], ...]:
    return Tabular.fitted(Batch(inputs, targets), 1)["knots"]


def _steps(column: Tensor, at: float) -> Tensor:
    return (column > at).float()


def test_the_tree_sees_where_the_target_changes_and_nothing_in_noise() -> None:
    label = _steps(NUMBERS[:, 0], 0.3)
    matters, noise, _ = _knots(NUMBERS, {"label": label})
    values = NUMBERS[:, 0].double().sort().values
    below, above = values[values <= 0.3][-1], values[values > 0.3][0]
    if above - below > LEAST_DISTANCE:
        assert {float(below), float(above)} <= set(matters)
    assert min(abs(knot - 0.3) for knot in matters) < 2 * LEAST_DISTANCE
    assert len(noise) == 9  # the quantiles alone


def test_a_heavy_value_is_told_apart_from_its_neighbours() -> None:
    gain = torch.where(torch.arange(ROWS) % 20 == 0, NUMBERS[:, :1].abs().T * 5 + 1, 0.0).T
    (knots,) = _knots(gain, {"label": _steps(gain[:, 0], 0.5)})
    assert knots[0] == 0.0
    assert knots[1] == gain[gain > 0].min()


def test_a_column_of_few_values_has_a_knot_at_each() -> None:
    column = torch.from_numpy(GENERATOR.integers(0, 30, size=(ROWS, 1))).float()
    assert _knots(column, {}) == (tuple(float(value) for value in range(30)),)


def test_bits_and_constants_have_none() -> None:
    bits = torch.stack([torch.zeros(ROWS), torch.arange(ROWS) % 2 * 3.0 - 1], dim=1)
    assert _knots(bits, {}) == ()
    knots = _knots(torch.cat([bits, NUMBERS[:, :1], bits], dim=1), {})
    assert [len(own) > 0 for own in knots] == [False, False, True]


def test_knots_increase_from_the_least_to_the_largest_and_are_apart() -> None:
    label = _steps(NUMBERS.prod(dim=1), 0.0)
    strange = NUMBERS.clone()
    strange[0, 0], strange[1, 0] = torch.inf, -torch.inf
    for column, knots in zip(strange.T, _knots(strange, {"label": label}), strict=True):
        finite = column[column.isfinite()].double()
        assert knots[0] == finite.min()
        assert knots[-1] >= finite.max() - LEAST_DISTANCE * finite.std(correction=0)
        assert (np.diff(knots) > LEAST_DISTANCE * float(finite.std(correction=0))).all()
        assert len(knots) <= MOST_KNOTS


def test_few_rows_have_few_knots_and_very_few_none() -> None:
    label = _steps(NUMBERS.sum(dim=1), 0.0)
    few, many = (_knots(NUMBERS[:rows], {"label": label[:rows]}) for rows in (400, ROWS))
    assert max(map(len, few)) <= 10 < max(map(len, many))
    assert _knots(NUMBERS[:80], {"label": label[:80]}) == ()


def test_a_table_that_is_repeated_has_the_knots_of_its_rows() -> None:
    rows, label = NUMBERS[:300], _steps(NUMBERS[:300, 1], 0.0)
    assert _knots(rows.repeat(9, 1), {"y": label.repeat(9)}) == _knots(rows, {"y": label})


def test_many_columns_share_what_there_is() -> None:
    wide = torch.from_numpy(GENERATOR.normal(size=(2000, 200)).astype(np.float32))
    knots = _knots(wide, {"y": _steps(wide[:, 0], 0.0)})
    assert sum(map(len, knots)) <= MOST_KNOTS_IN_ALL


def test_groups_of_people_and_weights_do_not_decide() -> None:
    label, other = _steps(NUMBERS[:, 0], 0.3), _steps(NUMBERS[:, 1], 0.1).long()
    with_groups = {"label": label, "sensitive": other, "weight": other + 1.0}
    assert _knots(NUMBERS, with_groups) == _knots(NUMBERS, {"label": label})


def test_classes_count_as_classes_and_not_as_numbers() -> None:
    """Class 1 lies between 0 and 2, and a tree of numbers would not see where it becomes one."""
    place = NUMBERS[:, 0]
    label = torch.where(place > 0.4, 1, torch.where(torch.arange(ROWS) % 2 == 0, 0, 2))
    knots, *_ = _knots(NUMBERS, {"label": label})
    assert min(abs(knot - 0.4) for knot in knots) < 2 * LEAST_DISTANCE
