"""The verdict, on numbers made so that one knows what must be said of them."""

import html
import re
from pathlib import Path
from typing import Any

from tests.paper.hand_made import make_result, write_recipe
from tests.paper.reports import Table, parse_markdown

from paretocosmos.paper.collect import collect_results
from paretocosmos.paper.recipe import load_recipe
from paretocosmos.paper.report import render_page, render_report
from paretocosmos.paper.results import (
    ClaimResult,
    ClaimRow,
    ExperimentResult,
    PaperComparison,
    RecipeResult,
)


def make_compared(problem: str, method: str, gap: float, **more: Any) -> ExperimentResult:
    """Return an experiment that is off the paper's 3.00 by a gap, of which 0.05 is allowed."""
    volume = 3.0 + gap
    reasons = ["Other images."] if gap == -0.1 else []
    comparison = PaperComparison(
        {"hypervolume": 3.0, "std": 0.01},
        {"hypervolume": volume},
        differs=abs(gap) > 0.05,
        reasons=reasons,
    )
    return make_result(
        problem, method, [volume - 0.01, volume + 0.01], comparison=comparison, **more
    )


def make_row(
    problem: str, holds: bool | None, short: str = "", protocol: str = "paper"
) -> ClaimRow:
    return ClaimRow((problem, "", protocol), holds, short)


def make_content(
    experiments: list[ExperimentResult], *claims: ClaimResult, name: str = "table_1"
) -> RecipeResult:
    return RecipeResult(name, "", "", "ablation", None, experiments, list(claims))


def read_verdict(*results: RecipeResult) -> tuple[str, dict[str, Table]]:
    verdict = parse_markdown(render_report(results))[0]
    return verdict.lines[2], {table.title: table for table in verdict.tables}


def test_every_set_is_told_by_cosmos_and_by_how_many_methods() -> None:
    experiments = [
        make_compared("adult", "cosmos", 0.01),
        make_compared("adult", "phn_ls", -0.2),
        make_compared("adult", "single_task", 0.0),
        make_compared("multi_mnist", "cosmos", -0.1),
        make_compared("multi_fashion", "phn_ls", 0.01),
        make_compared("compas", "cosmos", 0.3),
    ]
    aside = [
        make_compared("adult", "phn_epo", 0.0, protocol="clean"),
        make_result("compas", "phn_ls", [3.0, 3.0]),
    ]
    lead, tables = read_verdict(
        make_content([*experiments, *aside]), make_content(experiments[:1], name="figure_vs_sota")
    )
    assert lead == (
        "3 of 6 published hypervolumes are the same within the noise, 1 of 3 for COSMOS."
    )
    (table,) = tables.values()
    assert table.rows == [
        ("Adult", "3.010 ± 0.014", "3.00 ± 0.01", "yes", "2 of 3, not PHN-LS"),
        ("Multi-MNIST", "2.900 ± 0.014", "3.00 ± 0.01", "no, −0.100 (1)", "0 of 1"),
        ("Multi-Fashion", "–", "–", "–", "1 of 1"),
        ("COMPAS", "3.300 ± 0.014", "3.00 ± 0.01", "no, +0.300 (2)", "0 of 1"),
    ]
    assert table.notes["1"] == "Other images."
    assert "no known reason" in table.notes["2"]


def test_claims_hold_on_all_sets_on_some_on_none_or_are_open() -> None:
    behind = [make_row(problem, True, "never told") for problem in ("adult", "compas")]
    ahead = make_row("compas", False, "PHN-EPO +0.200", "clean")
    alone = [make_row("adult", False, "Single Task +0.300"), make_row("compas", False, "why")]
    lead, tables = read_verdict(
        make_content(
            [],
            ClaimResult("All.", behind),
            ClaimResult("Some.", [*behind, ahead]),
            ClaimResult("None.", alone),
            ClaimResult("Open.", [make_row("adult", None, "width 1 → 2"), behind[1]]),
        ),
        make_content([], ClaimResult("All.", [alone[0]], harder=True), name="table_1_text"),
    )
    # the harder draw is told last and not counted
    assert lead == (
        "The paper's main claim holds: All. Where its 4 claims hold: 1 on every set, "
        "1 on some sets only, 1 on none, 1 still open."
    )
    assert [row[:3] for row in tables["The paper's claims"].rows] == [
        ("All.", "yes", "Holds on all 2 sets."),
        (
            "Some.",
            "on 1 of 2 sets",
            "Holds on Adult; does not hold on COMPAS (PHN-EPO +0.200, clean).",
        ),
        ("None.", "no", "Does not hold on Adult (Single Task +0.300), COMPAS (why)."),
        ("Open.", "open", "Holds on COMPAS; open on Adult (width 1 → 2)."),
        (
            "All. Here on a harder draw than the paper's.",
            "no",
            "Does not hold on Adult (Single Task +0.300).",
        ),
    ]


def test_a_rehearsal_and_recipes_without_claims_have_no_verdict(tmp_path: Path) -> None:
    for recipe in (load_recipe("intuition"), load_recipe("table_1_small").rehearsal(1)):
        write_recipe(recipe, tmp_path, seeds=[1, 2])
        markdown = render_report([collect_results(recipe, tmp_path)])
        assert "The verdict" not in markdown


def test_a_report_begins_with_it(tmp_path: Path) -> None:
    recipe = load_recipe("table_1_text")
    write_recipe(recipe, tmp_path, seeds=[1, 2])
    markdown = render_report([collect_results(recipe, tmp_path)], opening="What this is.")
    titles = ["The verdict", "Table 1's pairs of images on a harder draw"]
    assert re.findall(r"^(?:## (.*)|What this is\.)$", markdown, re.MULTILINE) == [
        *(titles[0], "", titles[1])
    ]
    page = render_page(markdown, {})
    headings = re.findall(r'<h2 id="(.+?)">(.+?)</h2>', page)
    assert [title for _, title in headings] == titles
    for anchor, title in headings:
        assert f'<a href="#{anchor}">{html.escape(title)}</a>' in page
    assert "<th>the paper says</th>" in page
