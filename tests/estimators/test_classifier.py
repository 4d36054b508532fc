"""`ParetoClassifier` against scikit-learn's metrics and models, and fairlearn's gaps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from fairlearn.metrics import demographic_parity_difference, equal_opportunity_difference
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, recall_score
from sklearn.model_selection import train_test_split
from tests.estimators.conftest import People
from torch import Tensor

from paretocosmos.errors import FrontWarning
from paretocosmos.estimators import ParetoClassifier
from paretocosmos.objectives import BinaryCrossEntropy, ClassLoss

ENDS = ([0.95, 0.05], [0.5, 0.5], [0.05, 0.95])


class TestGroups:
    def test_the_front_is_what_sklearn_and_fairlearn_find_in_its_predictions(self) -> None:
        """Fewer than 100 rows validate what they have trained, so that the front can be had."""
        draw = np.random.default_rng(1)
        x, sex = draw.normal(size=(90, 3)), draw.integers(0, 3, 90)
        y = (x[:, 0] + 0.5 * sex + draw.normal(size=90) > 0.5).astype(int)
        weight = draw.integers(1, 4, 90)
        fitted = ParetoClassifier(random_state=0, rays=5, epochs=10)
        fitted.fit(x, y, sensitive=sex, sample_weight=weight)
        front = fitted.front_
        assert front.names == ("binary_cross_entropy", "tpr_gap")
        assert fitted.groups_ == ("0", "1", "2")
        for at, ray in enumerate(front.rays):
            said = fitted.predict(x, preference=ray)
            loss = log_loss(y, fitted.predict_proba(x, preference=ray)[:, 1], sample_weight=weight)
            gap = equal_opportunity_difference(
                y, said, sensitive_features=sex, sample_weight=weight
            )
            right = accuracy_score(y, said, sample_weight=weight)
            share = np.average(said, weights=weight)
            np.testing.assert_allclose(front.values[at], [loss, gap], atol=1e-6)
            np.testing.assert_allclose(front.metrics["accuracy"][at], right, atol=1e-6)
            np.testing.assert_allclose(front.metrics["positive_rate"][at], share, atol=1e-6)
            assert fitted.score(x, y, weight, preference=ray) == pytest.approx(right)

    def test_a_ray_trades_accuracy_for_the_gap(
        self, fair: ParetoClassifier, people: People
    ) -> None:
        yes = people.rich == "yes"
        scores = [fair.score(people.x, people.rich, preference=ray) for ray in ENDS]
        gaps = [
            equal_opportunity_difference(
                yes, fair.predict(people.x, preference=ray) == "yes", sensitive_features=people.sex
            )
            for ray in ENDS
        ]
        assert scores[0] > scores[2] + 0.01
        assert gaps[0] > gaps[1] > gaps[2]
        assert gaps[2] < gaps[0] / 2

    @pytest.mark.parametrize("fairness", ["equalized_odds", "deo"])
    def test_other_gaps_have_their_own_name(self, people: People, fairness: str) -> None:
        fitted = ParetoClassifier(random_state=0, fairness=fairness, epochs=1)
        fitted.fit(people.x, people.rich, sensitive=people.sex)
        assert fitted.front_.names == ("binary_cross_entropy", fairness)
        assert "tpr_gap" in fitted.front_.metrics

    def test_another_gap_is_traded_too(self, people: People) -> None:
        fitted = ParetoClassifier(random_state=0, fairness="demographic_parity", epochs=25)
        fitted.fit(people.x, people.rich, sensitive=people.sex)
        shares = [
            demographic_parity_difference(
                people.rich == "yes",
                fitted.predict(people.x, preference=ray) == "yes",
                sensitive_features=people.sex,
            )
            for ray in ENDS
        ]
        assert shares[2] < shares[0] - 0.1

    @pytest.mark.system
    def test_several_classes(self, people: People) -> None:
        fitted = ParetoClassifier(random_state=0).fit(people.x, people.kind, sensitive=people.sex)
        assert fitted.front_.names == ("cross_entropy", "tpr_gap")
        # though a constant classifier has no gap
        assert fitted.front_.metrics["largest_share"].max() < 0.9

        def gap(ray: list[float]) -> float:
            said = fitted.predict(people.x, preference=ray)
            rates = [
                equal_opportunity_difference(
                    people.kind == c, said == c, sensitive_features=people.sex
                )
                for c in (0, 1, 2)
            ]
            return float(max(rates))

        assert gap(ENDS[2]) < gap(ENDS[0]) / 2


class TestClasses:
    @pytest.mark.system
    def test_it_is_as_good_as_logistic_regression_on_what_that_can_do(self) -> None:
        ahead = []
        for draw in (3, 4, 5):  # one draw of 240 rows to judge by says little
            x, y = make_classification(600, 8, n_informative=5, flip_y=0.1, random_state=draw)
            x, rest, y, truth = train_test_split(x, y, random_state=0, test_size=0.4)
            oracle = LogisticRegression(class_weight="balanced").fit(x, y).score(rest, truth)
            ahead.append(ParetoClassifier(random_state=0).fit(x, y).score(rest, truth) - oracle)
        assert np.mean(ahead) > -0.01

    @pytest.mark.system
    def test_the_weight_of_a_class_shifts_its_recall(self) -> None:
        x, y = make_classification(1500, 6, weights=[0.85], class_sep=0.6, random_state=0)
        fitted = ParetoClassifier(random_state=0).fit(x, y)
        assert fitted.front_.names == ("loss_0", "loss_1")
        recalls = [
            recall_score(y, fitted.predict(x, preference=[1 - t, t]))
            for t in (0.05, 0.25, 0.5, 0.75, 0.95)
        ]
        assert recalls == sorted(recalls)
        assert recalls[0] < 0.5
        assert recalls[-1] > 0.95
        # equal weights balance the classes, as class_weight="balanced" does
        oracle = LogisticRegression(class_weight="balanced").fit(x, y)
        assert recalls[2] == pytest.approx(recall_score(y, oracle.predict(x)), abs=0.15)

    @pytest.mark.system
    def test_three_of_them(self) -> None:
        x, y = load_iris(return_X_y=True)
        names = np.array(["one", "two", "three"])[y]
        fitted = ParetoClassifier(random_state=0).fit(x, names)
        assert fitted.classes_.tolist() == ["one", "three", "two"]
        assert fitted.front_.names == ("loss_one", "loss_three", "loss_two")
        assert fitted.score(x, names) > 0.95
        found = fitted.predict_proba(x)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert (fitted.classes_[found.argmax(axis=1)] == fitted.predict(x)).all()
        often = [
            (fitted.predict(x, preference=ray) == "three").sum()
            for ray in ([0.01, 0.01, 0.98], [0.01, 0.98, 0.01])
        ]
        assert often[0] < often[1]  # asked to find the class of that place, it says it more often

    def test_the_front_has_their_recalls(self) -> None:
        x, y = make_classification(90, 4, random_state=0)
        fitted = ParetoClassifier(random_state=0, rays=3, epochs=10).fit(x, y)
        for at, ray in enumerate(fitted.front_.rays):
            found = recall_score(y, fitted.predict(x, preference=ray), average=None)
            said = [fitted.front_.metrics[f"recall_{c}"][at] for c in (0, 1)]
            np.testing.assert_allclose(said, found, atol=1e-6)


class TestTargets:
    @pytest.mark.system
    def test_several_are_traded(self) -> None:
        """Two hidden units are too few for two targets that have nothing in common."""
        x = np.random.default_rng(0).normal(size=(600, 4))
        both = np.column_stack([np.abs(x[:, k]) + x[:, k + 1] > 0.7 for k in (0, 2)]).astype(int)
        fitted = ParetoClassifier(random_state=0, hidden=(2,), epochs=300).fit(x, both)
        assert fitted.front_.names == ("target_0", "target_1")
        first, last = (
            [log_loss(both[:, k], fitted.predict_proba(x, preference=ray)[k]) for k in (0, 1)]
            for ray in (ENDS[0], ENDS[2])
        )
        assert first[0] < last[0] - 0.005
        assert last[1] < first[1] - 0.005
        shapes = [part.shape for part in fitted.predict_proba(x)]
        assert shapes == [(600, 2), (600, 2)]
        exact = (fitted.predict(x) == both).all(axis=1).mean()
        assert fitted.score(x, both) == pytest.approx(exact)

    def test_their_names_are_those_of_a_frame(self, people: People) -> None:
        frame = people.x[["size"]].assign(kind=people.kind)
        fitted = ParetoClassifier(random_state=0, epochs=2).fit(people.x, frame)
        assert fitted.front_.names == ("size", "kind")
        assert [classes.tolist() for classes in fitted.classes_] == [["l", "s"], [0, 1, 2]]
        assert set(fitted.front_.metrics) == {
            f"{what}_{of}" for what in ("accuracy", "largest_share") for of in ("size", "kind")
        }


class TestOwnObjectives:
    @staticmethod
    def lost(outputs: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        return (torch.sigmoid(-outputs) * targets["label"]).mean()

    @staticmethod
    def alarm(outputs: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        assert outputs.shape == targets["label"].shape
        return (torch.sigmoid(outputs) * (1 - targets["label"])).mean()

    def test_functions(self, people: People) -> None:
        own = {"lost": self.lost, "alarm": self.alarm}
        fitted = ParetoClassifier(objectives=own, random_state=0, epochs=20)
        fitted.fit(people.x, people.rich)
        assert fitted.front_.names == ("lost", "alarm")
        said = [(fitted.predict(people.x, preference=r) == "yes").mean() for r in ENDS]
        assert said[0] > said[1] > said[2]

    def test_objectives_of_the_library(self, people: People) -> None:
        own = [BinaryCrossEntropy(name="all"), ClassLoss(name="rich", of=1)]
        fitted = ParetoClassifier(objectives=own, random_state=0, epochs=5)
        fitted.fit(people.x, people.rich)
        assert fitted.front_.names == ("all", "rich")

    def test_they_may_read_the_groups_beside_several_targets(self, people: People) -> None:
        def first(outputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> Tensor:
            return outputs["target_0"].square().mean()

        def second(outputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> Tensor:
            return ((outputs["target_1"] - targets["sensitive"]) ** 2).mean()

        both = np.column_stack([people.kind > 0, people.kind > 1])
        fitted = ParetoClassifier(objectives={"a": first, "b": second}, epochs=1)
        assert fitted.fit(people.x, both, sensitive=people.sex).front_.names == ("a", "b")


def test_a_ray_for_each_row_is_that_ray(fair: ParetoClassifier, people: People) -> None:
    few = people.x[:7]
    rays = np.array([*ENDS, *ENDS, ENDS[0]])
    found = fair.predict_proba(few, preference=rays)
    for at, ray in enumerate(rays):
        np.testing.assert_allclose(
            found[at : at + 1], fair.predict_proba(few[at : at + 1], preference=ray), rtol=1e-12
        )


def test_the_accurate_end_is_the_default_and_a_preference_takes_its_place(people: People) -> None:
    plain, other = (
        ParetoClassifier(random_state=0, epochs=10, preference=preference).fit(
            people.x, people.rich, sensitive=people.sex
        )
        for preference in (None, ENDS[2])
    )
    accurate = plain.predict_proba(people.x, preference=[1, 0])
    with pytest.warns(FrontWarning, match="`tpr_gap` has no weight"):
        np.testing.assert_array_equal(plain.predict_proba(people.x), accurate)
    assert plain.to_run().record["predicts_at"]["ray"] == [1.0, 0.0]
    np.testing.assert_array_equal(
        other.predict_proba(people.x), plain.predict_proba(people.x, preference=ENDS[2])
    )
    assert not np.array_equal(other.predict_proba(people.x), accurate)


@pytest.mark.parametrize("method", ["linear", "phn_ls", "pareto_mtl", "uniform", "single_task"])
def test_other_methods_serve_too(people: People, method: str) -> None:
    fitted = ParetoClassifier(method=method, epochs=2, random_state=0)
    fitted.fit(people.x, people.rich, sensitive=people.sex)
    assert set(fitted.predict(people.x, preference=[0.3, 0.7])) <= {"yes", "no"}
    rays = np.tile([[0.9, 0.1], [0.1, 0.9]], (600, 1))
    assert fitted.predict_proba(people.x, preference=rays).shape == (1200, 2)


def test_the_seed_decides_everything(people: People) -> None:
    one, two, other = (
        ParetoClassifier(random_state=seed, epochs=2)
        .fit(people.x, people.rich)
        .predict_proba(people.x)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, other)


def test_conditioning_and_preset_are_those_of_fit() -> None:
    draw = np.random.default_rng(0)
    features = draw.normal(size=(300, 2))
    sex, label = draw.choice(["f", "m"], 300), (draw.random(300) > 0.5).astype(int)
    choices: list[dict[str, Any]] = [{}, {"conditioning": "film"}, {"preset": "paper"}]
    names = []
    for chosen in choices:
        fitted = ParetoClassifier(epochs=1, random_state=0, progress=False, **chosen)
        fitted.fit(features, label, sensitive=sex)
        names.append(fitted.to_run().record["conditioning"]["name"])
    assert names == ["fairness_adjustment", "film", "concat"]
