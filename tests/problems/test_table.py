"""`Table` against pandas.get_dummies and scikit-learn, and what it refuses."""

import dataclasses
import json
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from paretocosmos.errors import ConfigurationError, DataError, DataWarning, MissingExtraError
from paretocosmos.problems.tables import MAX_CATEGORIES, Table


def people(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "work": draw.choice(["State", "Private", "None at all"], rows),
            "age": draw.integers(17, 90, rows),
            "code": draw.choice([-2, 0, 10, 9], rows),
            "income": draw.normal(3e4, 1e4, rows),
            "member": draw.random(rows) < 0.3,
            "size": pd.Categorical(draw.choice(["s", "l", "m"], rows), ["s", "m", "l", "xl"]),
        }
    )


class TestAgainstOracles:
    def test_get_dummies_and_standard_scaler(self) -> None:
        frame = people()
        frame["size"] = frame["size"].astype(str)
        dummies = pd.get_dummies(
            frame, columns=["work", "code", "member", "size"], prefix_sep="=", dtype=float
        )
        table = Table.fit(frame, categorical=["code"])
        assert table.features == tuple(dummies.columns)
        np.testing.assert_allclose(
            table.transform(frame), StandardScaler().fit_transform(dummies), atol=1e-5
        )

    def test_one_hot_encoder_on_rows_it_was_not_fitted_on(self) -> None:
        train, test = people(), people(100, seed=1)
        names = ["work", "member", "size"]
        oracle = make_pipeline(
            ColumnTransformer(
                [
                    ("keep", "passthrough", ["age", "code", "income"]),
                    ("hot", OneHotEncoder(sparse_output=False), names),
                ]
            ),
            StandardScaler(),
        ).fit(train)
        table = Table.fit(train)
        np.testing.assert_allclose(table.transform(test), oracle.transform(test), atol=1e-5)

    def test_missing_numbers_against_simple_imputer(self) -> None:
        train = pd.DataFrame({"a": [1.0, np.nan, 4.0, np.inf, 7.5], "b": [1.0, 2, 3, 4, 5]})
        test = pd.DataFrame({"a": [2.0, np.nan], "b": [-np.inf, 9.0]})
        finite = train.replace(np.inf, np.nan)
        impute = SimpleImputer(strategy="median", add_indicator=True).fit(finite)
        scaler = StandardScaler().fit(impute.transform(finite))
        expected = scaler.transform(impute.transform(test.replace(-np.inf, np.nan)))
        table = Table.fit(train)
        assert table.features == ("a", "b", "a=(missing)")
        np.testing.assert_allclose(table.transform(test), expected, atol=1e-6)

    def test_a_weight_is_a_repetition(self) -> None:
        frame = people()
        frame.loc[::7, "income"] = np.nan
        frame.loc[::11, "work"] = None
        weight = np.random.default_rng(3).integers(1, 4, len(frame))
        weighted = Table.fit(frame, weight=weight.astype(np.float64))
        repeated = Table.fit(frame.loc[frame.index.repeat(weight)])
        assert weighted.numeric == repeated.numeric
        np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-12)
        np.testing.assert_allclose(weighted.scale, repeated.scale, rtol=1e-12)

    def test_weights_against_standard_scaler(self) -> None:
        frame = people()[["age", "income"]]
        weight = np.random.default_rng(4).random(len(frame)) + 0.1
        expected = StandardScaler().fit(frame, sample_weight=weight).transform(frame)
        found = Table.fit(frame, weight=weight).transform(frame)
        np.testing.assert_allclose(found, expected, atol=1e-5)

    def test_a_constant_column_becomes_zeros(self) -> None:
        frame = pd.DataFrame({"a": [0.1] * 30, "b": ["x"] * 30, "c": [np.nan] * 30})
        with pytest.warns(DataWarning, match="`c` must have a value"):
            table = Table.fit(frame)
        assert (table.transform(frame) == 0).all()

    def test_numbers_too_close_together_to_square(self) -> None:
        frame = pd.DataFrame({"a": [0.0, 1e-200]})
        assert np.isfinite(Table.fit(frame).transform(frame)).all()


class TestCategories:
    def test_numbers_sort_by_value(self) -> None:
        table = Table.fit(pd.DataFrame({"code": [10, -2, 9, 9]}), categorical=["code"])
        assert table.categorical == {"code": ("-2", "9", "10")}

    def test_an_integer_read_as_a_float_or_as_text_is_the_same_category(self) -> None:
        table = Table.fit(pd.DataFrame({"code": [1, 2, 1]}), categorical=["code"])
        for again in ([1.0, 2.0], ["1", "2"], pd.array([1, 2], dtype="Int64")):
            rows = table.transform(pd.DataFrame({"code": again}))
            np.testing.assert_array_equal(rows, table.transform(pd.DataFrame({"code": [1, 2]})))

    def test_missing_is_a_category_if_it_was_seen(self) -> None:
        table = Table.fit(pd.DataFrame({"c": ["b", None, "a"], "d": ["x", "x", "y"]}))
        assert table.features == ("c=a", "c=b", "c=(missing)", "d=x", "d=y")
        row = table.transform(pd.DataFrame({"c": [None], "d": ["y"]}, dtype=object))
        assert row[0, 2] > 0 > row[0, 0]

    def test_an_unseen_value_is_zeros_and_a_warning(self) -> None:
        table = Table.fit(pd.DataFrame({"c": ["a", "b", "b"], "n": [1, 2, 3]}))
        zeros = -np.array(table.mean) / np.array(table.scale)
        for value in ("new", None):
            shown = "new" if value else r"\(missing\)"
            with pytest.warns(UserWarning, match=f"`c` has values .*: `{shown}`;"):
                row = table.transform(pd.DataFrame({"c": [value], "n": [2]}))
            np.testing.assert_allclose(row[0, 1:], zeros[1:], rtol=1e-6)


