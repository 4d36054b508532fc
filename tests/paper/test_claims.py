"""The paper's claims, judged on numbers made so that one knows the answer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.paper.hand_made import make_result, make_spread, write_recipe

from paretocosmos.paper.claims import judge_claims
from paretocosmos.paper.collect import collect_results
from paretocosmos.paper.recipe import load_recipe
from paretocosmos.paper.report import summarize_claim
from paretocosmos.paper.results import ExperimentResult, Stage

FRONTS, ALONE = "COSMOS is not outperformed", "On pairs of images"


def judge(shows: str, experiments: list[ExperimentResult]) -> dict[str, tuple[bool | None, str]]:
    """Return by the claim whether it holds, and why."""
    claims = judge_claims(shows, experiments)
    return {claim.claim: (claim.holds, summarize_claim(claim)) for claim in claims}


@pytest.mark.parametrize(
    ("method", "each", "holds", "words"),
    [
        ("phn_ls", [2.30, 2.31], True, "Holds on Multi-Fashion."),
        ("phn_ls", [2.505, 2.515], True, "Holds on Multi-Fashion."),
        ("phn_ls", [2.90, 2.91], False, "(PHN-LS +0.400)."),
        # to outperform is more than not to be outperformed
        ("single_task", [2.30, 2.31], True, "Holds on Multi-Fashion."),
        ("single_task", [2.505, 2.515], False, "(Single Task +0.005, within the noise)."),
        ("single_task", [2.90, 2.91], False, "(Single Task +0.400)."),
        # one seed of each does not tell
        ("phn_ls", [2.90], None, "Open on Multi-Fashion (PHN-LS +0.400, one seed)."),
        ("single_task", [2.30], None, "Open on Multi-Fashion (Single Task −0.200, one seed)."),
    ],
)
def test_a_method_is_ahead_only_beyond_the_noise(
    method: str, each: list[float], holds: bool | None, words: str
) -> None:
    cosmos = make_result("multi_fashion", "cosmos", [2.50, 2.51] if len(each) > 1 else [2.50])
    ((text, answer),) = judge("table", [cosmos, make_result("multi_fashion", method, each)]).items()
    assert text.startswith(ALONE if method == "single_task" else FRONTS)
    assert answer[0] is holds
    assert words in answer[1]


def test_methods_are_compared_on_the_same_images_with_their_usual_settings() -> None:
    rule: Any = {"problem_settings": {"rule": "text"}}
    experiments = [
        make_result("multi_mnist", "cosmos", [2.90, 2.92]),
        make_result("multi_mnist", "phn_ls", [2.80, 2.82]),
        make_result("multi_mnist", "mgda", [3.90, 3.91]),  # not in the paper's table
        make_result("multi_mnist", "phn_epo"),  # not trained
        make_result("multi_mnist", "cosmos", [2.70, 2.72], **rule),
        make_result("multi_mnist", "phn_ls", [2.79, 2.81], **rule),
        make_result("multi_mnist", "phn_epo", [2.9, 2.9], settings={"alpha": 1.2}, **rule),
        make_result("adult", "cosmos", [3.34, 3.36]),
        # its optima exclude each other there
        make_result("adult", "single_task", [3.90, 3.91]),
    ]
    ((_, answer),) = judge("table", experiments).items()
    assert answer == (
        False,
        "Holds on Multi-MNIST; does not hold on Multi-MNIST, rule text (PHN-LS +0.090).",
    )
    (claim,) = judge_claims("table", experiments[4:7])
    assert claim.harder
    assert summarize_claim(claim) == "Does not hold on Multi-MNIST (PHN-LS +0.090)."
    assert judge_claims("table", experiments[2:5]) == []


def test_the_noise_of_one_seed_is_that_of_the_other_method() -> None:
    cosmos = make_result("adult", "cosmos", [3.30, 3.32, 3.34])
    # two deviations of the difference are 0.046
    for volume, holds in ((3.36, True), (3.37, False)):
        ((_, answer),) = judge("table", [cosmos, make_result("adult", "phn_ls", [volume])]).items()
        assert answer[0] is holds


Number = Callable[[float, float], float]


def make_grid(
    span: Number, volume: Number, behind: Callable[[float], float], noise: float | None = 0.0
) -> list[ExperimentResult]:
    """Return two penalties by two alphas; `behind` is how far the front of a penalty lies back."""
    t = np.linspace(0, 1, 9)[:, None]
    rays = np.concatenate([t, 1 - t], axis=1)
    return [
        make_result(
            "multi_mnist",
            "cosmos",
            [volume(penalty, alpha)] * 2,
            varied={"penalty": penalty, "alpha": alpha},
            metrics={
                "span": make_spread(span(penalty, alpha), noise),
                "hypervolume": make_spread(volume(penalty, alpha), noise),
            },
            front=(rays + behind(penalty)).tolist(),
            rays=rays.tolist(),
        )
        for penalty in (1.0, 3.0)
        for alpha in (0.1, 1.2)
    ]


def judge_grid(*given: Any) -> list[tuple[bool | None, str]]:
    return list(judge("ablation", make_grid(*given)).values())


def test_the_penalty_widens_an_optimal_front_and_alpha_changes_its_quality() -> None:
    penalty, alpha = judge_claims(
        "ablation", make_grid(lambda p, a: p, lambda p, a: 2 + a, lambda p: 0.01 * p)
    )
    assert (penalty.holds, alpha.holds) == (True, True)
    assert penalty.rows[0].sentence == (
        "width 1.000 → 3.000 (± 0.000 between the ends) and hypervolume 2.650 → 2.650 with λ 1, 3; "
        "larger λ dominate 0% of the front of λ 1"
    )
    assert alpha.rows[0].sentence == (
        "over alpha the width varies by 0.000 (± 0.000; over λ by 2.000), the hypervolume by 1.100 "
        "(± 0.000)"
    )


def test_differences_of_an_ablation_must_be_beyond_the_noise() -> None:
    # the difference of means of two experiments of two seeds each deviates by noise / √2
    for noise, holds in ((1.0, True), (1.1, None)):
        answers = judge_grid(
            lambda p, a: 1.5 * (p > 1), lambda p, a: 1.5 * (a > 1), lambda p: p, noise
        )
        assert [answer for answer, _ in answers] == [holds, holds]
    # one seed does not tell
    answers = judge_grid(lambda p, a: p, lambda p, a: a, lambda p: p, None)
    assert [answer for answer, _ in answers] == [None, None]


@pytest.mark.parametrize(
    ("which", "span", "behind", "answer"),
    [
        (0, lambda p, a: -p, 0.0, "(width -1.000 → -3.000, 0% dominated)"),
        (0, lambda p, a: p, -1.0, "(width 1.000 → 3.000, 100% dominated)"),
        (1, lambda p, a: 9 * a, 0.0, "(width varies by 9.900, over λ by 0.000)"),
    ],
    ids=["narrower", "dominated", "alpha"],
)
def test_an_ablation_can_refute_a_claim(
    which: int, span: Number, behind: float, answer: str
) -> None:
    answers = judge_grid(span, lambda p, a: 2.0, lambda p: behind * p)
    assert answers[which] == (False, f"Does not hold on Multi-MNIST {answer}.")


def test_a_grid_is_full_and_of_one_draw_of_images() -> None:
    grid = make_grid(lambda p, a: p, lambda p, a: a, lambda p: p)
    assert judge_claims("ablation", grid[:3]) == []
    text = [replace(e, problem_settings={"rule": "text"}) for e in grid]
    penalty, _ = judge_claims("ablation", [*grid, *text])
    assert [row.benchmark[1] for row in penalty.rows] == ["", "rule text"]


def make_course(widths: dict[int, float], std: float | None, **more: Any) -> ExperimentResult:
    """Return an experiment of four seeds with validation fronts of these widths."""
    stages = [
        Stage(epoch, make_spread(2.0 + epoch / 100), make_spread(w, std, 4), [[0.2, 0.2]])
        for epoch, w in widths.items()
    ]
    fields = {"problem": "multi_mnist", "method": "cosmos", **more}
    return make_result(each=[2.9], course=stages, **fields)


@pytest.mark.parametrize(
    ("early", "std", "holds"),
    # the threshold is 0.2; two deviations of the difference are 1.118 of a seed's
    [
        (0.3, 0.02, True),
        (0.1, 0.02, False),
        (0.1, 0.01, False),
        (0.3, 0.08, True),
        (0.3, 0.1, None),
        (0.3, None, None),
    ],
)
def test_a_front_must_be_half_as_wide_as_the_last_after_ten_epochs(
    early: float, std: float | None, holds: bool | None
) -> None:
    # in between it may be narrower
    (claim,) = judge_claims("convergence", [make_course({10: early, 50: 0.1, 100: 0.4}, std)])
    assert claim.holds is holds
    assert claim.rows[0].sentence.startswith(f"width {early:.3f} ± ")


def test_only_cosmos_with_its_usual_settings_has_to_converge() -> None:
    for experiment in (
        make_course({20: 0.2, 40: 0.2}, 0.02),
        make_course({10: 0.4, 100: 0.4}, 0.02, method="phn_ls"),
        make_course({10: 0.4, 100: 0.4}, 0.02, settings={"penalty": 1.0}),
    ):
        assert judge_claims("convergence", [experiment]) == []


def test_the_claims_of_a_recipe_are_collected(tmp_path: Path) -> None:
    table, ablation = load_recipe("table_1_small"), load_recipe("figure_ablation")
    for recipe in (table, table.rehearsal(1), ablation):
        write_recipe(recipe, tmp_path, seeds=[1, 2])
    assert [claim.holds for claim in collect_results(table, tmp_path).claims] == [True, True]
    assert collect_results(table.rehearsal(1), tmp_path).claims == []
    claims = collect_results(ablation, tmp_path).claims
    assert [len(claim.rows) for claim in claims] == [6, 6]
