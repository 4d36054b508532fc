"""A recipe: the experiments that make a table or a figure of the paper, and its TOML file."""

import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from paretocosmos import registry
from paretocosmos.config.settings import get_pairs, get_paper_settings
from paretocosmos.errors import ConfigurationError, check_choice, unknown
from paretocosmos.io.files import check_depth, one_line, user_path
from paretocosmos.io.formatting import sanitize_line
from paretocosmos.io.schema import MOST, SETTINGS
from paretocosmos.io.schema.models import ByName, Large, Model, NonEmpty, Shows, mistakes_in
from paretocosmos.paper.published import format_value, get_paper_row, get_problem_defaults
from paretocosmos.registry import check_names, check_trust

FOLDER = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class Experiment:
    """One method on one problem with certain settings: a folder with a run for every seed.

    Attributes:
        problem: its name.
        method: its name, or a name of the paper for one with its conditioning.
        protocol: ``"paper"`` or ``"clean"``; the problem's default if `None`.
        settings: those that differ from the preset.
        seeds: a run for each.
        epochs: of a rehearsal; `None` for as many as the preset has.
        preset: the source of all other settings.
    """

    problem: str
    method: str
    protocol: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (1,)
    epochs: int | None = None
    preset: str = "paper"

    @property
    def name(self) -> str:
        """Name of the experiment, the same in all recipes; also its folder below ``cells``.

        >>> Experiment("adult", "cosmos", "paper", {"penalty": 0.1}).name
        'adult-paper/cosmos-penalty_0.1'
        >>> Experiment("adult", "linear", preset="default").name
        'adult/default-linear'
        """
        # a protocol that a recipe does not name is the problem's own, and not part of the folder
        benchmark = [self.problem] if self.protocol is None else [self.problem, self.protocol]
        # 12 digits tell settings apart that six, as they are shown, do not
        texts = {k: format_value(v, between="_", digits=".12") for k, v in self.settings.items()}
        # the paper's preset goes without saying in a reproduction of the paper
        preset = [] if self.preset == "paper" else [self.preset]
        # sorted: the order in which a recipe lists settings must not make another folder
        training = [*preset, self.method, *(f"{key}_{texts[key]}" for key in sorted(texts))]
        # letters that a file system may refuse, such as the colon of a name of one's own
        return "/".join(re.sub(r"[^\w.-]+", "-", "-".join(p)) for p in (benchmark, training))

    @property
    def asked(self) -> dict[str, Any]:
        """Settings that do not depend on the data: the paper's, its own, and a rehearsal's epochs.

        What the default preset sets follows from the data.

        >>> Experiment("adult", "cosmos", settings={"alpha": 1.2}, epochs=1).asked["penalty"]
        0.01
        """
        usual = get_paper_settings(self.problem, self.method) if self.preset == "paper" else {}
        return usual | self.changed

    @property
    def changed(self) -> dict[str, Any]:
        """Its own settings, and a rehearsal's epochs."""
        return dict(self.settings) | ({} if self.epochs is None else {"epochs": self.epochs})

    def folder(self, out: Path) -> Path:
        """Return the folder of its runs, below that of a reproduction, with ``seed-SEED``.

        >>> Experiment("adult", "cosmos", epochs=1).folder(Path("out")).as_posix()
        'out/rehearsal-1/cells/adult/cosmos'
        """
        return _get_root(out, self.epochs) / "cells" / self.name

    def runs(self, out: Path) -> dict[int, Path]:
        """Return the run folder of every seed."""
        return {seed: self.folder(out) / f"seed-{seed}" for seed in self.seeds}


