"""What the paper says, judged on numbers made so that one knows the answer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.paper.hand_made import result_of as cell
from tests.paper.hand_made import write_recipe

from paretocosmos.paper import (
    ClaimResult,
    ExperimentResult,
    Stage,
    collect_results,
    judge_ablation,
    judge_convergence,
    judge_fronts,
    load_recipe,
)


def rows_of(claim: ClaimResult) -> list[Any]:
    """Whatever kind they are of."""
    return list(claim.rows)


def test_nobody_ahead_is_as_the_paper_says() -> None:
    cells = [
        cell("adult", "cosmos", [3.34, 3.36]),
        cell("adult", "phn_ls", [3.33, 3.35]),
        cell("adult", "single_task", [3.9, 3.91]),  # its optima exclude each other there
        cell("multi_mnist", "cosmos", [2.9, 2.92]),
        cell("multi_mnist", "single_task", [2.8, 2.81]),
        cell("multi_mnist", "mgda", [3.9, 3.91]),  # not of the paper's table
    ]
    fronts, alone = judge_fronts(cells)
    assert (fronts.holds, alone.holds) == (True, True)
    assert [(row.problem, row.method) for row in rows_of(fronts)] == [("adult", "phn_ls")]
    assert [(r.problem, r.method) for r in rows_of(alone)] == [("multi_mnist", "single_task")]
    assert fronts.sentence.startswith("1 comparison on 1 set. It holds")
    assert "It holds: Single Task on Multi-MNIST, paper (−0.105, " in alone.sentence
    absent = cell("adult", "phn_epo", [0.0], seeds=[], missing=[1])
    fronts = judge_fronts([*cells, absent])[0]
    assert fronts.sentence.startswith("1 comparison on 1 set, 1 more missing. It holds")


def test_a_baseline_ahead_beyond_the_noise_is_told() -> None:
    cells = [
        cell("adult", "cosmos", [3.30, 3.32, 3.34]),
        cell("adult", "phn_ls", [3.31, 3.33, 3.35]),
        cell("adult", "pareto_mtl", [3.40, 3.42, 3.44]),
    ]
    (claim,) = judge_fronts(cells)
    assert claim.holds is False
    assert [row.verdict for row in rows_of(claim)] == ["ahead within the noise", "ahead"]
    noise = np.sqrt(0.02**2 / 3 + 0.02**2 / 3)
    assert rows_of(claim)[1].in_deviations == pytest.approx(0.1 / noise)
    assert "It does not hold in 1; ahead of COSMOS: ParetoMTL on Adult" in claim.sentence
    assert "ParetoMTL on Adult, paper (+0.100, 6.1 deviations)" in claim.sentence
    assert "within the noise: PHN-LS on Adult" in claim.sentence


@pytest.mark.parametrize(
    ("each", "holds", "words"),
    [
        ([3.0, 3.01], False, "It does not hold: Single Task on Multi-Fashion"),
        ([2.0, 2.01], True, "It holds: Single Task on Multi-Fashion"),
        ([2.5, 2.51], False, "Within the noise: Single Task on Multi-Fashion"),
    ],
    ids=["ahead", "behind", "near"],
)
def test_single_task_must_be_behind_beyond_the_noise(
    each: list[float], holds: bool, words: str
) -> None:
    """To outperform is more than not to be outperformed."""
    own = cell("multi_fashion", "cosmos", [2.5, 2.51])
    (claim,) = judge_fronts([own, cell("multi_fashion", "single_task", each)])
    assert claim.holds is holds
    assert words in claim.sentence


def test_one_seed_does_not_tell() -> None:
    cells = [cell("adult", "cosmos", [3.3]), cell("adult", "phn_ls", [3.4])]
    (claim,) = judge_fronts(cells)
    assert claim.holds is None
    assert claim.sentence.endswith(
        "One seed of each decides nothing: ahead are PHN-LS on Adult, paper (+0.100)."
    )
    (behind,) = judge_fronts([cells[0], cell("adult", "phn_ls", [3.2])])
    assert behind.holds is None
    assert behind.sentence.endswith("One seed of each decides nothing: ahead are none.")
    own = cell("multi_mnist", "cosmos", [2.9])
    (alone,) = judge_fronts([own, cell("multi_mnist", "single_task", [2.8])])
    assert alone.holds is None
    assert "decides nothing: Single Task on Multi-MNIST, paper (−0.100)" in alone.sentence
    assert judge_fronts([cell("adult", "cosmos", [3.3])]) == []
    variant = cell("adult", "phn_ls", [3.9], settings={"alpha": 0.5})
    assert judge_fronts([cell("adult", "cosmos", [3.3]), variant]) == []


def test_methods_are_judged_on_the_same_images() -> None:
    """A rule is no variation of a method but another set."""
    text = {"settings": {"rule": "text"}}
    cells = [
        cell("multi_mnist", "cosmos", [2.90, 2.92]),
        cell("multi_mnist", "phn_ls", [2.80, 2.82]),
        cell("multi_mnist", "cosmos", [2.70, 2.72], **text),
        cell("multi_mnist", "phn_ls", [2.79, 2.81], **text),
        cell("multi_mnist", "phn_epo", [2.9, 2.9], settings={"rule": "text", "alpha": 1.2}),
    ]
    (claim,) = judge_fronts(cells)
    assert [row.difference for row in rows_of(claim)] == pytest.approx([-0.1, 0.09])
    assert [row.settings for row in rows_of(claim)] == [{}, {"rule": "text"}]
    assert claim.sentence.startswith("2 comparisons on 2 sets. It does not hold in 1; ")
    assert "PHN-LS on Multi-MNIST, rule text, paper (+0.090, 6.4 deviations)" in claim.sentence
    (claim,) = judge_fronts(cells[2:])
    assert claim.sentence.startswith(
        "1 comparison on 1 set, on this harder draw, not the paper's. It does not hold in 1"
    )


def test_the_noise_of_one_seed_is_that_of_the_other_s() -> None:
    own = cell("adult", "cosmos", [3.30, 3.32, 3.34])
    for one, verdict in ((3.36, "ahead within the noise"), (3.37, "ahead")):
        (claim,) = judge_fronts([own, cell("adult", "pareto_mtl", [one])])
        (row,) = rows_of(claim)
        assert row.verdict == verdict
        assert row.in_deviations == pytest.approx((one - 3.32) / (0.02 * np.sqrt(1 / 3 + 1)))


def grid(span: Any, volume: Any, worse: Any, noise: float | None = 0.0) -> list[ExperimentResult]:
    """Two penalties by two alphas; `worse` is how far a front lies behind."""
    found = []
    for penalty in (1.0, 3.0):
        for alpha in (0.1, 1.2):
            t = np.linspace(0, 1, 9)[:, None]
            values = (np.concatenate([t, 1 - t], axis=1) + worse(penalty)).tolist()
            means = {"span": span(penalty, alpha), "hypervolume": volume(penalty, alpha)}
            found.append(
                cell(
                    "multi_mnist",
                    "cosmos",
                    [volume(penalty, alpha)] * 2,
                    varied={"penalty": penalty, "alpha": alpha},
                    metrics={
                        key: {"mean": float(mean), "std": noise, "each": [0.0] * 2}
                        for key, mean in means.items()
                    },
                    front=values,
                    rays=values,
                )
            )
    return found


def test_wider_with_the_penalty_and_optimal_without_is_as_the_paper_says() -> None:
    cells = grid(lambda p, a: p, lambda p, a: 2 + a, lambda p: 0.01 * p)
    penalty, alpha = judge_ablation(cells)
    assert (penalty.holds, alpha.holds) == (True, True)
    (row,) = rows_of(penalty)
    assert row.span_by_penalty == [1.0, 3.0]
    assert row.smallest_dominated == 0.0
    assert penalty.sentence == "Holds on Multi-MNIST, paper."
    assert row.short == "width 1.000 → 3.000, 0% dominated"
    assert rows_of(alpha)[0].short == "width varies by 0.000, hypervolume by 1.100"
    assert "width 1.000 → 3.000" in row.sentence
    assert "hypervolume by 1.100" in rows_of(alpha)[0].sentence


def test_what_has_to_differ_must_do_so_beyond_the_noise() -> None:
    """Two alphas of two seeds each: a mean over them deviates by half of a seed's deviation."""
    for noise, so in ((0.9, True), (1.1, False)):
        # the difference of two such means deviates by noise / √2: 1.5 is two of them at 1.06
        cells = grid(lambda p, a: 1.5 * (p > 1), lambda p, a: 1.5 * (a > 1), lambda p: p, noise)
        claims = judge_ablation(cells)
        assert [claim.holds for claim in claims] == [so or None] * 2
        (row,) = rows_of(claims[0])
        assert row.span_deviation == pytest.approx(noise / np.sqrt(2))
        assert row.volume_deviation == pytest.approx(noise / np.sqrt(2))
    cells = grid(lambda p, a: p, lambda p, a: a, lambda p: p, None)
    for claim in judge_ablation(cells):
        assert claim.holds is None
        assert claim.sentence == "Open, within the noise, on Multi-MNIST, paper."
        assert "± ?" in rows_of(claim)[0].sentence


