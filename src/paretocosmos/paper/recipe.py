"""A recipe: the cells that make a table or a figure of the paper, read from a TOML file."""

import dataclasses
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.config.settings import paper_settings
from paretocosmos.errors import ConfigurationError, unknown
from paretocosmos.io.files import user_path
from paretocosmos.io.schema import MOST, PROTOCOLS
from paretocosmos.paper._recipe_file import read_recipe
from paretocosmos.paper.names import defaults_of, value_text
from paretocosmos.paper.published import paper_row

if TYPE_CHECKING:
    from paretocosmos.io.schema.recipe import RecipeFile

__all__ = ["Cell", "Recipe", "load_recipe", "recipe_names", "root_of"]


@dataclass(frozen=True)
class Cell:
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
        """What it is called, the same in all recipes; also its folder below ``cells``.

        >>> Cell("adult", "cosmos", "paper", {"penalty": 0.1}).name
        'adult-paper/cosmos-penalty_0.1'
        >>> Cell("adult", "linear", preset="default").name
        'adult/default-linear'
        """
        first = self.problem if self.protocol is None else f"{self.problem}-{self.protocol}"
        texts = {k: value_text(v, between="_", digits=".12") for k, v in self.settings.items()}
        varied = [f"{key}_{texts[key]}" for key in sorted(texts)]
        preset = [] if self.preset == "paper" else [self.preset]
        return f"{_plain(first)}/{_plain('-'.join([*preset, self.method, *varied]))}"

    @property
    def asked(self) -> dict[str, Any]:
        """All that is known to be set: the paper's settings, its own, and a rehearsal's epochs.

        What the default preset sets follows from the data.

        >>> Cell("adult", "cosmos", settings={"alpha": 1.2}, epochs=1).asked["penalty"]
        0.01
        """
        usual = paper_settings(self.problem, self.method) if self.preset == "paper" else {}
        return (
            usual | dict(self.settings) | ({} if self.epochs is None else {"epochs": self.epochs})
        )

    def folder(self, out: Path) -> Path:
        """Where its runs are, each in ``seed-SEED``, below the folder of a reproduction.

        >>> Cell("adult", "cosmos", epochs=1).folder(Path("out")).as_posix()
        'out/rehearsal-1/cells/adult/cosmos'
        """
        return root_of(out, self.epochs) / "cells" / self.name

    def runs(self, out: Path) -> dict[int, Path]:
        """The run folder of every seed."""
        return {seed: self.folder(out) / f"seed-{seed}" for seed in self.seeds}


