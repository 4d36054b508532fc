"""From what was collected of a recipe to a section: its claims, tables, pictures and notes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap

from paretocosmos.io.schema.collected import CellResult, JudgedRow, RecipeResult
from paretocosmos.paper.names import device_title, method_title, set_title, settings_text, variation
from paretocosmos.paper.report import _table_others as others
from paretocosmos.paper.report._parts import Claim, Picture, Section, Table
from paretocosmos.paper.report._table_1 import table_1
from paretocosmos.paper.report._table_faces import tables_of_faces
from paretocosmos.paper.report._table_study import table_of_study
from paretocosmos.paper.report._texts import duration

__all__ = ["section"]

TABLES: dict[str, Callable[[Sequence[CellResult]], list[Table]]] = {
    "table": table_1,
    "fronts": others.table_of_fronts,
    "convergence": others.table_of_convergence,
    "ablation": others.table_of_ablation,
    "celeba": tables_of_faces,
    "intuition": others.table_of_intuition,
    "study": table_of_study,
}


def section(result: RecipeResult, pictures: Sequence[Picture], known: Mapping[str, str]) -> Section:
    """A recipe in words, tables and pictures.

    Args:
        result: what `collect` gave.
        pictures: its figures.
        known: cells of which another recipe has told the time, and its name.
    """
    epochs = result.rehearsal
    mark, warning = "", ""
    if epochs is not None:
        many = f"{epochs} epoch{'s' * (epochs > 1)}"
        mark = f" (rehearsal, {many})"
        warning = (
            f"Rehearsal: {many} instead of the paper's. The numbers say nothing about a method."
        )
    tables = TABLES[result.shows](result.cells)
    notes = (*_undone(result.cells), _time(result, known), _about(result.done))
    return Section(
        name=result.recipe,
        title=result.title,
        source=result.section,
        warning=warning,
        claims=tuple(_claims(result)) if epochs is None else (),
        tables=tuple(replace(table, title=table.title + mark) for table in tables),
        pictures=tuple(pictures),
        notes=(*notes, *_caveats(result.done)),
    )


def _claims(result: RecipeResult) -> Iterator[Claim]:
    """What the paper says and what is found."""
    for claim in result.claims:
        judged = [row for row in claim.rows if isinstance(row, JudgedRow)]
        details = tuple(f"{set_title(row)}: {row.sentence}." for row in judged)
        yield Claim(claim.claim, claim.sentence, details)


def _undone(cells: Sequence[CellResult]) -> Iterator[str]:
    """What failed and why, and which seeds are missing where."""
    missing: dict[tuple[int, ...], dict[str, list[str]]] = {}
    for cell in cells:
        name = f"{method_title(cell.method)} on {set_title(cell)}"
        if cell.error is not None:
            yield f"Failed: {name} (`{cell.name}`): {cell.error}"
        if cell.missing:
            more = settings_text(variation(cell))
            missing.setdefault(tuple(cell.missing), {}).setdefault(name, []).append(more)
    for seeds, names in missing.items():
        every = sum(map(len, names.values())) == len(cells)
        where = "all cells" if every else "; ".join(starmap(_with_settings, names.items()))
        listed = ", ".join(map(str, seeds))
        each = "each of " * (len(names) > 1 and not every)
        yield f"Missing: seed{'s' * (len(seeds) > 1)} {listed} of {each}{where}."


def _with_settings(name: str, settings: Sequence[str]) -> str:
    """A cell, or some that differ in their settings alone; many are counted.

    >>> _with_settings("COSMOS on Adult", ["penalty 1", ""])
    'COSMOS on Adult (penalty 1); COSMOS on Adult'
    >>> _with_settings("COSMOS on Adult", ["penalty 1", "penalty 2", "penalty 3", "penalty 4"])
    'COSMOS on Adult (4 settings)'
    """
    shown = settings if len(settings) < 4 else [f"{len(settings)} settings"]
    return "; ".join(f"{name} ({more})" if more else name for more in shown)


def _time(result: RecipeResult, known: Mapping[str, str]) -> str:
    """What its runs took, unless they are all those of other recipes."""
    if all(cell.name in known for cell in result.done):
        recipes = dict.fromkeys(known[cell.name] for cell in result.done)
        others = " and ".join(f"`{name}`" for name in recipes)
        return f"Time: included in {others}, which has the same runs."
    told = ", ".join(f"{duration(seconds)} {part}" for part, seconds in result.seconds)
    return f"Time: {told}."


def _about(done: Sequence[CellResult]) -> str:
    """Where the numbers were made; every answer once."""

    def every(key: str) -> str:
        answers = (str(one) for cell in done for one in getattr(cell.made, key))
        return " and ".join(dict.fromkeys(map(device_title, answers))) or "unknown"

    return (
        f"Produced by paretocosmos {every('version')} (source hash {every('source')}) on "
        f"{every('device')}, threads {every('threads')}, torch {every('torch')}, precision "
        f"{every('precision')}, engine {every('engine')}, seeds trained together: "
        f"{every('seeds_together')}."
    )


def _caveats(done: Sequence[CellResult]) -> list[str]:
    """What images are, and what is to be known of a set, each once."""
    images = [f"{set_title(c, protocol=False)}: {one}." for c in done for one in c.made.images]
    return list(dict.fromkeys([*images, *(one for cell in done for one in cell.made.caveats)]))