def test_a_grid_is_of_one_draw_of_images() -> None:
    near, far = (grid(lambda p, a, k=k: k * p, lambda p, a: a, lambda p: p) for k in (1, 2))
    drawn = {"settings": {"rule": "text", "penalty": 1.0}}
    other = [one.model_copy(update=drawn) for one in far]
    penalty, _ = judge_ablation(near + other)
    assert [row.span_by_penalty for row in rows_of(penalty)] == [[1.0, 3.0], [2.0, 6.0]]
    assert penalty.sentence == "Holds on Multi-MNIST, paper; Multi-MNIST, rule text, paper."


def test_alpha_must_change_the_quality_too() -> None:
    same = grid(lambda p, a: p, lambda p, a: 2.0, lambda p: p)
    penalty, alpha = judge_ablation(same)
    assert (penalty.holds, alpha.holds) == (True, None)


def test_alpha_must_not_change_the_width_however_little_that_is() -> None:
    for moved, holds in ((0.9, True), (1.1, False)):
        # of the width, two deviations are 1 here
        cells = grid(
            lambda p, a, m=moved: 9 * p + m * (a > 1), lambda p, a: 2 * a, lambda p: p, 0.5**0.5
        )
        (claim,) = (one for one in judge_ablation(cells) if one.claim.startswith("Alpha"))
        assert claim.holds is holds
        assert f"the width varies by {moved:.3f} (± 0.500; over λ by 18.000)" in str(rows_of(claim))


