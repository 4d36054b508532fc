"""A recipe: the experiments that make a table or a figure of the paper, read from a TOML file."""

import dataclasses
import itertools
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos import registry
from paretocosmos.config.presets import NETWORKS
from paretocosmos.config.settings import (
    distribute,
    pair_of,
    pairs,
    paper_network,
    paper_settings,
)
from paretocosmos.config.training import Training
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.files import check_depth, one_line, user_path
from paretocosmos.io.schema import MOST, PROTOCOLS
from paretocosmos.io.trust import check_names, check_trust
from paretocosmos.paper.published import format_value, get_paper_row, get_problem_defaults

if TYPE_CHECKING:
    from paretocosmos.paper.schema import Grid, RecipeFile


def read_recipe(file: str, text: str, trust: Collection[str] = ()) -> "RecipeFile":
    """Read and check a recipe; every mistake in it is reported at once.

    Args:
        file: its name in an error.
        text: TOML.
        trust: packages and modules whose code it may name.
    """
    from paretocosmos.io.formatting import sanitize_line
    from paretocosmos.paper.schema import check_recipe

    try:
        content = tomllib.loads(text)
        check_depth(content)
    except (RecursionError, ValueError) as error:  # ValueError: a number of too many digits, too
        why = one_line(error)
        raise ConfigurationError(
            f"`{file}` is not TOML: {why[:1].lower()}{why[1:]}; strings need quotes, lists need "
            "brackets"
        ) from error
    recipe, mistakes = check_recipe(content)
    check_names(_third_party_names(recipe.grid), file=file, trust=check_trust(trust))
    for index, grid in enumerate(recipe.grid):
        mistakes += map(sanitize_line, _find_mistakes(grid, index))
    mistakes += map(sanitize_line, _find_duplicates(recipe.grid))
    if mistakes:
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise ConfigurationError(f"`{file}` has {count}: {'; '.join(mistakes)}")
    return recipe


def _third_party_names(grids: Sequence["Grid"]) -> Iterator[tuple[str, str]]:
    """Yield the third-party problems and methods that a recipe names."""
    for grid in grids:
        for kind, names in (("problems", grid.problems), ("methods", grid.methods)):
            yield from ((kind, name) for name in names if ":" in name)


def _find_mistakes(grid: "Grid", index: int) -> Iterator[str]:
    """Yield unknown names, settings that are not accepted, and settings given twice."""
    usable: dict[str, list[str]] = {"problems": [], "methods": []}
    for key, names, more in (("problems", grid.problems, ()), ("methods", grid.methods, pairs())):
        builtin = [*registry.names(key), *more]
        for name in names:
            try:
                if ":" in name:
                    registry.find(key, name)
                elif name not in builtin:
                    raise unknown(key.removesuffix("s"), name, builtin)
                usable[key].append(name)
            except ConfigurationError as error:
                yield f"`grid[{index}].{key}`: {error}"
    mistakes: dict[str, str] = {}  # each with the first experiment that has it
    for problem in usable["problems"]:
        for method in usable["methods"]:
            for path, key, value in _iterate_settings(grid):
                for mistake in _find_setting_mistakes(grid.preset, problem, method, key, value):
                    name = f"`{method}` on `{problem}`"
                    sentence = f"`grid[{index}].{path}` of {name}: {mistake}"
                    mistakes.setdefault(f"{path} {mistake}", sentence)
    yield from mistakes.values()
    for key in sorted(grid.settings.keys() & grid.vary.keys()):
        yield f"`grid[{index}].vary.{key}`: it is in `settings` too, leave one out"


def _iterate_settings(grid: "Grid") -> Iterator[tuple[str, str, Any]]:
    """Yield every setting of a grid, once per value."""
    yield from ((f"settings.{key}", key, value) for key, value in grid.settings.items())
    for key, values in grid.vary.items():
        yield from ((f"vary.{key}", key, value) for value in values)


def _find_setting_mistakes(
    preset: str, problem: str, method: str, key: str, value: Any
) -> Iterator[str]:
    """Check that a setting is one of the problem, the method, the network or the training."""
    pair = pair_of(method)
    method_class = registry.find("methods", method if pair is None else pair[0])
    owners = {
        "training": Training,
        "method": method_class,
        "problem": registry.find("problems", problem),
    }
    network = {
        setting
        for role, kind in (("backbone", "backbones"), ("conditioning", "conditioning"))
        for name in _candidate_parts(preset, problem, role, pair)
        for setting in registry.parameters(registry.find(kind, name))
    }
    name = key.rpartition(".")[2]
    parameters = {name for owner in owners.values() for name in registry.parameters(owner)}
    if name not in parameters:
        if name not in network:
            yield str(unknown("setting", key, parameters | network))
        return
    try:
        changed = distribute({key: value}, owners)
        paper = paper_settings(problem, method) if preset == "paper" else {}
        usual = distribute(paper, owners, lenient=True)
        Training(**(usual["training"] | changed["training"]))
        method_class(**(usual["method"] | changed["method"]))
    except ConfigurationError as error:
        yield str(error)


