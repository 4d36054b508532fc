"""The numbers as the paper's own LaTeX has them, row by row."""

import re

import pytest

from paretocosmos import registry
from paretocosmos.paper.published import get_paper_row, get_paper_tasks, get_published

PROBLEMS = (
    "adult",
    "compas",
    "default_credit",
    "multi_mnist",
    "multi_fashion",
    "fashion_and_mnist",
)
METHODS = {
    "Single Task": "single_task",
    "PHN-EPO": "phn_epo",
    "PHN-LS": "phn_ls",
    "ParetoMTL": "pareto_mtl",
    "COSMOS": "cosmos",
}

DETAILED = r"""
Single Task    & 3.36 $\pm$ 0.01        & 48          &  6k \\
PHN-EPO    & 3.34 $\pm$ 0.00        & 59          &  716k \\
PHN-LS    & 3.34 $\pm$ 0.00        & 23          &  716k \\
ParetoMTL    & 2.90 $\pm$ 0.05        & 539          &  6k \\
COSMOS    & 3.34 $\pm$ 0.01        & 31          &  7k \\
Single Task    & 3.81 $\pm$ 0.00        & 16          &  2k \\
PHN-EPO    & 3.71 $\pm$ 0.01        & 17          &  304k \\
PHN-LS    & 3.71 $\pm$ 0.01        & 7          &  304k \\
ParetoMTL    & 2.15 $\pm$ 0.37        & 83          &  2k \\
COSMOS    & 3.72 $\pm$ 0.01        & 17          &  2k \\
Single Task    & 3.12 $\pm$ 0.00        & 34          &  7k \\
PHN-EPO    & 3.11 $\pm$ 0.01        & 27          &  728k \\
PHN-LS    & 3.12 $\pm$ 0.00        & 18          &  728k \\
ParetoMTL    & 3.10 $\pm$ 0.00        & 334          &  7k \\
COSMOS    & 3.12 $\pm$ 0.00        & 35          &  7k \\
Single Task    & 2.85 $\pm$ 0.01        & 391          &  42k \\
PHN-EPO    & 2.83 $\pm$ 0.03        & 1,554          &  3,243k \\
PHN-LS    & 2.83 $\pm$ 0.03        & 636          &  3,243k \\
ParetoMTL    & 2.90 $\pm$ 0.01        & 4,087          &  42k \\
COSMOS    & 2.94 $\pm$ 0.02        & 501          &  43k \\
Single Task    & 2.23 $\pm$ 0.01        & 421          &  42k \\
PHN-EPO    & 2.20 $\pm$ 0.03        & 1,852          &  3,243k \\
PHN-LS    & 2.20 $\pm$ 0.03        & 700          &  3,243k \\
ParetoMTL    & 2.24 $\pm$ 0.02        & 4,210          &  42k \\
COSMOS    & 2.32 $\pm$ 0.01        & 379          &  43k \\
Single Task    & 2.77 $\pm$ 0.02        & 398          &  42k \\
PHN-EPO    & 2.78 $\pm$ 0.02        & 1,715          &  3,243k \\
PHN-LS    & 2.76 $\pm$ 0.05        & 723          &  3,243k \\
ParetoMTL    & 2.72 $\pm$ 0.02        & 4,142          &  42k \\
COSMOS    & 2.83 $\pm$ 0.03        & 498          &  43k \\
"""

FACES = r"""
Single Task    & 2.222   & 24.66\%  & 3.08 \\
COSMOS         & 2.221   & 25.29\%  & 3.30   \\
Single Task    & 3.719   & 3.15\%  & 3.11 \\
COSMOS         & 3.706   & 3.47\%  & 3.30  \\
"""

OBJECTIVES = r"""
2 Tasks        & 3.07\%       & 3.88\%      & -          & - \\
3 Tasks        & 3.16\%       & 3.93\%      & 5.28\%     & - \\
4 Tasks        & 3.53\%       & 3.59\%      & 5.40\%     & 3.14\% \\
Single Task    & 2.87\%       & 3.30\%      & 4.82\%     & 3.00\% \\
"""

TEN = r"""
Task 1 MCR   & 10.90\%       & 11.63\%    \\
Task 2 MCR   & 6.55\%        & 8.87\%     \\
Task 3 MCR   & 1.19\%        & 2.00\%     \\
Task 4 MCR   & 2.87\%        & 3.24\%     \\
Task 5 MCR   & 18.18\%       & 18.06\%    \\
Task 6 MCR   & 7.52\%        & 8.84\%     \\
Task 7 MCR   & 6.72\%        & 6.87\%     \\
Task 8 MCR   & 2.56\%        & 3.43\%     \\
Task 9 MCR   & 4.82\%        & 6.05\%     \\
Task 10 MCR  & 4.59\%        & 5.26\%     \\
"""


def rows(text: str) -> list[list[str]]:
    lines = (line.removesuffix("\\\\").strip() for line in text.replace(",", "").splitlines())
    return [[part.strip() for part in line.rstrip("\\ ").split("&")] for line in lines if line]


def percent(text: str) -> float:
    return round(float(text.removesuffix("\\%")) / 100, 6)


def test_the_detailed_table_is_the_paper_s() -> None:
    lines = rows(DETAILED)
    assert len(lines) == len(PROBLEMS) * len(METHODS)
    for number, (name, volume, seconds, parameters) in enumerate(lines):
        mean, std = re.findall(r"[\d.]+", volume)
        row = get_paper_row(PROBLEMS[number // len(METHODS)], METHODS[name])
        assert row == {
            "hypervolume": float(mean),
            "std": float(std),
            "seconds": float(seconds),
            "parameters": 1000 * int(parameters.removesuffix("k")),
        }


def test_the_paper_s_times_add_up_to_32_6_hours() -> None:
    """Five seeds of every cell of Table 1, as issue and README say."""
    table = get_published()["table_1"]
    each = (row["seconds"] for rows in table["problems"].values() for row in rows.values())
    assert round(len(table["seeds"]) * sum(each) / 3600, 1) == 32.6


def test_the_faces_are_the_paper_s() -> None:
    problems = ("celeba_hard", "celeba_hard", "celeba_easy", "celeba_easy")
    for problem, (name, volume, rate, hours) in zip(problems, rows(FACES), strict=True):
        row = get_paper_row(problem, METHODS[name])
        assert row["hypervolume"] == float(volume)
        assert row["misclassification"] == percent(rate)
        assert row["seconds"] == pytest.approx(3600 * float(hours))


def test_the_tasks_are_the_paper_s() -> None:
    *several, alone = rows(OBJECTIVES)
    for problem, (_, *rates) in zip(
        ("celeba_easy", "celeba_three", "celeba_four"), several, strict=True
    ):
        printed = [percent(rate) for rate in rates if rate != "-"]
        assert get_paper_tasks(problem, "cosmos") == printed
        assert (
            get_paper_tasks(problem, "single_task")
            == [percent(r) for r in alone[1:]][: len(printed)]
        )
    ten = rows(TEN)
    assert get_paper_tasks("celeba_ten", "single_task") == [percent(row[1]) for row in ten]
    assert get_paper_tasks("celeba_ten", "cosmos") == [percent(row[2]) for row in ten]


def test_what_is_not_printed_is_none() -> None:
    assert get_paper_row("multi_digits", "cosmos") is None
    assert get_paper_row("adult", "mgda") is None
    assert get_paper_tasks("celeba_hard", "cosmos") is None


def test_every_table_names_its_source_and_known_problems() -> None:
    for name, table in get_published().items():
        assert table["source"], name
        assert set(table.get("problems", {})) <= set(registry.names("problems"))