class TestFrames:
    def test_nothing_is_modified_and_further_columns_are_ignored(self) -> None:
        frame = people()
        frame.loc[3, "income"] = np.inf
        before = frame.copy(deep=True)
        table = Table.fit(frame)
        table.transform(frame.assign(more="text")[["more", *reversed(frame.columns)]])
        pd.testing.assert_frame_equal(frame, before)

    def test_nullable_and_object_numbers(self) -> None:
        table = Table.fit(pd.DataFrame({"a": pd.array([1, None, 5], dtype="Int64")}))
        assert table.numeric == {"a": 3.0}
        rows = table.transform(pd.DataFrame({"a": pd.Series([1, None], dtype=object)}))
        expected = table.transform(pd.DataFrame({"a": [1.0, np.nan]}))
        np.testing.assert_array_equal(rows, expected)


class TestJson:
    def test_there_and_back_bit_for_bit(self) -> None:
        frame = people()
        frame.loc[::7, "income"] = np.nan
        table = Table.fit(frame)
        again = Table.from_dict(json.loads(json.dumps(table.to_dict(), allow_nan=False)))
        assert again == table
        np.testing.assert_array_equal(again.transform(frame), table.transform(frame))

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"numeric": [1, 2]}, "this is not a table"),
            ({"mean": None}, "`mean` must be a list, found None"),
            ({"flagged": ["height"]}, "`flagged`.*`numeric`"),
            ({"categorical": {"work": [1]}}, r"`categorical.work\[0\]`.*found 1"),
            ({"mean": [0.0]}, "11 features, found 1 and 11"),
            ({"scale": [0.0] * 11}, "`scale`, which is not 0,"),
        ],
    )
    def test_damage_is_one_sentence(self, change: dict[str, Any], sentence: str) -> None:
        with pytest.raises(DataError, match=sentence):
            Table.from_dict(Table.fit(people()).to_dict() | change)


class TestRefusals:
    def test_lacking_columns_are_listed(self) -> None:
        with pytest.raises(DataError, match="fitted with: `age`, `work`"):
            Table.fit(people()).transform(people().drop(columns=["work", "age"]))

    @pytest.mark.parametrize("kind", [object, "str", "category"])
    def test_text_in_a_column_of_numbers(self, kind: Any) -> None:
        table = Table.fit(people())
        rows = people(3).assign(age=pd.Series(["31", "2", "old"], dtype=kind))
        with pytest.warns(DataWarning, match=r"`age` has 1 cell without a number.*`old` in row 3"):
            found = table.transform(rows)
        expected = table.transform(rows.assign(age=[31.0, 2.0, np.nan]))
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("kind", [object, "str", "category"])
    def test_nothing_but_text_in_a_column_of_numbers(self, kind: Any) -> None:
        rows = people(2).assign(age=pd.Series(["young", "old"], dtype=kind))
        with pytest.raises(DataError, match=r"`age` held numbers .*'young'"):
            Table.fit(people()).transform(rows)

    @pytest.mark.parametrize("values", [pd.to_datetime(["2020-01-01"] * 2), [1j, 2j]])
    def test_what_is_neither_number_nor_category(self, values: Any) -> None:
        with pytest.raises(DataError, match="`when` must hold numbers, text"):
            Table.fit(pd.DataFrame({"when": values}))

    def test_a_name_per_row(self) -> None:
        frame = pd.DataFrame({"name": [f"n{at}" for at in range(MAX_CATEGORIES + 1)]})
        with pytest.raises(DataError, match=r"1,000 .*found 1,001 in `name`"):
            Table.fit(frame)

    def test_numbers_too_large(self) -> None:
        with pytest.raises(DataError, match=r"`a` has numbers too large .* 1e\+300"):
            Table.fit(pd.DataFrame({"a": [1e300, -1e300]}))

    def test_the_same_name_twice(self) -> None:
        with pytest.raises(DataError, match="found `a` twice"):
            Table.fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))

    @pytest.mark.parametrize("frame", [pd.DataFrame({"a": []}), pd.DataFrame(index=[1, 2])])
    def test_nothing_to_fit_on(self, frame: pd.DataFrame) -> None:
        with pytest.raises(DataError, match="one row and one column"):
            Table.fit(frame)

    def test_an_unknown_categorical_column(self) -> None:
        with pytest.raises(ConfigurationError, match="did you mean `work`"):
            Table.fit(people(), categorical=["wrok"])

    def test_without_pandas(self, monkeypatch: pytest.MonkeyPatch) -> None:
        frame = people()
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtraError, match=r"`pandas`.*paretocosmos\[tabular\]"):
            Table.fit(frame)


def test_tables_agree_to_their_last_digits() -> None:
    table = Table.fit(people())
    rounded = dataclasses.replace(table, scale=tuple(s * (1 + 1e-13) for s in table.scale))
    assert rounded != table
    assert table.agrees_with(rounded)
    moved = dataclasses.replace(table, mean=tuple(m + 1e-3 for m in table.mean))
    assert not table.agrees_with(moved)
    assert not table.agrees_with(Table.fit(people().iloc[:, :-1]))
    assert not table.agrees_with(None)
