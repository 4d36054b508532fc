import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from tests.estimators.conftest import People

from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.estimators.base_scores import BaseScores
from paretocosmos.estimators.inputs import Rows
from paretocosmos.estimators.targets import Classes

BASE = HistGradientBoostingClassifier(max_iter=20, random_state=0)


@pytest.mark.parametrize("base", [BASE, LogisticRegression(), RidgeClassifier()])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_those_of_cross_val_predict(people: People, base: object, classes: int) -> None:
    label = people.kind if classes == 3 else (people.rich == "yes").astype(int)
    rows = Rows(people.x, (label,))
    fitted, scored = BaseScores.fit(base, rows, [Classes("label", np.arange(classes))], (), 5)
    assert fitted is not None
    features = fitted.table.transform(people.x)
    cut = StratifiedKFold(5, shuffle=True, random_state=5)
    how = "decision_function" if isinstance(base, RidgeClassifier) else "predict_proba"
    found = cross_val_predict(clone(base), features, label, cv=cut, method=how)
    if how == "predict_proba":
        logs = np.log(found.astype(np.float64).clip(1e-6, 1 - 1e-6))
        found = logs if classes == 3 else logs[:, 1] - logs[:, 0]
    added = scored.frame.iloc[:, people.x.shape[1] :].to_numpy()
    np.testing.assert_allclose(added, found.reshape(len(label), -1), atol=1e-9)
    assert list(scored.frame.columns[: people.x.shape[1]]) == list(people.x.columns)


def test_a_network_begins_where_its_base_ends() -> None:
    """The label is the parity of two numbers, which ten epochs do not find out."""
    draw = np.random.default_rng(0)
    x = draw.integers(0, 8, size=(2000, 2)).astype(float)
    y, sex = (x.sum(axis=1) % 2).astype(int), draw.choice(["f", "m"], 2000)
    base = KNeighborsClassifier(3)
    fitted = ParetoClassifier(random_state=0, base=base, epochs=10)
    fitted.fit(x[:1500], y[:1500], sensitive=sex[:1500])
    assert fitted.score(x[1500:], y[1500:], preference=[0.9, 0.1]) > 0.95
    assert not hasattr(base, "classes_")  # a copy was fitted
    assert fitted.n_features_in_ == 2


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
    both = people.x[["size"]].assign(kind=people.kind)
    with pytest.raises(ConfigurationError, match="`base` scores one target, found 2"):
        ParetoClassifier(base=BASE).fit(people.x, both)