def test_what_is_otherwise_is_told() -> None:
    narrower = grid(lambda p, a: -p, lambda p, a: 2.0, lambda p: 0.0)
    assert judge_ablation(narrower)[0].sentence == (
        "Does not hold on Multi-MNIST, paper. With a larger penalty the front is narrower on "
        "Multi-MNIST, paper."
    )
    dominated = grid(lambda p, a: p, lambda p, a: 2.0, lambda p: -p)
    (row,) = rows_of(judge_ablation(dominated)[0])
    assert row.smallest_dominated == 1.0
    assert row.holds is False
    by_alpha = grid(lambda p, a: 9 * a, lambda p, a: 2.0, lambda p: 0.0)
    assert judge_ablation(by_alpha)[1].holds is False
    assert rows_of(judge_ablation(by_alpha)[1])[0].short == (
        "width varies by 9.900, over λ by 0.000"
    )
    assert judge_ablation(by_alpha[:3])[0].holds is None  # not a whole grid


def course(own: ExperimentResult, widths: dict[int, float], std: float | None) -> ExperimentResult:
    """A cell of four seeds with validation fronts of these widths."""
    each = {"std": std, "each": [0.0] * 4}
    stages = [
        Stage.model_validate(
            {
                "epoch": epoch,
                "span": {"mean": width, **each},
                "hypervolume": {"mean": 2.0 + epoch / 100, **each},
                "values": [[0.2, 0.2]],
            }
        )
        for epoch, width in widths.items()
    ]
    return own.model_copy(update={"course": stages})


