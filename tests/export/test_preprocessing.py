"""The preprocessing in a file against `Table.transform` on the same frames."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paretocosmos.errors import DataError
from paretocosmos.export import Preprocessing
from paretocosmos.problems.tables import Table

# numbers that float32 holds, so that not a bit may differ
NUMBERS = st.one_of(
    st.floats(-1e6, 1e6, width=32),
    st.just(float("nan")),
    st.just(float("inf")),
    st.just(-(2.0**99)),
)
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "number": NUMBERS,
    "large": st.sampled_from([1e7 + 1, 1e7 + 2, 1e7 + 3]),
    "constant": st.just(0.5),
    "empty": st.just(float("nan")),
    "truth": st.booleans(),
    "text": st.sampled_from(["a", "b", "(missing)", "1", "", None]),
    "coded": st.sampled_from([0.0, 1.0, 2.5, -3.0, float("nan")]),
}


def frames(draw: st.DrawFn, names: list[str], least: int) -> pd.DataFrame:
    rows = draw(st.integers(least, 12))
    columns = {name: draw(st.lists(COLUMNS[name], min_size=rows, max_size=rows)) for name in names}
    return pd.DataFrame(columns)


@st.composite
def fitted_and_new(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, unique=True))
    return frames(draw, names, 1), frames(draw, names, 0)


def in_network(table: Table, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return Preprocessing(table)(torch.from_numpy(x)).numpy()


@given(fitted_and_new())
def test_equal_to_the_last_bit(pair: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    fitted, new = pair
    coded = [name for name in ("coded",) if name in fitted]
    with warnings.catch_warnings(action="ignore"):  # about what the fitting rows did not have
        table = Table.fit(fitted, categorical=coded)
        for frame in (fitted, new):
            found = in_network(table, table.encode(frame))
            np.testing.assert_array_equal(found, table.transform(frame))


def test_numbers_that_float32_rounds_are_close_where_nothing_warns() -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.normal(3e4, 1e4, 200), "b": draw.normal(0, 1e-3, 200)})
    table = Table.fit(frame)
    found = in_network(table, table.encode(frame))
    np.testing.assert_allclose(found, table.transform(frame), atol=1e-6)


def test_numbers_that_float32_cannot_hold_are_warned_about() -> None:
    frame = pd.DataFrame({"seconds": 1.7e9 + np.arange(20.0), "age": np.arange(20.0)})
    table = Table.fit(frame)
    with pytest.warns(UserWarning, match="`seconds`.*float32"):
        table.encode(frame)
    huge = pd.DataFrame({"seconds": [1e300], "age": [1.0]})
    with pytest.warns(UserWarning, match="float32 rounds"):
        assert np.isfinite(table.encode(huge)).all()  # not infinite, which would be missing


def test_what_stands_for_no_category() -> None:
    with_gap = Table.fit(pd.DataFrame({"a": ["x", "y", None]}))
    without = Table.fit(pd.DataFrame({"a": ["x", "y", "z"]}))
    odd = np.array([[-1], [3], [0.5], [1e30], [np.nan], [np.inf]], dtype=np.float32)
    none = with_gap.transform(pd.DataFrame({"a": [None]}))
    with pytest.warns(UserWarning, match="not in the training rows: `nowhere`"):
        strange = with_gap.transform(pd.DataFrame({"a": ["nowhere"]}))
    assert (in_network(with_gap, odd[:4]) == strange).all()
    assert (in_network(with_gap, odd[4:]) == none).all()
    with pytest.warns(UserWarning, match=r"not in the training rows: `\(missing\)`"):
        strange = without.transform(pd.DataFrame({"a": [None]}))
    assert (in_network(without, odd) == strange).all()


def test_encode_refuses_and_warns_as_transform_does() -> None:
    table = Table.fit(pd.DataFrame({"age": [20, 40], "work": ["State", "Private"]}))
    with pytest.raises(DataError, match=r"lacks.*`work`"):
        table.encode(pd.DataFrame({"age": [1]}))
    with pytest.raises(DataError, match=r"numbers.*was fitted"):
        table.encode(pd.DataFrame({"age": ["old"], "work": ["State"]}))
    said = []
    for call in (table.encode, table.transform):
        with pytest.warns(UserWarning, match="not in the training rows") as caught:
            call(pd.DataFrame({"work": ["Abroad"], "age": [1], "more": [2]}))
        said.append((str(caught[0].message), caught[0].filename))
    assert said[0] == said[1]
    assert said[0][1] == __file__  # the caller's line