@dataclass(frozen=True)
class Recipe:
    """The experiments that make a table or a figure of the paper.

    Attributes:
        name: of its file.
        title: what it is.
        section: where the paper has it.
        shows: what is drawn from it, one of `SHOWS`.
        experiments: in the order in which they are trained.
        epochs: of a rehearsal; `None` for the real thing.
    """

    name: str
    title: str
    section: str
    shows: str
    experiments: tuple[Experiment, ...]
    epochs: int | None = None

    def root(self, out: Path) -> Path:
        """Return the folder of the results: the given one, or for a rehearsal one inside of it."""
        return _get_root(out, self.epochs)

    def rehearsal(self, epochs: int | None) -> "Recipe":
        """Return the recipe with that many epochs, as a rehearsal; `None` changes nothing."""
        if epochs is None:
            return self
        if not 1 <= epochs <= MOST:
            bound = "at least 1" if epochs < 1 else f"at most {MOST:,}"
            raise ConfigurationError(f"`epochs` must be {bound}, found {epochs}")
        experiments = tuple(replace(experiment, epochs=epochs) for experiment in self.experiments)
        return replace(self, experiments=experiments, epochs=epochs)

    def with_seeds(self, seeds: Sequence[int] | None) -> "Recipe":
        """Return the recipe with other seeds; `None` changes nothing."""
        if seeds is None:
            return self
        experiments = tuple(replace(e, seeds=tuple(seeds)) for e in self.experiments)
        return replace(self, experiments=experiments)

    def compares(self, experiment: Experiment) -> bool:
        """Return whether the paper has a number to compare with an experiment's.

        Variations are for each other's sake, and other images have numbers of their own; faces are
        compared with whatever settings.
        """
        in_paper = not experiment.settings or self.shows == "celeba"
        return in_paper and experiment.preset == "paper"

    def paper_volume(self, experiment: Experiment) -> float | None:
        """Return the hypervolume that the paper prints for an experiment, under its own protocol.

        >>> recipe = load_recipe("table_1")
        >>> [recipe.paper_volume(experiment) for experiment in recipe.only(["compas", "cosmos"])]
        [3.72, None]
        """
        in_paper = experiment.protocol != "clean" and self.compares(experiment)
        if self.epochs is not None or not in_paper:
            return None
        # a rehearsal and the clean protocol have no number in print
        row = get_paper_row(experiment.problem, experiment.method)
        return None if row is None else row["hypervolume"]

    def only(self, names: Sequence[str]) -> tuple[Experiment, ...]:
        """Return the experiments of these problems, methods and protocols; all if none is named.

        Names of one kind are alternatives; of several kinds, an experiment must fit all.
        """
        selected = self.experiments
        for kind in ("problem", "method", "protocol"):
            # a kind of which nothing is named is not restricted
            wanted = {*names} & {getattr(experiment, kind) for experiment in self.experiments}
            if wanted:
                selected = tuple(e for e in selected if getattr(e, kind) in wanted)
        choices = {
            name for e in self.experiments for name in (e.problem, e.method, e.protocol) if name
        }
        # all mistakes in one answer, as in a recipe's file
        mistakes = [
            unknown("problem or method", n, sorted(choices)) for n in names if n not in choices
        ]
        if mistakes:
            raise ConfigurationError("; ".join(map(str, mistakes)))
        if not selected:
            raise ConfigurationError(
                f"`{self.name}` has no experiment for all of {', '.join(names)} together: "
                "name fewer"
            )
        return selected


def _check_distinct(values: list[Any]) -> list[Any]:
    # an entry twice is more likely a slip than a wish to train it twice
    for value, count in Counter(values).items():
        if count > 1:
            raise ValueError(f"each entry once, found `{value}` {count} times")
    return values


def _check_tables(grids: object) -> object:
    if not (isinstance(grids, list) and grids):
        raise ValueError("a table or several: begin each with [[grid]]")
    return grids


Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(pattern=r"\S")]  # a title of spaces would leave a heading empty
# The limit keeps a hostile or mistaken file from asking for millions of checks.
Few = Field(min_length=1, max_length=SETTINGS)
Names = Annotated[list[Name], Few, AfterValidator(_check_distinct)]
Seeds = Annotated[list[Large], Few, AfterValidator(_check_distinct)]
Protocols = Annotated[list[Literal["paper", "clean"]], Few, AfterValidator(_check_distinct)]


