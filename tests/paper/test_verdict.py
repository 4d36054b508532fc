"""The verdict, on numbers made so that one knows what must be said of them."""

import html
import re
from pathlib import Path
from typing import Any

from tests.paper.hand_made import result_of, write_recipe
from tests.paper.reports import Table, parse_markdown

from paretocosmos.paper import ExperimentResult, RecipeResult, collect_results, load_recipe
from paretocosmos.paper.report import render_page, render_report

TEXT = {"rule": "text"}


def cell(problem: str, method: str, gap: float, **more: Any) -> ExperimentResult:
    """A cell that is off the paper's 3.00 by a gap, of which 0.05 is allowed."""
    own = {"paper": 3.0, "paper_std": 0.01, "difference": gap, "differs": abs(gap) > 0.05}
    told = {
        "volume": {"mean": 3.0 + gap, "std": 0.02, "each": [0.0, 0.0]},
        "against": {"hypervolume": own, "reasons": []},
    }
    return result_of(problem, method, [3.0, 3.0], **(told | more))


def compared(
    problem: str, method: str, difference: float, said: str, **more: Any
) -> dict[str, Any]:
    row = {"problem": problem, "settings": {}, "protocol": "paper", "method": method}
    return row | {"difference": difference, "in_deviations": None, "verdict": said} | more


def content(
    cells: list[ExperimentResult],
    *claims: tuple[str, bool | None, list[Any]],
    name: str = "table_1",
) -> RecipeResult:
    told = [
        {"claim": text, "holds": holds, "sentence": "", "rows": rows}
        for text, holds, rows in claims
    ]
    about = {"format": 1, "recipe": name, "title": "", "section": "", "shows": "ablation"}
    spent = dict.fromkeys(("training", "preparing", "evaluating"), 0.0)
    more = {"rehearsal": None, "cells": cells, "claims": told, "seconds": spent}
    return RecipeResult.model_validate(about | more)


def read_verdict(*results: RecipeResult) -> tuple[str, dict[str, Table]]:
    verdict = parse_markdown(render_report(results))[0]
    return verdict.lines[2], {table.title: table for table in verdict.tables}


def test_every_set_is_told_by_cosmos_and_by_how_many_methods() -> None:
    off = {"paper": 3.0, "paper_std": 0.01, "difference": -0.1, "differs": True}
    reason = {"quantities": ["hypervolume"], "sentence": "Other images."}
    known = {"hypervolume": off, "reasons": [reason]}
    cells = [
        cell("adult", "cosmos", 0.01),
        cell("adult", "phn_ls", -0.2),
        cell("adult", "single_task", 0.0),
        cell("multi_mnist", "cosmos", -0.1, against=known),
        cell("multi_fashion", "phn_ls", 0.01),
    ]
    aside = [
        cell("adult", "phn_epo", 0.0, protocol="clean"),
        cell("multi_mnist", "phn_epo", 0.0, settings=TEXT),
        cell("compas", "cosmos", 0.0, against=None),
    ]
    lead, tables = read_verdict(
        content([*cells, *aside]), content(cells[:1], name="figure_vs_sota")
    )
    assert lead == (
        "3 of 5 published hypervolumes are the same within the noise, 1 of 2 for COSMOS."
    )
    (table,) = tables.values()
    assert table.rows == [
        ("Adult", "3.010 ± 0.020", "3.00 ± 0.01", "yes", "2 of 3, not PHN-LS"),
        ("Multi-MNIST", "2.900 ± 0.020", "3.00 ± 0.01", "no, −0.100 (1)", "0 of 1"),
        ("Multi-Fashion", "–", "–", "–", "1 of 1"),
    ]
    assert table.notes == {"1": "Other images."}


def test_a_difference_without_a_reason_is_told_as_such() -> None:
    _, tables = read_verdict(content([cell("adult", "cosmos", 0.3)]))
    (note,) = tables["The paper's hypervolumes"].notes.values()
    assert "no known reason" in note


