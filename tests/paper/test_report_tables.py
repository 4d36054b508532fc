"""What tables say beside their numbers: the paper's in its own digits, times, marks and reasons."""

import re
from pathlib import Path

import pytest
from tests.paper.hand_made import write_recipe, write_run
from tests.paper.reports import collect_experiments, read_tables

from paretocosmos.paper import (
    Experiment,
    Recipe,
    RecipeResult,
    collect_results,
    get_paper_tasks,
    load_recipe,
)
from paretocosmos.paper.report.formatting import format_ratio


def test_a_set_of_table_1_among_faces_has_dashes(tmp_path: Path) -> None:
    cells = [Experiment("multi_mnist", m, "paper") for m in ("cosmos", "single_task")]
    pairs, *_ = read_tables(collect_experiments("celeba", cells, tmp_path))
    assert [row[3] for row in pairs.rows] == ["2.94", "2.85"]
    assert [row[6:8] for row in pairs.rows] == [("–", "–")] * 2


def test_a_method_the_paper_has_not_on_faces_is_no_pair(tmp_path: Path) -> None:
    cells = [Experiment("celeba_hard", m) for m in ("cosmos", "single_task", "phn_ls")]
    pairs, *_ = read_tables(collect_experiments("celeba", cells, tmp_path))
    assert [row[1] for row in pairs.rows] == ["COSMOS", "Single Task"]


def test_faces_in_table_1_have_the_paper_s_number_without_a_deviation(tmp_path: Path) -> None:
    found = read_tables(
        collect_experiments("table", [Experiment("celeba_hard", "cosmos")], tmp_path)
    )
    assert found[0].rows[0][1].endswith(" (2.221)")
    (row,) = found[-2].rows
    assert row[3] == "2.221"


def test_the_study_sets_fronts_beside_separate_networks(tmp_path: Path) -> None:
    cells = [Experiment("toy_convex", m, preset="default") for m in ("separate", "linear")]
    cells += [
        Experiment("toy_convex", "single_task", preset="default"),
        Experiment("toy_convex", "linear"),
    ]
    (table,) = read_tables(collect_experiments("study", cells, tmp_path))
    shown = {row[1]: dict(zip(table.head, row, strict=True)) for row in table.rows}
    assert set(shown) == {"separate", "Weighted sum, preset default", "Single Task", "Weighted sum"}
    assert shown["Weighted sum"]["range"] == "100%"  # all fronts made by hand are the same
    assert shown["Weighted sum"]["order"].startswith("1.00")
    assert shown["separate"]["range"] == shown["Single Task"]["range"] == "–"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (31 / 70, "0.44"),
        (0.0996, "0.10"),
        (0.00123, "0.0012"),
        (1.0, "1.0"),
        (7.38, "7.4"),
        (9.96, "10"),
        (57.1, "57"),
        (202.4, "202"),
        (12345.6, "12,346"),
    ],
)
def test_a_ratio_has_two_digits(ratio: float, text: str) -> None:
    assert format_ratio(ratio) == text


def test_a_slower_training_is_no_zero(tmp_path: Path) -> None:
    cell = Experiment("adult", "cosmos", "paper")
    recipe = Recipe("mine", "Mine", "nowhere", "table", (cell,))
    write_run(cell, tmp_path, 1, seconds_to_selected=70.0, seeds_together=1)
    (row,) = read_tables(collect_results(recipe, tmp_path))[-2].rows
    assert row[5:8] == ("70 s", "31 s", "0.44")


