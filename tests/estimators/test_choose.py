"""`choose`: a preference by what it reaches, and an estimator that keeps it."""

import pickle
import re
import warnings

import numpy as np
import pytest
from fairlearn.metrics import demographic_parity_difference
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.estimators.conftest import People

from paretocosmos import evaluate
from paretocosmos.errors import ConfigurationError, FrontWarning, InfeasibleError
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor
from paretocosmos.pareto import Point


def test_the_copy_predicts_at_the_chosen_ray(fair: ParetoClassifier, people: People) -> None:
    before = fair.get_params()
    chosen = fair.choose(max={"tpr_gap": 0.08})
    assert type(chosen) is ParetoClassifier
    assert isinstance(chosen.choice_, Point)
    assert chosen.preference == chosen.choice_.ray
    np.testing.assert_array_equal(
        chosen.predict_proba(people.x), fair.predict_proba(people.x, preference=chosen.preference)
    )
    assert chosen.score(people.x, people.rich) == fair.score(
        people.x, people.rich, preference=chosen.preference
    )
    assert fair.get_params() == before
    assert not hasattr(fair, "choice_")


def test_bounds_are_kept_on_held_out_rows(fair: ParetoClassifier) -> None:
    gaps = fair.front_.values[:, 1]
    for bound in np.linspace(gaps.min() + 0.01, gaps.max() - 0.01, 4):
        chosen = fair.choose(max={"tpr_gap": float(bound)})
        (check,) = chosen.bounds_
        assert check.pooled is not None
        assert check.pooled <= bound
        assert check.value == chosen.choice_["tpr_gap"] <= bound
        # validation rows are told as they are
        assert fair._problem is not None
        again = evaluate(fair.model_, fair._problem, split="val", rays=[list(chosen.preference)])
        values = list(chosen.choice_.values.values())
        np.testing.assert_allclose(again.values[0], values, rtol=1e-5)


def test_confidence_counts_all_rows_where_no_network_has_learned_them(people: People) -> None:
    known = ParetoClassifier(
        fairness="demographic_parity",
        group="input",
        base=make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
        random_state=0,
        progress=False,
    ).fit(people.x, people.rich, sensitive=people.sex)
    chosen = known.choose(max={"demographic_parity": 0.2}, confidence=0.9)
    (check,) = chosen.bounds_
    assert (check.split, check.rows) == ("train and val", len(people.rich))
    assert check.limit is not None
    assert check.value < check.limit <= 0.2
    assert check.chance <= 0.1
    # scores of copies fitted without the row, and multipliers fitted without its fold
    assert check.value != pytest.approx(
        demographic_parity_difference(
            people.rich == "yes",
            chosen.predict(people.x, sensitive=people.sex) == "yes",
            sensitive_features=people.sex,
        ),
        abs=1e-4,
    )
    smallest = 1.2816 * sum(0.25 / (people.sex == name).sum() for name in set(people.sex)) ** 0.5
    assert check.smallest is not None
    assert check.smallest <= smallest + 0.01  # by all rows, not by 15 % of them


def test_the_point_has_intervals(fair: ParetoClassifier) -> None:
    point = fair.choose(knee=True).choice_
    low, high = point.intervals["accuracy"]
    assert low < point["accuracy"] < high
    assert high - low < 0.2


@pytest.mark.parametrize(
    "criteria",
    [
        {"knee": True},
        {"weights": [0.3, 0.7]},
        {"near": {"accuracy": 0.8}},
        {"min": {"accuracy": 0.7}},
        {"maximize": "accuracy"},
        {"minimize": "tpr_gap", "min": {"accuracy": 0.7}},
    ],
)
def test_whatever_may_be_wished_for(fair: ParetoClassifier, criteria: dict[str, object]) -> None:
    point = fair.choose(**criteria).choice_  # type: ignore[arg-type]
    assert sum(point.ray) == pytest.approx(1, abs=1e-5)
    assert 0.7 <= point["accuracy"] < 1


def test_a_regressor_is_chosen_in_its_unit(sided: ParetoRegressor, people: People) -> None:
    chosen = sided.choose(max={"over_rate": 0.2})
    over = (chosen.predict(people.x) > people.income).mean()
    assert chosen.choice_["over_rate"] <= 0.2
    assert 0.05 < over < 0.3
    small = sided.choose(max={"rmse": 80.0}, minimize="over_prediction")
    assert small.choice_["rmse"] <= 80


def test_from_a_pickle_it_chooses_among_the_rays_it_has(fair: ParetoClassifier) -> None:
    read = pickle.loads(pickle.dumps(fair))
    with pytest.warns(FrontWarning, match="a pickle does not contain"):
        chosen = read.choose(knee=True)
    assert list(chosen.preference) in fair.front_.rays.tolist()
    assert chosen.choice_.intervals == {}
    kept = pickle.loads(pickle.dumps(fair.choose(knee=True)))
    assert kept.choice_ == fair.choose(knee=True).choice_


@pytest.mark.system
def test_networks_for_single_rays_are_chosen_among(people: People) -> None:
    fitted = ParetoClassifier(method="pareto_mtl", epochs=20, random_state=0)
    fitted.fit(people.x, people.rich, sensitive=people.sex)
    chosen = fitted.choose(knee=True)
    assert list(chosen.preference) in fitted.front_.rays.tolist()


def test_it_can_be_chosen_from_again(fair: ParetoClassifier) -> None:
    once = fair.choose(max={"tpr_gap": 0.08})
    assert once.choose(knee=True).choice_ == fair.choose(knee=True).choice_


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_a_rate_above_1_was_meant_in_percent(
    fair: ParetoClassifier, confidence: float | None
) -> None:
    with pytest.raises(ConfigurationError, match=r"`tpr_gap`.*did you mean 0\.02"):
        fair.choose(max={"tpr_gap": 2}, confidence=confidence)


