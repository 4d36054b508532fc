"""A recipe: the experiments that make a table or a figure of the paper."""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.config.settings import get_paper_settings
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.files import user_path
from paretocosmos.io.schema import MOST
from paretocosmos.paper.published import format_value, get_paper_row, get_problem_defaults

if TYPE_CHECKING:
    from paretocosmos.paper.recipe_file import RecipeFile

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
    from paretocosmos.paper.recipe_file import parse_recipe  # pydantic, which listing needs not

    if not str(name).endswith(".toml"):
        if name not in recipe_names():
            raise unknown("recipe", str(name), recipe_names())
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


def _build_recipe(name: str, file: "RecipeFile") -> Recipe:
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