def test_times_are_marked_by_what_they_were_measured_on(tmp_path: Path) -> None:
    methods = ("cosmos", "phn_ls", "phn_epo", "single_task")
    cells = [Experiment("adult", method, "paper") for method in methods]
    recipe = Recipe("mine", "Mine", "nowhere", "table", tuple(cells))
    write_recipe(recipe, tmp_path)
    found = read_tables(collect_results(recipe, tmp_path))
    note = "The paper: an RTX 2080, one seed after another. Ours: NVIDIA H200, 5 seeds together."
    assert found[1].notes == {"*": note}
    assert found[1].rows[-1][1] == "2.20 s (31 s)"
    cpu = {"device": "cpu"}
    write_run(cells[1], tmp_path, 1, machine=cpu)
    write_run(cells[2], tmp_path, 1, machine=cpu, seeds_together=1)
    found = read_tables(collect_results(recipe, tmp_path))
    (note,) = found[1].notes.values()
    known = dict(re.findall(r"\((\w)\) ([^;]+)[;.]", note))
    marks = {row[0]: re.search(r" \((\w)\)$", row[1]) for row in found[1].rows}
    assert {name: mark and known[mark[1]] for name, mark in marks.items()} == {
        "Single Task": "NVIDIA H200, 5 seeds together",
        "PHN-EPO": "a CPU, one seed at a time",
        "PHN-LS": "a CPU, 5 seeds together",
        "COSMOS": "NVIDIA H200, 5 seeds together",
    }
    assert "table of training times" in found[-2].notes["*"]


def test_tasks_have_a_difference_for_both_methods(tmp_path: Path) -> None:
    recipe = load_recipe("celeba_objectives")
    write_recipe(recipe, tmp_path)
    content = collect_results(recipe, tmp_path)
    four = next(t for t in read_tables(content) if t.title.startswith("CelebA, 4 tasks"))
    assert four.head[1:] == (
        *("COSMOS", "paper", "difference", "Single Task", "paper", "difference"),
    )
    for start, method in ((1, "cosmos"), (4, "single_task")):
        cell = next(c for c in content.experiments if c.name == f"celeba_four/{method}")
        assert cell.tasks is not None
        ours = [one.mean for one in cell.tasks.misclassification.values()]
        theirs = get_paper_tasks("celeba_four", method)
        assert theirs is not None
        for row, one, other in zip(four.rows, ours, theirs, strict=True):
            gap = f"{100 * (one - other):+.2f}".replace("-", "−")
            assert row[start : start + 3] == (f"{100 * one:.2f}", f"{100 * other:.2f}", gap)
    short = load_recipe("celeba_objectives").rehearsal(1)
    write_recipe(short, tmp_path)
    for table in read_tables(collect_results(short, tmp_path)):
        gaps = [at for at, name in enumerate(table.head) if name == "difference"]
        assert len(gaps) == 2
        assert {row[at] for row in table.rows for at in gaps} == {"–"}


def test_reasons_told_before_are_referred_to(tmp_path: Path) -> None:
    given = {"batch_size": 256}
    sets = ("celeba_three", "celeba_four", "celeba_ten")
    cells = [Experiment(p, "cosmos", settings=given) for p in sets[:2]]
    cells.append(Experiment("celeba_ten", "cosmos", settings={"batch_size": 64}))
    content = collect_experiments("celeba", cells, tmp_path)
    three, four, ten = read_tables(content)
    assert list(three.notes.values()) == [
        "Trained with settings that differ from the paper's: batch size 256."
    ]
    assert list(four.notes.values()) == ["Reasons for the differences: as above."]
    assert list(ten.notes.values()) == [
        "Trained with settings that differ from the paper's: batch size 64."
    ]
    told = content.to_dict()
    cells = told["cells"]
    cells[2]["against"]["reasons"] += cells[0]["against"]["reasons"]
    content = RecipeResult.model_validate(told)
    assert list(read_tables(content)[2].notes.values())[1] == "Further reasons: as above."


def test_what_clean_changes_is_told_below_both_protocols(tmp_path: Path) -> None:
    cells = [
        Experiment(p, "cosmos", one) for p in ("adult", "compas") for one in ("paper", "clean")
    ]
    content = collect_experiments("table", cells, tmp_path)
    both = next(t for t in read_tables(content) if "both protocols" in t.title)
    assert both.head[1:] == (
        *("Adult, paper", "Adult, clean", "COMPAS, paper", "COMPAS, clean (1)"),
    )
    assert "`is_recid`" in both.notes["1"]
    assert both.notes["*"].startswith("`paper` follows the published code")
    assert set(both.notes) == {"bold", "1", "*"}
