"""`load_problem`: names, settings, files."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from paretocosmos.errors import BenchmarkWarning, ConfigurationError
from paretocosmos.problems import Problem, load_problem, problem_name
from paretocosmos.problems.functions import toy_convex
from paretocosmos.problems.tables import TabularProblem

CSV = "x,sex,paid\n" + "".join(
    f"{at * 7 % 200 * 3},{'fm'[at % 2]},{at // 2 % 2}\n" for at in range(200)
)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    (tmp_path / "loans.csv").write_text(CSV)
    return tmp_path / "loans.csv"


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("mine")

    def plain(*, width: int = 3) -> Problem:
        assert isinstance(width, int)
        return toy_convex()

    class Other:
        def __init__(self, *, size: float = 1.0) -> None:
            assert isinstance(size, float)

    module.plain, module.Other = plain, Other  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine", module)
    return module


def test_by_name() -> None:
    with pytest.warns(BenchmarkWarning):
        problem = load_problem("compas", protocol="paper", settings={"fairness": "tpr_gap"})
    assert (problem.protocol, problem.names[1]) == ("paper", "tpr_gap")


def test_the_spec_loads_it_again(csv: Path) -> None:
    problem = load_problem(
        str(csv), settings={"target": "paid", "sensitive": "sex", "split_seed": "7", "positive": 0}
    )
    assert isinstance(problem, TabularProblem)
    assert problem.spec is not None
    assert problem.spec.name == "table"
    assert problem.spec.settings == {
        "data": str(csv),
        "group": "estimate",
        "target": "paid",
        "sensitive": ("sex",),
        "small_groups": "keep",
        "positive": 0,
        "task": "binary",
        "fairness": None,
        "class_weight": None,
        "categorical": (),
        "drop": (),
        "keep": (),
        **dict.fromkeys(("separator", "decimal", "encoding", "val", "test")),
        "split_seed": 7,
        "protocol": "clean",
    }
    again = load_problem(problem.spec.name, settings=problem.spec.settings)
    assert isinstance(again, TabularProblem)
    assert again.table == problem.table
    assert again.positive == "0"


def test_a_relative_path_is_recorded_whole(csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(csv.parent)
    problem = load_problem("loans.csv", settings={"target": "paid", "sensitive": "sex"})
    assert problem.spec.settings["data"] == str(csv)


def test_settings_as_text(csv: Path) -> None:
    text = {"target": "paid", "sensitive": "sex", "categorical": "x", "positive": "1"}
    with pytest.warns(UserWarning, match="the column `x` has values"):
        problem = load_problem("table", data=str(csv), settings=text)
    assert problem.input_shape == (140,)


@pytest.mark.parametrize("name", ["a.csv", "folder/b.CSV", "c.csv.gz", "d.csv.xz"])
def test_paths_are_tables(name: str) -> None:
    assert problem_name(name) == "table"


@pytest.mark.usefixtures("mine")
def test_a_problem_of_ones_own() -> None:
    assert (
        load_problem("mine:plain", protocol="clean", settings={"width": "5"}).name == "toy_convex"
    )
    with pytest.raises(ConfigurationError, match=r"`mine:plain`.*`protocol`.*`paper`"):
        load_problem("mine:plain", protocol="paper")
    with pytest.raises(ConfigurationError, match="Problem, found Other"):
        load_problem("mine:Other", settings={"size": "2"})


class TestRefusals:
    def test_a_value_of_the_wrong_kind(self, csv: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"`split_seed`.*int, found 'x'"):
            load_problem(
                str(csv), settings={"target": "paid", "sensitive": "sex", "split_seed": "x"}
            )

    def test_what_is_missing_is_named(self, csv: Path) -> None:
        with pytest.raises(ConfigurationError, match="needs `target`"):
            load_problem(str(csv))
        with pytest.raises(ConfigurationError, match="needs `data` and `target`"):
            load_problem("table")

    def test_two_files(self, csv: Path) -> None:
        with pytest.raises(ConfigurationError, match="`data` is `other` too"):
            load_problem(str(csv), data="other")


@pytest.mark.system
def test_pandas_waits_until_it_is_needed() -> None:
    check = "import sys, paretocosmos.problems as p; p.load_problem('toy_convex');"
    check += "sys.exit(sorted({'pandas', 'sklearn'} & set(sys.modules)) or 0)"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
