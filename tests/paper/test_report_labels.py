"""Cells that differ in little: every one of them is in the tables and pictures, by a name."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from tests.paper.reports import Section, collect_experiments, draw_only_picture, read_report

from paretocosmos.paper.recipe import Experiment
from paretocosmos.paper.results import RecipeResult

FAIR = ("adult", "compas", "default_credit")
IMAGES = ("multi_mnist", "multi_fashion", "fashion_and_mnist")


def read_section(result: RecipeResult) -> Section:
    return read_report(result)[-1]


def titles(figure: Figure) -> list[str]:
    found = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    return [title for title in found if title]


def rows(figure: Figure) -> list[list[str]]:
    """The titles of the panels, line by line, as they stand in the picture."""
    found: dict[float, list[str]] = {}
    for axes in figure.axes:
        if axes.get_title(loc="left"):
            line = round(float(axes.get_position().y0), 2)
            found.setdefault(line, []).append(axes.get_title(loc="left").replace("\n", " "))
    return [found[line] for line in sorted(found, reverse=True)]


def test_courses_of_protocols_and_methods_have_panels_of_their_own(tmp_path: Path) -> None:
    cells = [Experiment("adult", m, p) for p in ("paper", "clean") for m in ("cosmos", "phn_ls")]
    content = collect_experiments("convergence", cells, tmp_path)
    expected = [f"Adult, {p}, {m}" for p in ("paper", "clean") for m in ("COSMOS", "PHN-LS")]
    assert titles(draw_only_picture(content)) == expected
    starts = [table.title.partition(":")[0] for table in read_section(content).tables]
    assert starts == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([Experiment(p, "cosmos", "paper") for p in IMAGES[:2]], ["Multi-MNIST", "Multi-Fashion"]),
        (
            [Experiment("adult", "cosmos", "paper"), Experiment("compas", "cosmos", "clean")],
            ["Adult", "COMPAS"],
        ),
        (
            [Experiment("adult", "cosmos", p) for p in ("paper", "clean")],
            ["Adult, paper", "Adult, clean"],
        ),
        (
            [Experiment("adult", m) for m in ("cosmos", "phn_ls")],
            ["Adult, COSMOS", "Adult, PHN-LS"],
        ),
        (
            [Experiment("adult", "cosmos", None, {"penalty": p}) for p in (1.0, 2.0)],
            ["Adult, COSMOS, penalty 1", "Adult, COSMOS, penalty 2"],
        ),
    ],
    ids=["sets", "no clash", "protocols", "methods", "settings"],
)
def test_a_panel_s_title_says_what_it_must_and_no_more(
    cells: list[Experiment], expected: list[str], tmp_path: Path
) -> None:
    assert (
        titles(draw_only_picture(collect_experiments("convergence", cells, tmp_path))) == expected
    )


def test_a_rule_makes_another_set_not_another_method(tmp_path: Path) -> None:
    cells = [
        Experiment("multi_mnist", method, "paper", settings)
        for settings in ({}, {"rule": "text"})
        for method in ("cosmos", "phn_ls")
    ]
    sets = ["Multi-MNIST", "Multi-MNIST, rule text"]
    content = collect_experiments("table", cells, tmp_path)
    assert titles(draw_only_picture(content)) == sets
    legend = [text.get_text() for text in draw_only_picture(content).legends[0].get_texts()]
    assert legend == ["COSMOS", "PHN-LS"]
    volumes, detailed = read_section(content).tables
    assert list(volumes.head[1:]) == sets
    assert [row[0] for row in volumes.rows] == ["PHN-LS", "COSMOS"]
    assert [row[:2] for row in detailed.rows] == [
        (title, method) for title in sets for method in ("PHN-LS", "COSMOS")
    ]
    assert [row[3] for row in detailed.rows] == ["2.83 ± 0.03", "2.94 ± 0.02", "–", "–"]


def test_an_ablation_keeps_protocols_and_other_settings_apart(tmp_path: Path) -> None:
    grid = [{"penalty": p, "alpha": a} for p in (0.0, 0.1) for a in (0.1, 0.7)]
    cells = [Experiment("adult", "cosmos", p, own) for p in ("paper", "clean") for own in grid]
    content = collect_experiments("ablation", cells, tmp_path)
    expected = [[f"Adult, {p}, α {a}" for a in (0.1, 0.7)] for p in ("paper", "clean")]
    assert rows(draw_only_picture(content)) == expected
    more = [Experiment("adult", "cosmos", "paper", own | {"batch_size": 64}) for own in grid]
    content = collect_experiments("ablation", cells[:4] + more, tmp_path)
    assert titles(draw_only_picture(content))[::2] == [
        *("Adult, COSMOS, α 0.1", "Adult, COSMOS, batch size 64, α 0.1")
    ]
    (table,) = read_section(content).tables
    assert len(table.rows) == 4
    assert len({row[:2] for row in table.rows}) == 4


def varied() -> list[Experiment]:
    own: tuple[dict[str, Any], ...] = ({}, {"penalty": 0.1, "batch_size": 64}, {"penalty": 0.5})
    cells = [Experiment("adult", "cosmos", "paper", one) for one in own]
    return [*cells, Experiment("adult", "phn_ls", "paper"), Experiment("compas", "cosmos", "paper")]


NAMES = ["COSMOS", "COSMOS, penalty 0.1, batch size 64", "COSMOS, penalty 0.5"]


def test_variations_of_a_method_have_labels_in_pictures_and_tables(tmp_path: Path) -> None:
    content = collect_experiments("table", varied(), tmp_path)
    legend = [text.get_text() for text in draw_only_picture(content).legends[0].get_texts()]
    assert legend == ["COSMOS", "PHN-LS", *NAMES[1:]]
    volumes, detailed = read_section(content).tables
    assert [row[0] for row in volumes.rows] == ["PHN-LS", *NAMES]
    assert [row[2] == "–" for row in volumes.rows] == [True, False, True, True]
    assert [row[1] for row in detailed.rows] == ["PHN-LS", *NAMES, "COSMOS"]


def test_settings_that_do_not_clash_are_not_in_a_label(tmp_path: Path) -> None:
    cells = [Experiment(p, m, None, {"epochs": 8}) for p in FAIR[:2] for m in ("cosmos", "phn_ls")]
    (table,) = read_section(collect_experiments("fronts", cells, tmp_path)).tables
    assert {row[1] for row in table.rows} == {"COSMOS", "PHN-LS"}


def test_toys_with_an_alpha_each_have_panels_of_their_own(tmp_path: Path) -> None:
    own = [{"penalty": p, "alpha": a} for p in (0.5, 3.0) for a in (0.1, 0.7)]
    cells = [Experiment("toy_convex", "cosmos", None, one) for one in own]
    cells.append(Experiment("toy_concave", "linear"))
    found = rows(draw_only_picture(collect_experiments("intuition", cells, tmp_path)))
    assert found == [
        [f"Convex toy: COSMOS, penalty {one['penalty']:g}, alpha {one['alpha']}" for one in own],
        ["Concave toy: Weighted sum"],
    ]


def test_sets_of_a_kind_share_rows(tmp_path: Path) -> None:
    cells = [Experiment(p, "cosmos", one) for p in FAIR for one in ("paper", "clean")]
    cells += [Experiment(p, "cosmos", "paper") for p in IMAGES]
    fair = ("Adult", "COMPAS", "Default")
    images = ["Multi-MNIST, paper", "Multi-Fashion, paper", "Fashion+MNIST, paper"]
    found = rows(draw_only_picture(collect_experiments("table", cells, tmp_path)))
    assert found == [[f"{p}, paper" for p in fair], [f"{p}, clean" for p in fair], images]
    fewer = [cell for cell in cells if cell.problem != "default_credit"]
    found = rows(draw_only_picture(collect_experiments("table", fewer, tmp_path)))
    assert found == [[f"{p}, paper" for p in fair[:2]], [f"{p}, clean" for p in fair[:2]], images]
    # in whatever order they come
    some = [cells[6], cells[0], cells[7], cells[2]]
    found = rows(draw_only_picture(collect_experiments("convergence", some, tmp_path)))
    assert found == [["Multi-MNIST", "Multi-Fashion"], ["Adult", "COMPAS"]]


def test_sets_without_companions_stand_beside_each_other(tmp_path: Path) -> None:
    cells = [
        Experiment(p, m) for p in ("celeba_easy", "celeba_hard") for m in ("cosmos", "single_task")
    ]
    assert rows(draw_only_picture(collect_experiments("celeba", cells, tmp_path))) == [
        ["CelebA, easy", "CelebA, hard"]
    ]