def test_a_front_must_be_half_as_wide_as_the_last_after_ten_epochs() -> None:
    mnist, fashion = (cell(p, "cosmos", [2.9]) for p in ("multi_mnist", "multi_fashion"))
    wide = course(mnist, {10: 0.3, 50: 0.1, 100: 0.4}, 0.02)
    narrow = course(fashion, {10: 0.1, 100: 0.4}, 0.02)
    late = course(cell("adult", "cosmos", [3.3]), {20: 0.2, 40: 0.2}, 0.02)
    other = course(cell("multi_fashion", "phn_ls", [2.1]), {10: 0.4, 100: 0.4}, 0.02)
    (claim,) = judge_convergence([wide, narrow, late, other])
    assert claim.holds is False
    assert claim.sentence == (
        "Well spread means at least 50% of the last front's width. Holds on Multi-MNIST, paper. "
        "Does not hold on Multi-Fashion, paper."
    )
    assert [row.sentence for row in rows_of(claim)] == [
        "width 0.300 ± 0.020 after 10 epochs, 0.400 ± 0.020 after 100; hypervolume 2.100 and 3.000",
        "width 0.100 ± 0.020 after 10 epochs, 0.400 ± 0.020 after 100; hypervolume 2.100 and 3.000",
    ]
    assert rows_of(claim)[1].short == "width 0.100, at the end 0.400"
    assert judge_convergence([wide])[0].holds is True
    drawn = wide.model_copy(update={"settings": {"rule": "text"}})
    assert "Holds on Multi-MNIST, rule text, paper." in judge_convergence([drawn])[0].sentence
    varied = wide.model_copy(update={"settings": {"penalty": 1.0}})
    assert judge_convergence([varied]) == []
    assert judge_convergence([late, other]) == []


def test_a_width_must_be_beyond_the_noise_to_be_judged() -> None:
    own = cell("multi_mnist", "cosmos", [2.9])
    # four seeds: half of a seed's deviation, and half of that for half of the last width
    for std, holds in ((0.08, True), (0.1, None), (None, None)):
        (claim,) = judge_convergence([course(own, {10: 0.3, 100: 0.4}, std)])
        assert claim.holds is holds
        expected = None if std is None else std * np.hypot(0.5, 0.25)
        assert rows_of(claim)[0].deviation == pytest.approx(expected)


def test_the_claims_of_a_recipe_are_collected(tmp_path: Path) -> None:
    table, ablation = load_recipe("table_1_small"), load_recipe("figure_ablation")
    for recipe in (table, ablation):
        write_recipe(recipe, tmp_path, seeds=[1, 2])
    assert [claim.holds for claim in collect_results(table, tmp_path).claims] == [True, True]
    write_recipe(table.rehearsal(1), tmp_path, seeds=[1, 2])
    assert collect_results(table.rehearsal(1), tmp_path).claims == []
    claims = collect_results(ablation, tmp_path).claims
    assert len(claims) == 2
    course = load_recipe("figure_convergence")
    write_recipe(course, tmp_path, seeds=[1, 2])
    assert len(collect_results(course, tmp_path).claims) == 1
    assert len(rows_of(claims[0])) == 6
    assert all(row.span_by_penalty[0] < row.span_by_penalty[-1] for row in rows_of(claims[0]))
