"""Predictions that depend on an estimate of the group, on the group itself, or on neither."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference
from sklearn.base import clone

from paretocosmos import load_run
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.estimators import ParetoClassifier, ParetoRegressor
from paretocosmos.export import export

ROWS = 3000
RAY = [0.5, 0.5]


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
    """Features that say little of the group, labels that depend on it, and the group's columns."""
    draw = np.random.default_rng(0)
    sex, old = draw.choice(["f", "m"], ROWS), draw.random(ROWS) < 0.4
    skill = draw.normal(size=ROWS)
    rich = draw.random(ROWS) < 1 / (1 + np.exp(0.5 - 2 * skill - 1.5 * (sex == "m")))
    features = pd.DataFrame({"skill": skill, "hobby": draw.normal(size=ROWS)})
    return features, pd.Series(rich.astype(int)), pd.DataFrame({"sex": sex, "old": old})


def _fit(people: Any, use: Any, sensitive: Any = "sex", **settings: Any) -> ParetoClassifier:
    features, rich, groups = people
    settings = {"fairness": "demographic_parity", "epochs": 20, **settings}
    model = ParetoClassifier(group=use, random_state=0, progress=False, **settings)
    return model.fit(features, rich, sensitive=groups[sensitive])


@pytest.fixture(scope="module")
def informed(people: Any) -> ParetoClassifier:
    return _fit(people, "input")


def test_a_known_group_closes_the_gap_and_costs_less(
    people: Any, informed: ParetoClassifier
) -> None:
    features, rich, groups = people
    accuracy, gap = {}, {}
    for use, model in (("input", informed), ("estimate", _fit(people, "estimate"))):
        known = {"sensitive": groups["sex"]} if use == "input" else {}
        predicted = model.predict(features, preference=[0, 1], **known)
        accuracy[use] = float((predicted == rich).mean())
        gap[use] = demographic_parity_difference(rich, predicted, sensitive_features=groups["sex"])
    # thresholds of their own for men and women; nothing else tells of the group here
    assert max(gap.values()) < 0.02
    assert accuracy["input"] > accuracy["estimate"] + 0.02


def test_only_the_group_given_decides(people: Any, informed: ParetoClassifier) -> None:
    features = people[0][:200]
    women, men = (
        informed.predict_proba(features, preference=[0, 1], sensitive=[sex] * 200)[:, 1]
        for sex in "fm"
    )
    assert (women > men).all()  # the same people
    inside = features.assign(sex=["f"] * 200)
    model = _fit((people[0].assign(sex=people[2]["sex"]), *people[1:]), "input")
    assert model.predict(inside, preference=RAY).shape == (200,)  # taken from `X`, where it is


def test_runs_files_and_exports_read_the_group_as_a_column(
    people: Any, informed: ParetoClassifier, tmp_path: Path
) -> None:
    features, _, groups = people
    few, sex = features[:50], groups["sex"][:50]
    expected = informed.predict_proba(few, preference=RAY, sensitive=sex)[:, 1]
    run = informed.save(tmp_path / "run")
    read = load_run(run.folder)
    assert read.predict(few.assign(sex=sex), ray=RAY) == pytest.approx(expected, abs=1e-6)
    assert read.record["about"]["group_use"] == "input"
    assert "a rule of its own" in read.model.disclosure
    with pytest.raises(DataError, match="`sex`"):
        read.predict(few, ray=RAY)
    session = onnxruntime.InferenceSession(export(informed, out=tmp_path / "model.onnx"))
    x = informed.encode(few, sensitive=sex)
    (answers,) = session.run(
        [session.get_outputs()[0].name], {"x": x, "preference": np.array([RAY], dtype=np.float32)}
    )
    assert answers.ravel() == pytest.approx(expected, abs=1e-5)


def test_groups_of_several_columns_are_known_by_all_of_them(people: Any) -> None:
    features, _, groups = people
    model = _fit(people, "input", ["sex", "old"], epochs=2)
    chances = model.predict_proba(features[:9], preference=RAY, sensitive=groups[:9])[:, 1]
    rows = features[:9].join(groups[:9])
    assert model.to_run().predict(rows, ray=RAY) == pytest.approx(chances, abs=1e-6)
    with pytest.raises(DataError, match="`sex & old`"):
        model.predict(features)


def test_neither_trains_a_conditioned_network(people: Any) -> None:
    model = _fit(people, "none", epochs=2)
    assert not hasattr(model.model_, "adjustment")
    assert model.predict(people[0][:5], preference=RAY).shape == (5,)


def test_a_regressor_reads_the_group_too(people: Any) -> None:
    features, _, groups = people
    sex = groups["sex"]
    wage = features["skill"] + 2.0 * (sex == "m")
    model = ParetoRegressor(group="input", epochs=5, random_state=0, progress=False)
    model = model.fit(features, wage, sensitive=sex)
    raised = model.predict(features, sensitive=["m"] * ROWS, preference=[1, 0])
    assert (raised - model.predict(features, sensitive=["f"] * ROWS, preference=[1, 0])).mean() > 1
    assert clone(model).group == "input"


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({}, DataError, "found no `sensitive`"),
        ({"sensitive": ["f"] * 4}, DataError, "inconsistent numbers of samples"),
        ({"sensitive": ["f", "m", "f", "x", "f"]}, DataError, "row 4 with `x`"),
    ],
)
def test_groups_that_are_not_known_are_refused(
    people: Any, informed: ParetoClassifier, given: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        informed.predict(people[0][:5], **given)


def test_a_group_that_nothing_reads_is_refused(people: Any) -> None:
    model = _fit(people, "none", epochs=1)
    with pytest.raises(ConfigurationError, match="do not read the group"):
        model.predict(people[0], sensitive=people[2]["sex"])
    with pytest.raises(ConfigurationError, match="`group`"):
        _fit(people, "guess")
