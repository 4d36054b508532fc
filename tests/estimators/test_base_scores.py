import numpy as np
import pytest
from fairlearn.metrics import equal_opportunity_difference
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.estimators.conftest import People

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.estimators.base_scores import BaseScores
from paretocosmos.estimators.inputs import Rows
from paretocosmos.estimators.objectives import Classes

BASE = HistGradientBoostingClassifier(max_iter=20, random_state=0)


@pytest.fixture(scope="module")
def trees() -> Pipeline:
    """A pipeline that reads the text and the gaps of a frame itself."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["work", "size"]), remainder="passthrough"
    )
    return make_pipeline(encode, HistGradientBoostingClassifier(max_iter=20, random_state=0))


@pytest.mark.parametrize("base", [BASE, LogisticRegression(), RidgeClassifier()])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_those_of_cross_val_predict(people: People, base: object, classes: int) -> None:
    label = people.kind if classes == 3 else people.rich
    target, codes = Classes("label", np.unique(label)), np.unique(label, return_inverse=True)[1]
    features = people.x[["age"]]
    fitted, scored = BaseScores.fit(base, Rows(people.x, (codes,), given=features), [target], 5)
    assert fitted is not None
    cut = StratifiedKFold(5, shuffle=True, random_state=5)
    how = "decision_function" if isinstance(base, RidgeClassifier) else "predict_proba"
    found = cross_val_predict(clone(base), features, label, cv=cut, method=how)
    if how == "predict_proba":
        logs = np.log(found.astype(np.float64).clip(1e-6, 1 - 1e-6))
        found = logs if classes == 3 else logs[:, 1] - logs[:, 0]
    added = scored.frame.iloc[:, people.x.shape[1] :].to_numpy()
    np.testing.assert_allclose(added, found.reshape(len(label), -1), atol=1e-9)
    assert list(scored.frame.columns[: people.x.shape[1]]) == list(people.x.columns)


@pytest.mark.parametrize("group", ["estimate", "input"])
def test_without_weight_on_the_gap_the_answers_are_those_of_the_base(
    people: People, trees: Pipeline, group: str
) -> None:
    model = ParetoClassifier(base=trees, group=group, epochs=2, random_state=0)  # type: ignore[arg-type]
    model.fit(people.x, people.rich, sensitive=people.sex)
    known = {"sensitive": people.sex} if group == "input" else {}
    own = model.predict_proba(people.x, preference=[1, 0], **known)
    assert own == pytest.approx(model._scores.model.predict_proba(people.x), abs=1e-5)
    assert not hasattr(trees[-1], "classes_")  # a copy was fitted
    moved = model.predict(people.x, preference=[0, 1], **known)
    before = model.predict(people.x, preference=[1, 0], **known)
    gaps = [
        equal_opportunity_difference(
            people.rich == "yes", said == "yes", sensitive_features=people.sex
        )
        for said in (before, moved)
    ]
    assert gaps[1] < gaps[0]


def test_a_fitted_base_is_adjusted_as_it_is(people: People, trees: Pipeline) -> None:
    fitted = clone(trees).fit(people.x, people.rich)
    model = ParetoClassifier(base=fitted, group="input", random_state=0)
    model.fit(people.x, people.rich, sensitive=people.sex)
    answers = model.predict(people.x, preference=[1, 0], sensitive=people.sex)
    assert (answers == fitted.predict(people.x)).all()
    again = clone(model).set_params(base=fitted).fit(people.x, people.rich, sensitive=people.sex)
    two = (
        m.predict_proba(people.x, preference=[1, 0], sensitive=people.sex) for m in (model, again)
    )
    np.testing.assert_array_equal(*two)
    with pytest.raises(DataError, match="fitted for the class `no`"):
        ParetoClassifier(base=fitted).fit(people.x, people.kind.astype(str))


@pytest.mark.parametrize(
    ("base", "kind", "message"),
    [
        (DummyRegressor(), ConfigurationError, "`base` must be a scikit-learn classifier"),
        (LogisticRegression, ConfigurationError, "`base` must be a scikit-learn classifier"),
        ("trees", ConfigurationError, "`base` must be a scikit-learn classifier"),
    ],
)
def test_what_is_no_classifier_is_refused(
    people: People, base: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        ParetoClassifier(base=base).fit(people.x, people.rich, sensitive=people.sex)


def test_what_a_base_cannot_do_is_said(people: People) -> None:
    weight = np.arange(1, len(people.x) + 1)
    with pytest.raises(DataError, match="takes no `sample_weight`"):
        ParetoClassifier(base=KNeighborsClassifier()).fit(
            people.x, people.rich, sensitive=people.sex, sample_weight=weight
        )
    with pytest.raises(DataError, match="reads `X` as it is"):
        ParetoClassifier(base=LogisticRegression()).fit(people.x, people.rich)
    both = people.x[["size"]].assign(kind=people.kind)
    with pytest.raises(ConfigurationError, match="`base` scores one target, found 2"):
        ParetoClassifier(base=BASE).fit(people.x, both)
