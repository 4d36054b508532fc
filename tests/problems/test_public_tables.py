"""Adult, COMPAS and Default: the published shapes, the two protocols, the leak."""

import warnings
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from paretocosmos.errors import BenchmarkWarning
from paretocosmos.problems import SPLITS, Protocol
from paretocosmos.problems.tables import TabularProblem, adult, compas, default_credit

pytestmark = pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")

Load = Callable[..., TabularProblem]
EVERY: tuple[Load, ...] = (adult, compas, default_credit)


def whole(problem: TabularProblem, what: Literal["inputs", "label", "sensitive"]) -> Tensor:
    batches = [problem.split(name) for name in SPLITS]
    parts = [batch.inputs if what == "inputs" else batch.targets[what] for batch in batches]
    return torch.cat([part for part in parts if isinstance(part, Tensor)])


@pytest.mark.parametrize(
    ("load", "rows", "features", "positives", "women"),
    [
        (adult, 48_842, 88, 11_687, 16_192),
        (compas, 6_172, 20, 2_809, 1_175),
        (default_credit, 30_000, 90, 6_636, 18_112),
    ],
)
def test_paper_protocol(load: Load, rows: int, features: int, positives: int, women: int) -> None:
    problem = load(protocol="paper")
    inputs = whole(problem, "inputs").double()
    assert inputs.shape == (rows, features)
    assert problem.groups == ("Male", "Female")
    assert int(whole(problem, "label").sum()) == positives
    assert int(whole(problem, "sensitive").sum()) == women
    # scaled on all rows, and no column is constant
    np.testing.assert_allclose(inputs.mean(dim=0), 0, atol=1e-5)
    np.testing.assert_allclose(inputs.std(dim=0, correction=0), 1, atol=1e-5)
    assert problem.names == ("binary_cross_entropy", "deo")
    assert problem.reference == (2.0, 2.0)


@pytest.mark.parametrize("load", EVERY)
def test_clean_protocol(load: Load) -> None:
    problem, paper = load(), load(protocol="paper")
    train = problem.split("train").inputs
    np.testing.assert_allclose(train.double().mean(dim=0), 0, atol=1e-5)
    features = set(problem.table.features)
    assert features <= set(paper.table.features)
    assert not features & {"is_recid", "ID", "sex", "SEX", "income"}
    # the same rows in the same splits
    for name in SPLITS:
        label = problem.split(name).targets["label"]
        assert torch.equal(label, paper.split(name).targets["label"])


def test_adult_s_merged_categories() -> None:
    categories = adult(protocol="paper").table.categorical
    assert len(categories["education"]) == 6
    assert len(categories["marital-status"]) == 2
    assert not any("?" in every or "nan" in every for every in categories.values())


@pytest.mark.parametrize(
    ("protocol", "low", "high"), [("paper", 0.07, 0.11), ("clean", 0.57, 0.65)]
)
def test_the_leak_in_compas(protocol: Protocol, low: float, high: float) -> None:
    problem = compas(protocol=protocol)
    train, test = problem.split("train"), problem.split("test")
    model = LogisticRegression(C=100, max_iter=1000).fit(train.inputs, train.targets["label"])
    logits = torch.from_numpy(model.decision_function(test.inputs))
    assert low < float(problem.objectives[0].score(logits, test.targets)) < high


@pytest.mark.system
@pytest.mark.parametrize("protocol", ["clean", "paper"])
@pytest.mark.parametrize("load", EVERY)
def test_selection_rates_are_compared_unless_told_otherwise(load: Load, protocol: Protocol) -> None:
    usual = {"clean": "demographic_parity", "paper": "deo"}[protocol]
    assert load(protocol=protocol).names == ("binary_cross_entropy", usual)
    assert load(protocol=protocol, fairness="tpr_gap").names[1] == "tpr_gap"


@pytest.mark.parametrize(
    ("load", "protocol", "words"),
    [
        (adult, "clean", "1994.*50,000.*Ding et al. 2021"),
        (compas, "clean", "arrests, not offences.*Barenboim 2019.*people.$"),
        (compas, "paper", "arrests.*`is_recid` is nearly the label"),
        (default_credit, "clean", "Taiwan in 2005.*EDUCATION.*MARRIAGE.*PAY_.*people.$"),
        (default_credit, "paper", "Taiwan.*row number `ID`"),
    ],
)
def test_what_is_wrong_with_it_is_said(load: Load, protocol: Protocol, words: str) -> None:
    with pytest.warns(BenchmarkWarning, match=words) as said:
        problem = load(protocol=protocol)
    assert [str(one.message) for one in said] == [" ".join(problem.caveats)]


@pytest.mark.parametrize("load", EVERY)
def test_nothing_else_is_said(load: Load) -> None:
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", BenchmarkWarning)
        load()