def test_a_bound_kept_with_confidence(fair: ParetoClassifier) -> None:
    bound = float(fair.front_.values[:, 1].max() + 0.2)
    point = fair.choose(max={"tpr_gap": bound}, confidence=0.9).choice_
    assert point["tpr_gap"] < point.limits["tpr_gap"] <= bound
    with pytest.raises(InfeasibleError, match=r"with a confidence of 0\.9 on val"):
        fair.choose(max={"tpr_gap": 1e-4}, confidence=0.9)
    read = pickle.loads(pickle.dumps(fair))
    with pytest.raises(ConfigurationError, match="a pickle does not contain"):
        read.choose(max={"tpr_gap": bound}, confidence=0.9)


def test_a_threshold_decides_what_is_predicted(fair: ParetoClassifier, people: People) -> None:
    chosen = fair.choose(maximize="accuracy", threshold=0.8)
    assert (chosen.threshold_, fair.threshold_) == (0.8, 0.5)
    likely = chosen.predict_proba(people.x)[:, 1]
    said = np.where(likely > 0.8, "yes", "no")
    np.testing.assert_array_equal(chosen.predict(people.x), said)
    assert chosen.score(people.x, people.rich) == (said == people.rich).mean()
    assert chosen.choice_["accuracy"] < fair.choose(maximize="accuracy").choice_["accuracy"]
    read = pickle.loads(pickle.dumps(chosen))
    np.testing.assert_array_equal(read.predict(people.x), said)
    with pytest.raises(ConfigurationError, match="`threshold` needs the validation rows"):
        read.choose(knee=True, threshold=0.3)


def test_a_threshold_is_looked_for_where_one_half_keeps_no_bound(people: People) -> None:
    rows = people.x["skill"].notna()
    x, sex = people.x.loc[rows, ["skill"]], people.sex[rows]
    rare = np.random.default_rng(0).random(len(x)) < 0.05 + 0.08 * (x["skill"] > 1.0)
    fitted = ParetoClassifier(random_state=0, epochs=5, preference=[1, 0])
    fitted.fit(x, rare, sensitive=sex)
    assert not fitted.predict(x).any()
    with pytest.warns(FrontWarning, match=r"accuracy of 90\.\d%.*constant.*has 91\.\d%"):
        chosen = fitted.choose(maximize="accuracy")
    assert 0 < chosen.threshold_ < 0.5
    assert 0 < chosen.predict(x).mean() < 0.8
    chosen.fit(x, rare, sensitive=sex)
    assert chosen.threshold_ == 0.5


def test_no_threshold_between_more_classes_or_numbers(sided: ParetoRegressor) -> None:
    assert sided.choose(knee=True).threshold_ == 0.5
    with pytest.raises(ConfigurationError, match="does not decide between two classes"):
        sided.choose(knee=True, threshold=0.3)


def test_without_a_choice_the_gap_has_no_weight(people: People) -> None:
    trees = HistGradientBoostingClassifier(random_state=0).fit(people.x[["age"]], people.rich)
    fitted = ParetoClassifier(base=trees, group="input", random_state=0).fit(
        people.x[["age"]], people.rich, sensitive=people.sex
    )
    rows, given = people.x[["age"]], {"sensitive": people.sex}
    with pytest.warns(FrontWarning, match="no preference was chosen, so `tpr_gap` has no weight"):
        found = fitted.predict(rows, **given)
    # the answers are those of the classifier that is adjusted
    np.testing.assert_array_equal(found, trees.predict(rows))
    with warnings.catch_warnings(action="error"):
        fitted.predict(rows, preference=[0.5, 0.5], **given)
        fitted.set_params(preference=[0.5, 0.5]).predict(rows, **given)


def test_a_group_that_is_too_small_to_judge_is_named(people: People) -> None:
    rare = np.where(np.arange(1200) < 4, "rare", people.sex)
    rich = np.where(np.arange(1200) < 3, "yes", people.rich)  # one of them validates
    fitted = ParetoClassifier(random_state=0, epochs=5).fit(people.x, rich, sensitive=rare)
    told = "With 1 positive in `rare`, no bound below about 0.[3-9]"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            fitted.choose(max={"tpr_gap": 0.05})
        except InfeasibleError as error:
            warnings.warn(str(error), FrontWarning, stacklevel=1)
    assert any(re.search(told, str(warning.message)) for warning in warned)


@pytest.mark.filterwarnings("ignore:`tpr_gap` is hardly known")
def test_a_confidence_needs_rows_that_were_held_out() -> None:
    draw = np.random.default_rng(0)
    x, y, sex = draw.normal(size=(60, 2)), draw.integers(0, 2, 60), draw.integers(0, 2, 60)
    with warnings.catch_warnings(action="ignore"):
        few = ParetoClassifier(epochs=2, random_state=0, progress=False).fit(x, y, sensitive=sex)
    with pytest.raises(InfeasibleError, match="fewer than 100 rows"):
        few.choose(max={"tpr_gap": 0.9}, confidence=0.9)
    with pytest.warns(FrontWarning, match="rows that the network was trained on"):
        few.choose(max={"tpr_gap": 0.9})


def test_mistakes_in_a_request_are_one_sentence(fair: ParetoClassifier, people: People) -> None:
    with pytest.raises(ConfigurationError, match="did you mean `maximize`"):
        fair.choose(maximum="accuracy")  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="pass `sensitive`"):
        ParetoClassifier(group="input", progress=False).fit(people.x, people.rich)
    with pytest.raises(NotFittedError):
        ParetoClassifier().encode(people.x)
