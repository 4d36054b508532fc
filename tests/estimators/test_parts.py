"""What the estimators are made of: splits, rows that are alike, epochs, and what they import."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretocosmos.estimators.inputs import Rows
from paretocosmos.estimators.training import (
    SMALL,
    STEPS,
    STEPS_WITHOUT_VALIDATION,
    choose_epochs,
    merge_equal_rows,
    split_rows,
)

WITHOUT = """
import sys
sys.modules[{package!r}] = None  # as if it were not installed
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == {package!r} else found(name, *more)
from paretocosmos.errors import MissingExtraError
try:
    import paretocosmos.estimators
except MissingExtraError as error:
    print(error)
"""


class TestSplits:
    @given(seed=st.integers(0, 2**31), share=st.floats(0.05, 0.6), strata=st.integers(1, 8))
    def test_every_row_is_in_one_part_and_every_stratum_in_both(
        self, seed: int, share: float, strata: int
    ) -> None:
        codes = np.random.default_rng(seed).integers(0, strata, 300)
        train, val = split_rows(codes, share, seed)
        assert sorted([*train, *val]) == list(range(300))
        for stratum in np.unique(codes):
            size, kept = (codes == stratum).sum(), (codes[val] == stratum).sum()
            assert abs(kept - share * size) <= 1
            assert 0 < kept < size
        again = split_rows(codes, share, seed)
        np.testing.assert_array_equal(val, again[1])

    def test_rows_that_have_nobody_beside_them_are_drawn_all_the_same(self) -> None:
        train, val = split_rows(np.arange(200), 0.2, 0)
        assert (len(train), len(val)) == (160, 40)

    def test_few_rows_stay_together(self) -> None:
        train, val = split_rows(np.zeros(SMALL - 1, dtype=np.int64), 0.2, 0)
        np.testing.assert_array_equal(train, np.arange(SMALL - 1))
        assert train is val


class TestMergingEqualRows:
    def test_equal_rows_are_counted_as_pandas_counts_them(self) -> None:
        draw = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"a": draw.choice([1.0, 2.0, np.nan], 60), "b": pd.Series(["x", None] * 30)}
        )
        target, weight = draw.integers(0, 2, 60), draw.integers(1, 5, 60).astype(float)
        rows = merge_equal_rows(Rows(frame, (target,), weight=weight))
        grouped = frame.assign(y=target, w=weight).groupby(["a", "b", "y"], dropna=False)["w"].sum()
        merged = rows.frame.assign(y=rows.truth[0], w=rows.weight).set_index(["a", "b", "y"])["w"]
        assert len(merged) == len(grouped)
        np.testing.assert_allclose(merged.sort_index().to_numpy(), grouped.sort_index().to_numpy())

    def test_the_order_of_rows_does_not_matter(self) -> None:
        draw = np.random.default_rng(0)
        frame = pd.DataFrame({"a": draw.normal(size=20), "b": draw.choice(["x", "y"], 20)})
        rows = Rows(frame, (np.zeros(20),))
        shuffled = rows.take(draw.permutation(20))
        pd.testing.assert_frame_equal(
            merge_equal_rows(rows).frame, merge_equal_rows(shuffled).frame
        )


class TestEpochs:
    @given(rows=st.integers(2, 200_000), features=st.integers(1, 5000), holds_out=st.booleans())
    def test_there_are_enough_steps_and_the_table_stays_small(
        self, rows: int, features: int, holds_out: bool
    ) -> None:
        size = min(256, rows)
        epochs, repeat = choose_epochs(None, rows, features, size, holds_out=holds_out)
        steps = epochs * repeat * -(-rows // size)
        assert epochs * repeat >= 50
        assert steps >= (STEPS if holds_out else STEPS_WITHOUT_VALIDATION)
        assert repeat == 1 or rows * features * repeat <= 4_000_000
        assert repeat == 1 or repeat * -(-rows // size) <= 100

    def test_epochs_are_taken_at_their_word(self) -> None:
        assert choose_epochs(7, 50, 10, 50, holds_out=False) == (7, 1)


@pytest.mark.system
@pytest.mark.parametrize("package", ["sklearn", "pandas"])
def test_a_missing_extra_gives_the_command(package: str) -> None:
    code = WITHOUT.format(package=package)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    named = package.replace("sklearn", "scikit-learn")
    assert done.stdout.strip() == (
        f"an estimator needs `{named}`, which is not installed; "
        'run: pip install "paretocosmos[tabular]"'
    )