def _candidate_parts(
    preset: str, problem: str, role: str, pair: tuple[str, str] | None
) -> list[str]:
    """Return the backbones or conditionings that a network may have, whatever the data."""
    if pair is not None and role == "conditioning":
        return [pair[1]]
    paper_part = paper_network(problem).get(role)
    if paper_part is not None and (preset == "paper" or role == "backbone"):
        return [paper_part]
    return [usual[role] for usual in NETWORKS[preset].values()]


def _find_duplicates(grids: Sequence["Grid"]) -> Iterator[str]:
    """Yield experiments that are in more than one grid."""
    seen: dict[tuple[Any, ...], int] = {}
    for index, grid in enumerate(grids):
        settings = str(sorted(grid.settings.items())), str(sorted(grid.vary.items()))
        protocols = grid.protocols or (None,)
        for problem, protocol, method in itertools.product(grid.problems, protocols, grid.methods):
            key = (problem, protocol, method, grid.preset, *settings)
            first = seen.setdefault(key, index)
            if first != index:
                yield f"`grid[{index}]`: `{method}` on `{problem}` is in `grid[{first}]` too"


@dataclass(frozen=True)
class Experiment:
    """One method on one problem with certain settings: a folder with a run for every seed.

    Attributes:
        problem: its name.
        method: its name, or a name of the paper for one with its conditioning.
        protocol: ``"paper"`` or ``"clean"``; the problem's default if `None`.
        settings: what is not as the preset has it.
        seeds: a run for each.
        epochs: of a rehearsal; `None` for as many as the preset has.
        preset: what the other settings are.
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
        first = self.problem if self.protocol is None else f"{self.problem}-{self.protocol}"
        texts = {k: format_value(v, between="_", digits=".12") for k, v in self.settings.items()}
        varied = [f"{key}_{texts[key]}" for key in sorted(texts)]
        preset = [] if self.preset == "paper" else [self.preset]
        return f"{_plain(first)}/{_plain('-'.join([*preset, self.method, *varied]))}"

    @property
    def asked(self) -> dict[str, Any]:
        """All that is known to be set: the paper's settings, its own, and a rehearsal's epochs.

        What the default preset sets follows from the data.

        >>> Experiment("adult", "cosmos", settings={"alpha": 1.2}, epochs=1).asked["penalty"]
        0.01
        """
        usual = paper_settings(self.problem, self.method) if self.preset == "paper" else {}
        return (
            usual | dict(self.settings) | ({} if self.epochs is None else {"epochs": self.epochs})
        )

    def folder(self, out: Path) -> Path:
        """Return the folder of its runs, below that of a reproduction, with ``seed-SEED``.

        >>> Experiment("adult", "cosmos", epochs=1).folder(Path("out")).as_posix()
        'out/rehearsal-1/cells/adult/cosmos'
        """
        return get_root(out, self.epochs) / "cells" / self.name

    def runs(self, out: Path) -> dict[int, Path]:
        """The run folder of every seed."""
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

    @property
    def problems(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(experiment.problem for experiment in self.experiments))

    @property
    def methods(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(experiment.method for experiment in self.experiments))

    def root(self, out: Path) -> Path:
        """Return the folder of the results: the given one, or for a rehearsal one inside of it."""
        return get_root(out, self.epochs)

    def rehearsal(self, epochs: int | None) -> "Recipe":
        """The same with that many epochs, to see that everything runs; `None` changes nothing."""
        if epochs is None:
            return self
        if not 1 <= epochs <= MOST:
            bound = "at least 1" if epochs < 1 else f"at most {MOST:,}"
            raise ConfigurationError(f"`epochs` must be {bound}, found {epochs}")
        experiments = tuple(
            dataclasses.replace(experiment, epochs=epochs) for experiment in self.experiments
        )
        return dataclasses.replace(self, experiments=experiments, epochs=epochs)

    def with_seeds(self, seeds: Sequence[int] | None) -> "Recipe":
        """The same with other seeds; `None` changes nothing."""
        if seeds is None:
            return self
        experiments = tuple(
            dataclasses.replace(experiment, seeds=tuple(seeds)) for experiment in self.experiments
        )
        return dataclasses.replace(self, experiments=experiments)

    def compares(self, experiment: Experiment) -> bool:
        """Return whether the paper has a number to compare with an experiment's.

        Variations are for each other's sake, and other images have numbers of their own; faces are
        compared with whatever settings.
        """
        return self.shows != "study" and (not experiment.settings or self.shows == "celeba")

    def paper_volume(self, experiment: Experiment) -> float | None:
        """Return the hypervolume that the paper prints for an experiment, under its own protocol.

        >>> recipe = load_recipe("table_1")
        >>> [recipe.paper_volume(experiment) for experiment in recipe.only(["compas", "cosmos"])]
        [3.72, None]
        """
        if (
            self.epochs is not None
            or experiment.protocol == "clean"
            or not self.compares(experiment)
        ):
            return None
        row = get_paper_row(experiment.problem, experiment.method)
        return None if row is None else row["hypervolume"]

    def only(self, names: Sequence[str]) -> tuple[Experiment, ...]:
        """The experiments of these problems, methods and protocols; all of them if none is named.

        Several problems are any of them, and so are several methods; a problem and a method are
        both.
        """
        has = {"problem": self.problems, "method": self.methods}
        has["protocol"] = tuple(
            p for p in PROTOCOLS if any(c.protocol == p for c in self.experiments)
        )
        every = [name for known in has.values() for name in known]
        wrong = [name for name in names if name not in every]
        if wrong:
            each = (str(unknown("problem or method", name, every)) for name in wrong)
            raise ConfigurationError("; ".join(each))
        asked = {kind: {n for n in names if n in known} for kind, known in has.items()}
        found = tuple(
            experiment
            for experiment in self.experiments
            if all(
                not wanted or getattr(experiment, kind) in wanted for kind, wanted in asked.items()
            )
        )
        if not found:
            raise ConfigurationError(
                f"`{self.name}` has no experiment for all of {', '.join(names)} together: "
                "name fewer"
            )
        return found


def recipe_names() -> list[str]:
    """The recipes that come with this package.

    >>> "table_1" in recipe_names()
    True
    """
    return sorted(
        path.name.removesuffix(".toml") for path in _builtin_files() if path.name[-5:] == ".toml"
    )


def load_recipe(name: str | Path, *, trust: Collection[str] = ()) -> Recipe:
    """A recipe by its name, or from a TOML file; every mistake in it is reported at once.

    Args:
        name: one of `recipe_names`, or a path that ends in ``.toml``.
        trust: packages and modules whose code such a file may name, as ``["my_package"]``.

    >>> recipe = load_recipe("table_1")
    >>> recipe.methods
    ('cosmos', 'phn_ls', 'phn_epo', 'single_task', 'pareto_mtl')
    """
    if str(name).endswith(".toml"):
        path = user_path(name)
        if path.stem in recipe_names():
            raise ConfigurationError(
                f"`{path.stem}` is a built-in recipe with its own results: give the "
                f"file `{path}` another name"
            )
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise ConfigurationError(
                f"the recipe `{path}` cannot be read: {why}; name a file, or one of "
                f"{', '.join(recipe_names())}"
            ) from error
        return _build_recipe(path.stem, read_recipe(str(path), text, trust))
    if name not in recipe_names():
        raise unknown("recipe", str(name), recipe_names())
    (file,) = (path for path in _builtin_files() if path.name == f"{name}.toml")
    return _build_recipe(str(name), read_recipe(f"{name}.toml", file.read_text(encoding="utf-8")))


def get_root(out: Path, epochs: int | None) -> Path:
    """Return the folder of a reproduction, or that of its rehearsal inside of it."""
    return out if epochs is None else out / f"rehearsal-{epochs}"


def _build_recipe(name: str, file: "RecipeFile") -> Recipe:
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
            defaults |= paper_settings(problem, method) if grid.preset == "paper" else {}
            changed = {key: value for key, value in settings.items() if defaults.get(key) != value}
            experiment = Experiment(problem, method, protocol, changed, preset=grid.preset)
            before = experiments[experiment.name].seeds if experiment.name in experiments else ()
            seeds = dict.fromkeys([*before, *(grid.seeds or file.seeds)])
            experiments[experiment.name] = dataclasses.replace(experiment, seeds=tuple(seeds))
    return Recipe(name, file.title, file.section, file.shows, tuple(experiments.values()))


def _builtin_files() -> list[Any]:
    return list((resources.files("paretocosmos") / "paper" / "recipes").iterdir())


def _plain(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text)