@dataclass(frozen=True)
class Recipe:
    """What a table or a figure of the paper is made of.

    Attributes:
        name: of its file.
        title: what it is.
        section: where the paper has it.
        shows: what is drawn from it, one of `SHOWS`.
        cells: in the order in which they are trained.
        epochs: of a rehearsal; `None` for the real thing.
    """

    name: str
    title: str
    section: str
    shows: str
    cells: tuple[Cell, ...]
    epochs: int | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(cell.problem for cell in self.cells))

    @property
    def methods(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    def root(self, out: Path) -> Path:
        """Where all of it goes: the folder itself, or for a rehearsal one inside of it."""
        return root_of(out, self.epochs)

    def rehearsal(self, epochs: int | None) -> "Recipe":
        """The same with that many epochs, to see that everything runs; `None` changes nothing."""
        if epochs is None:
            return self
        if not 1 <= epochs <= MOST:
            bound = "at least 1" if epochs < 1 else f"at most {MOST:,}"
            raise ConfigurationError(f"`epochs` must be {bound}, found {epochs}")
        cells = tuple(dataclasses.replace(cell, epochs=epochs) for cell in self.cells)
        return dataclasses.replace(self, cells=cells, epochs=epochs)

    def with_seeds(self, seeds: Sequence[int] | None) -> "Recipe":
        """The same with other seeds; `None` changes nothing."""
        if seeds is None:
            return self
        cells = tuple(dataclasses.replace(cell, seeds=tuple(seeds)) for cell in self.cells)
        return dataclasses.replace(self, cells=cells)

    def compares(self, cell: Cell) -> bool:
        """Return whether the paper has a number to compare with a cell's.

        Variations are for each other's sake, and other images have numbers of their own; faces are
        compared with whatever settings.
        """
        return self.shows != "study" and (not cell.settings or self.shows == "celeba")

    def paper_volume(self, cell: Cell) -> float | None:
        """Return the hypervolume that the paper prints for a cell, under its own protocol.

        >>> recipe = load_recipe("table_1")
        >>> [recipe.paper_volume(cell) for cell in recipe.only(["compas", "cosmos"])]
        [3.72, None]
        """
        if self.epochs is not None or cell.protocol == "clean" or not self.compares(cell):
            return None
        row = paper_row(cell.problem, cell.method)
        return None if row is None else row["hypervolume"]

    def only(self, names: Sequence[str]) -> tuple[Cell, ...]:
        """The cells of these problems, methods and protocols; all of them if none is named.

        Several problems are any of them, and so are several methods; a problem and a method are
        both.
        """
        has = {"problem": self.problems, "method": self.methods}
        has["protocol"] = tuple(p for p in PROTOCOLS if any(c.protocol == p for c in self.cells))
        every = [name for known in has.values() for name in known]
        wrong = [name for name in names if name not in every]
        if wrong:
            each = (str(unknown("problem or method", name, every)) for name in wrong)
            raise ConfigurationError("; ".join(each))
        asked = {kind: {n for n in names if n in known} for kind, known in has.items()}
        found = tuple(
            cell
            for cell in self.cells
            if all(not wanted or getattr(cell, kind) in wanted for kind, wanted in asked.items())
        )
        if not found:
            raise ConfigurationError(
                f"`{self.name}` has no cell for all of {', '.join(names)} together: name fewer"
            )
        return found


def recipe_names() -> list[str]:
    """The recipes that come with this package.

    >>> "table_1" in recipe_names()
    True
    """
    return sorted(path.name.removesuffix(".toml") for path in _ours() if path.name[-5:] == ".toml")


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
        return _made(path.stem, read_recipe(str(path), text, trust))
    if name not in recipe_names():
        raise unknown("recipe", str(name), recipe_names())
    (file,) = (path for path in _ours() if path.name == f"{name}.toml")
    return _made(str(name), read_recipe(f"{name}.toml", file.read_text(encoding="utf-8")))


def root_of(out: Path, epochs: int | None) -> Path:
    """The folder of a reproduction, or that of its rehearsal inside of it."""
    return out if epochs is None else out / f"rehearsal-{epochs}"


def _made(name: str, file: "RecipeFile") -> Recipe:
    cells: dict[str, Cell] = {}  # a value of `vary` may be the paper's, and so another grid's cell
    for grid in file.grid:
        places = itertools.product(
            grid.problems,
            grid.protocols or (None,),
            grid.methods,
            itertools.product(*grid.vary.values()),
        )
        for problem, protocol, method, values in places:
            given = grid.settings | dict(zip(grid.vary, values, strict=True))
            usual = defaults_of(problem)
            usual |= paper_settings(problem, method) if grid.preset == "paper" else {}
            own = {key: value for key, value in given.items() if usual.get(key) != value}
            cell = Cell(problem, method, protocol, own, preset=grid.preset)
            before = cells[cell.name].seeds if cell.name in cells else ()
            seeds = dict.fromkeys([*before, *(grid.seeds or file.seeds)])
            cells[cell.name] = dataclasses.replace(cell, seeds=tuple(seeds))
    return Recipe(name, file.title, file.section, file.shows, tuple(cells.values()))


def _ours() -> list[Any]:
    return list((resources.files("paretocosmos") / "paper" / "recipes").iterdir())


def _plain(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text)