def test_claims_hold_on_all_sets_on_some_on_none_or_are_open() -> None:
    two = ("adult", "compas")
    behind = [compared(p, "phn_ls", -0.1, "behind") for p in two]
    ahead = compared("compas", "phn_epo", 0.2, "ahead", protocol="clean")
    alone = [
        compared("multi_mnist", "single_task", 0.3, "ahead"),
        compared("multi_fashion", "single_task", -0.01, "behind within the noise"),
    ]
    by_set = {"protocol": "paper", "widths": [1.0, 2.0], "volumes": [1.0, 2.0], "deviation": None}
    set_by_set = [
        by_set | {"problem": "adult", "holds": None, "short": "width 1 → 2"},
        by_set | {"problem": "compas", "holds": True, "short": "never told"},
    ]
    lead, tables = read_verdict(
        content(
            [],
            ("All.", True, behind),
            ("Some.", False, [*behind, ahead]),
            ("None.", False, alone),
            ("Open.", None, set_by_set),
            ("Nothing trained.", None, []),
        )
    )
    assert lead == (
        "The paper's main claim holds: All. Where its 4 claims hold: 1 on every set, "
        "1 on some sets only, 1 on none, 1 still open."
    )
    assert tables["The paper's claims"].rows == [
        ("All.", "yes", "Holds on all 2 sets.", "`table_1`"),
        (
            "Some.",
            "on 1 of 2 sets",
            "Holds on Adult; does not hold on COMPAS (PHN-EPO +0.200, clean).",
            "`table_1`",
        ),
        (
            "None.",
            "no",
            "Does not hold on Multi-MNIST (Single Task +0.300), Multi-Fashion (Single Task −0.010, "
            "within the noise).",
            "`table_1`",
        ),
        ("Open.", "open", "Holds on COMPAS; open on Adult (width 1 → 2).", "`table_1`"),
    ]


def test_one_seed_leaves_it_open_and_no_baseline_ahead_is_so() -> None:
    rows = [
        compared("adult", "phn_ls", 0.3, "one seed"),
        compared("compas", "phn_ls", 0.01, "ahead within the noise"),
    ]
    _, tables = read_verdict(content([], ("A.", None, rows)))
    (row,) = tables["The paper's claims"].rows
    assert row[1:3] == ("open", "Holds on COMPAS; open on Adult (PHN-LS +0.300).")


def test_sets_of_which_nothing_is_trained_are_named() -> None:
    rows = [compared("adult", "phn_ls", 0.3, "ahead")]
    cells = [
        cell("adult", "cosmos", 0.0),
        cell("adult", "phn_ls", 0.0, seeds=[]),  # another method was
        *(cell("multi_mnist", name, 0.0, seeds=[], against=None) for name in ("cosmos", "phn_ls")),
    ]
    _, tables = read_verdict(content(cells, ("A.", False, rows)))
    (row,) = tables["The paper's claims"].rows
    assert row[2] == "Does not hold on Adult (PHN-LS +0.300). Not trained yet: Multi-MNIST."


def test_the_harder_draw_is_told_last_and_not_counted() -> None:
    drawn = compared("multi_mnist", "phn_ls", 0.1, "ahead", settings=TEXT)
    own = compared("multi_mnist", "phn_ls", -0.1, "behind")
    lead, tables = read_verdict(
        content([], ("Best.", False, [drawn]), name="table_1_text"),
        content([], ("Best.", True, [own])),
    )
    assert lead == "The paper's main claim holds: Best."
    assert tables["The paper's claims"].rows == [
        ("Best.", "yes", "Holds on Multi-MNIST.", "`table_1`"),
        (
            "Best. Here on a harder draw than the paper's.",
            "no",
            "Does not hold on Multi-MNIST (PHN-LS +0.100).",
            "`table_1_text`",
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
        *(titles[0], "", titles[1]),
    ]
    page = render_page(markdown, {})
    headings = re.findall(r'<h2 id="(.+?)">(.+?)</h2>', page)
    assert [title for _, title in headings] == titles
    for anchor, title in headings:
        assert f'<a href="#{anchor}">{html.escape(title)}</a>' in page
    assert "<th>the paper says</th>" in page
