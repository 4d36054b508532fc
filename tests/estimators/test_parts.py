"""What the estimators are made of: splits, rows that are alike, epochs, and what they import."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretocosmos.estimators.training import split_rows

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
