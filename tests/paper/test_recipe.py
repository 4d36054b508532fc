"""Recipes: their grids against the paper's, what cells share, and every mistake in one answer."""

import itertools
import re
from pathlib import Path

import pytest

from paretocosmos.errors import ConfigurationError
from paretocosmos.paper.recipe import Experiment, Recipe, load_recipe, recipe_names

FAIR = ("adult", "compas", "default_credit")
PAIRS = ("multi_mnist", "multi_fashion", "fashion_and_mnist")
SEEDS = (1, 2, 3, 4, 42)
METHODS = ("single_task", "phn_epo", "phn_ls", "pareto_mtl", "cosmos")

GOOD = """\
title = "Toys"
section = "nowhere"
shows = "fronts"
seeds = [1, 2]

[[grid]]
problems = ["toy_convex"]
methods = ["cosmos", "linear"]
"""


def _names(recipe: str) -> list[str]:
    return [cell.name for cell in load_recipe(recipe).experiments]


def _written(folder: Path, text: str) -> Recipe:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path, trust=["tests"])


def _refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        _written(folder, text)
    return str(refused.value)


# ---------------------------------------------------------------- those of the paper


@pytest.mark.parametrize("name", sorted(recipe_names()))
def test_every_recipe_cites_its_place_and_names_each_cell_once(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert re.search(r"section \d|appendix|own study", recipe.section)
    assert recipe.title
    names = [cell.name for cell in recipe.experiments]
    assert len(set(names)) == len(names)


def test_table_1_is_six_sets_by_five_methods_by_five_seeds() -> None:
    cells = load_recipe("table_1").experiments
    as_published = [cell for cell in cells if cell.protocol == "paper"]
    runs = {(cell.problem, cell.method, seed) for cell in as_published for seed in cell.seeds}
    assert runs == set(itertools.product((*FAIR, *PAIRS), METHODS, SEEDS))
    clean = {(cell.problem, cell.method) for cell in cells if cell.protocol == "clean"}
    assert clean == set(itertools.product(FAIR, METHODS))
    assert not any(cell.settings for cell in cells)


def test_a_cell_of_another_preset_is_another_cell(tmp_path: Path) -> None:
    recipe = _written(tmp_path, GOOD + GOOD[GOOD.index("\n[[grid]]") :] + 'preset = "default"\n')
    assert [cell.name for cell in recipe.experiments] == [
        *("toy_convex/cosmos", "toy_convex/linear"),
        *("toy_convex/default-cosmos", "toy_convex/default-linear"),
    ]
    assert [cell.asked for cell in recipe.experiments][2:] == [{}, {}]
    wrong = _refusal(tmp_path, GOOD + 'preset = "papers"\n')
    assert "`grid[0].preset` must be `paper` or `default`, found 'papers'" in wrong, wrong


def test_the_ablation_is_the_papers_grid() -> None:
    cells = load_recipe("figure_ablation").experiments
    grid = [(c.problem, c.asked["penalty"], c.asked["alpha"]) for c in cells]
    alphas = (0.1, 0.7, 1.2)
    expected = [
        *itertools.product(FAIR, (0, 0.01, 0.1), alphas),
        *itertools.product(PAIRS, (1, 3, 5), alphas),
    ]
    assert grid == expected
    assert {cell.method for cell in cells} == {"cosmos"}


def test_figures_are_drawn_from_the_cells_of_the_tables() -> None:
    table = set(_names("table_1"))
    for name in ("figure_vs_sota", "figure_vs_single_task", "figure_convergence"):
        assert set(_names(name)) <= table
    assert set(_names("figure_celeba")) <= set(_names("table_celeba"))
    # the fronts, without what is no front
    assert table - set(_names("figure_vs_sota")) == {n for n in table if "single_task" in n}


# ---------------------------------------------------------------- cells


def test_a_cell_is_named_by_what_is_not_the_papers(tmp_path: Path) -> None:
    vary = "[grid.vary]\npenalty = [0.01, 2, 2.5]\n[grid.settings]\nalpha = [0.1, 0.5]\n"
    text = GOOD.replace('"toy_convex"', '"default_credit"').replace(', "linear"', "") + vary
    names = [cell.name for cell in _written(tmp_path, text).experiments]
    # 0.01 and (0.1, 0.5) are what the paper has for it
    assert names == [f"default_credit/cosmos{end}" for end in ("", "-penalty_2", "-penalty_2.5")]


def test_the_same_number_is_the_same_cell() -> None:
    one, two = (Experiment("adult", "cosmos", "paper", {"penalty": p}) for p in (1, 1.0))
    assert one.name == two.name == "adult-paper/cosmos-penalty_1"
    near = [
        Experiment("adult", "cosmos", settings={"penalty": p}).name for p in (0.1234567, 0.1234568)
    ]
    assert near[0] != near[1]


def test_a_value_that_is_the_papers_is_no_second_cell(tmp_path: Path) -> None:
    varied = '[[grid]]\nproblems = ["adult"]\nmethods = ["cosmos"]\nseeds = [2, 3]\n'
    varied += "vary.penalty = [0.01, 1]\n"
    recipe = _written(tmp_path, GOOD.replace("toy_convex", "adult") + varied)
    found = {cell.name: cell.seeds for cell in recipe.experiments}
    assert found == {
        "adult/cosmos": (1, 2, 3),
        "adult/linear": (1, 2),
        "adult/cosmos-penalty_1": (2, 3),
    }


def test_names_of_ones_own_are_folders() -> None:
    cell = Experiment("package.module:Thing", "cosmos", None, {"alpha": (0.1, 0.5)})
    assert cell.name == "package.module-Thing/cosmos-alpha_0.1_0.5"
    assert cell.runs(Path("out")) == {1: Path("out/cells") / cell.name / "seed-1"}


def test_a_rehearsal_lies_elsewhere() -> None:
    recipe = load_recipe("table_1")
    short = recipe.rehearsal(3)
    assert short.root(Path("out")) == Path("out/rehearsal-3")
    assert [cell.name for cell in short.experiments] == [cell.name for cell in recipe.experiments]
    for before, after in zip(recipe.experiments, short.experiments, strict=True):
        assert after.folder(Path("out")) == Path("out/rehearsal-3/cells") / after.name
        assert before.folder(Path("out")) == Path("out/cells") / before.name
    assert recipe.rehearsal(None) is recipe
    with pytest.raises(ConfigurationError, match="`epochs` must be at least 1, found 0"):
        recipe.rehearsal(0)


def test_only_problems_methods_and_protocols() -> None:
    recipe = load_recipe("table_1")

    def found(*names: str) -> set[str]:
        return {cell.name for cell in recipe.only(names)}

    assert found() == set(_names("table_1"))
    assert found("adult") == {n for n in _names("table_1") if n.startswith("adult")}
    assert found("adult", "cosmos") == {"adult-paper/cosmos", "adult-clean/cosmos"}
    assert found("adult", "multi_mnist", "cosmos", "phn_ls", "paper") == {
        f"{p}-paper/{m}" for p in ("adult", "multi_mnist") for m in ("cosmos", "phn_ls")
    }
    with pytest.raises(ConfigurationError, match=r"`cosmo`; did you mean `cosmos`\?.*`aldut`"):
        found("cosmo", "aldut")
    with pytest.raises(ConfigurationError, match="for all of multi_mnist, clean together"):
        found("multi_mnist", "clean")


# ---------------------------------------------------------------- mistakes


def test_all_mistakes_of_a_kind_are_told_at_once(tmp_path: Path) -> None:
    form = """\
title = "Toys"
sektion = "nowhere"
shows = "front"
seeds = [1, 1]

[[grid]]
problems = ["toy_convex"]
methods = ["cosmos"]
seeds = "all"
"""
    said = _refusal(tmp_path, form)
    assert said.startswith(f"`{tmp_path / 'mine.toml'}` has 5 mistakes: ")
    for wanted in (
        r"`section` is missing; ",
        r"unknown key `sektion`; did you mean `section`\? known: grid, ",
        r"`shows`: unknown value `front`; did you mean `fronts`\?",
        r"`seeds`: each entry once, found `1` 2 times; ",
        r"`grid\[0\].seeds` must be a list, found 'all'",
    ):
        assert re.search(wanted, said), (wanted, said)
    names = GOOD.replace('["toy_convex"]', '["toy_convex", "adlut"]').replace("linear", "liner")
    said = _refusal(tmp_path, names)
    for wanted in (
        " has 2 mistakes: ",
        r"`grid\[0\].problems`: unknown problem `adlut`; did you mean `adult`\?",
        r"`grid\[0\].methods`: unknown method `liner`; did you mean `linear`\?",
    ):
        assert re.search(wanted, said), (wanted, said)


TABLE = r"`grid`: a table or several: begin each with \[\[grid\]\]"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("[[grid]]", "[grid]"), TABLE),
        (("[1, 2]", "[-1]"), r"`seeds\[0\]` must be at least 0, found -1"),
        (('"Toys"', '" "'), "`title` is invalid .*found ' '"),
        (('"fronts"', '" "'), "`shows`: unknown value ` `; known: "),
        (
            ('["toy_convex"]', '"toy_convex"'),
            r"`grid\[0\].problems` must be a list, found 'toy_convex'",
        ),
        (
            ('["toy_convex"]', "[]"),
            r"`grid\[0\].problems` must have at least 1 entries, found \[\]",
        ),
        (('"linear"', '"cosmos"'), r"`grid\[0\].methods`: each entry once, found `cosmos` 2 times"),
        (('"linear"', '"tests:Thing"'), r"`grid\[0\].methods`: `tests:Thing` cannot be imported"),
        (
            ('"linear"', f'"{"x" * 999}"'),
            r"`grid\[0\].methods\[1\]` must have at most 200 characters",
        ),
        (("methods", 'protocols = ["papr"]\nmethods'), r"`.*protocols\[0\]` must be `paper` or"),
        (
            ("methods", "vary.penalty = 3\nmethods"),
            r"`grid\[0\].vary.penalty` must be a list, found 3",
        ),
        (
            ("methods", "vary.epochs = [3]\nsettings.epochs = 4\nmethods"),
            r"`grid\[0\].vary.epochs`: it is in `settings` too, leave one out",
        ),
        (
            ("methods", f"vary.penalty = {[*range(200)]}\nvary.alpha = {[*range(200)]}\nmethods"),
            r"`grid\[0\]`: at most 10000 experiments, found 80000",
        ),
        (('"linear"', r'"a\u001b\nb"'), r"unknown method `a\\x1b b`"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_mistake_has_its_place(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    said = _refusal(tmp_path, GOOD.replace(*change))
    assert re.search(f"has (a mistake|2 mistakes): .*{says}", said), said
    assert said.isprintable()


def test_a_recipe_without_cells_is_refused(tmp_path: Path) -> None:
    empty = GOOD.partition("[[grid]]")[0] + "grid = []\n"
    assert re.search(TABLE, _refusal(tmp_path, empty))
    missing = GOOD.partition("[[grid]]")[0]
    assert "has a mistake: `grid` is missing" in _refusal(tmp_path, missing)


def test_a_name_of_ours_is_taken(tmp_path: Path) -> None:
    (tmp_path / "table_1.toml").write_text(GOOD)
    with pytest.raises(ConfigurationError, match=r"`table_1` is a built-in recipe.*another"):
        load_recipe(tmp_path / "table_1.toml")


def test_what_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    said = _refusal(tmp_path, GOOD.replace('"toy_convex"]', '"toy_convex]'))
    assert re.search(r"`.*mine.toml` is not TOML: .*line 7", said), said
    for hostile in (
        f"title = {'[' * 5000}",
        f"{'a.' * 5000}a = 1",
        f"title = {'9' * 9999}",
        f"title = 0x{'f' * 9999}",
    ):
        said = _refusal(tmp_path, hostile)
        assert re.search(r"`.*mine.toml` is not TOML: ", said), said
        assert said.isprintable()


def test_an_unknown_recipe_and_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="did you mean `table_1`"):
        load_recipe("tabel_1")
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        load_recipe(tmp_path / "none.toml")
    (tmp_path / "picture.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="not text in UTF-8"):
        load_recipe(tmp_path / "picture.toml")