# Unknown keys are mistakes here: a misspelt `setings` would silently train the defaults.
class Grid(Model, extra="forbid"):
    """A grid of problems, protocols, methods and varied settings: an experiment for each point."""

    preset: Literal["paper", "default"] = "paper"
    problems: Names
    protocols: Protocols | None = None
    methods: Names
    seeds: Seeds | None = None
    settings: ByName[Any] = Field(default_factory=dict)
    vary: ByName[NonEmpty[Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_count(self) -> "Grid":
        # counted before anything is built: a few lines can ask for billions
        lists = (self.problems, self.protocols or "-", self.methods, *self.vary.values())
        count = prod(len(entries) for entries in lists)
        if count > SETTINGS:
            raise ValueError(f"at most {SETTINGS} experiments, found {count}")
        return self


class RecipeFile(Model, extra="forbid"):
    """Content of a recipe's file."""

    title: Text
    section: Text
    shows: Shows
    seeds: Seeds
    grid: Annotated[list[Grid], Field(max_length=SETTINGS), BeforeValidator(_check_tables)]


def parse_recipe(file: str, text: str, trust: Collection[str] = ()) -> RecipeFile:
    """Parse and check a recipe; mistakes in its form are reported at once, then those of names.

    Args:
        file: its name in an error.
        text: TOML.
        trust: packages and modules whose code it may name.
    """
    try:
        content = tomllib.loads(text)
        check_depth(content)
        str(content)  # which refuses a number of thousands of digits
    except (RecursionError, ValueError) as error:
        why = one_line(error)
        raise ConfigurationError(
            f"`{file}` is not TOML: {why[:1].lower()}{why[1:]}; strings need quotes, lists need "
            "brackets"
        ) from error
    try:
        recipe = RecipeFile.model_validate(content)
    except ValidationError as error:
        mistakes = [text for _, text in mistakes_in(error, RecipeFile)]
        raise _describe_mistakes(file, mistakes) from error
    third_party = [
        (kind, name)
        for grid in recipe.grid
        for kind, names in (("problems", grid.problems), ("methods", grid.methods))
        for name in names
        if ":" in name
    ]
    # nothing that a file names is imported before it is trusted
    check_names(third_party, file=file, trust=check_trust(trust))
    mistakes = [
        text for index, grid in enumerate(recipe.grid) for text in _find_mistakes(grid, index)
    ]
    if mistakes:
        raise _describe_mistakes(file, list(map(sanitize_line, mistakes)))
    return recipe


def _describe_mistakes(file: str, mistakes: Sequence[str]) -> ConfigurationError:
    count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return ConfigurationError(f"`{file}` has {count}: {'; '.join(mistakes)}")


def _find_mistakes(grid: Grid, index: int) -> Iterator[str]:
    """Yield unknown names, and settings that are given twice.

    Other mistakes in settings are found by the experiment that has them, before it trains.
    """
    for kind, names, more in (
        ("problems", grid.problems, ()),
        ("methods", grid.methods, get_pairs()),
    ):
        builtin = [*registry.names(kind), *more]
        for name in names:
            try:
                if ":" in name:
                    registry.find(kind, name)  # raises where it cannot be imported
                elif name not in builtin:
                    raise unknown(kind.removesuffix("s"), name, builtin)
            except ConfigurationError as error:
                yield f"`grid[{index}].{kind}`: {error}"
    for key in sorted(grid.settings.keys() & grid.vary.keys()):
        yield f"`grid[{index}].vary.{key}`: it is in `settings` too, leave one out"


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with this package.

    >>> "table_1" in recipe_names()
    True
    """
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_recipe(name: str | Path, *, trust: Collection[str] = ()) -> Recipe:
    """Load a recipe by its name, or from a TOML file; every mistake in it is reported at once.

    Args:
        name: one of `recipe_names`, or a path that ends in ``.toml``.
        trust: packages and modules whose code such a file may name, as ``["my_package"]``.

    >>> len(load_recipe("table_1").experiments)
    45
    """
    if not str(name).endswith(".toml"):
        check_choice("recipe", str(name), recipe_names())
        path, file = FOLDER / f"{name}.toml", f"{name}.toml"
    else:
        path = user_path(name)
        file = str(path)
        # both would keep their state in the same NAME.json
        if path.stem in recipe_names():
            raise ConfigurationError(
                f"`{path.stem}` is a built-in recipe with its own results: give the "
                f"file `{path}` another name"
            )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        # the text of an OSError repeats the path, and that of the other is about bytes
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigurationError(
            f"the recipe `{path}` cannot be read: {why}; name a file, or one of "
            f"{', '.join(recipe_names())}"
        ) from error
    return _build_recipe(path.stem, parse_recipe(file, text, trust))


def _get_root(out: Path, epochs: int | None) -> Path:
    """Return the folder of a reproduction, or that of its rehearsal inside of it."""
    return out if epochs is None else out / f"rehearsal-{epochs}"


def _build_recipe(name: str, file: RecipeFile) -> Recipe:
    """Build the experiments of all grids; one that is in two has the seeds of both."""
    # by name, since with a value of `vary` that is the paper's an experiment is in two grids
    experiments: dict[str, Experiment] = {}
    for grid in file.grid:
        combinations = itertools.product(
            grid.problems,
            grid.protocols or (None,),
            grid.methods,
            itertools.product(*grid.vary.values()),
        )
        for problem, protocol, method, values in combinations:
            settings = grid.settings | dict(zip(grid.vary, values, strict=True))
            defaults = get_problem_defaults(problem)
            defaults |= get_paper_settings(problem, method) if grid.preset == "paper" else {}
            # a setting that is the paper's makes no other experiment, so that recipes share runs
            changed = {key: value for key, value in settings.items() if defaults.get(key) != value}
            experiment = Experiment(problem, method, protocol, changed, preset=grid.preset)
            before = experiments[experiment.name].seeds if experiment.name in experiments else ()
            seeds = dict.fromkeys([*before, *(grid.seeds or file.seeds)])
            experiments[experiment.name] = replace(experiment, seeds=tuple(seeds))
    return Recipe(name, file.title, file.section, file.shows, tuple(experiments.values()))
