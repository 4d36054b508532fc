"""What a recipe gave: all its cells as one value, beside the paper's numbers."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from paretocosmos.errors import RunError
from paretocosmos.io.files import read_json
from paretocosmos.io.signatures import read_public_key
from paretocosmos.io.trust import check_names, check_trust
from paretocosmos.paper._against import against_paper
from paretocosmos.paper._claim import paper_claim
from paretocosmos.paper._claim_ablation import ablation_claims
from paretocosmos.paper._claim_convergence import convergence_claim
from paretocosmos.paper._numbers import cell_numbers
from paretocosmos.paper.recipe import Recipe, load_recipe, recipe_names

__all__ = ["collect", "found_in", "in_order", "read_collected"]

FORMAT = 1
"""Raised when a file of today could not be read by yesterday's code."""

# As they follow each other in the paper; others come after them.
ORDER = (
    *("table_1", "table_1_text", "figure_vs_sota", "figure_vs_single_task"),
    *("figure_convergence", "figure_ablation", "figure_ablation_text", "table_celeba"),
    *("figure_celeba", "celeba_objectives", "celeba_small", "intuition"),
)


def collect(
    recipe: Recipe,
    out: Path,
    *,
    trust: Collection[str] = (),
    verify: str | Path | None = None,
) -> dict[str, Any]:
    """The numbers of a recipe from its run folders: a JSON value.

    Args:
        recipe: with the seeds and epochs that were asked for.
        out: the folder of the reproduction.
        trust: packages and modules whose code its runs may name.
        verify: the file of the public key that all of its runs must be signed with.

    Returns:
        `recipe`, `title`, `section`, `shows`, `rehearsal` (epochs, or `None`), `cells` (each with
        what the paper prints of it under `against`), `seconds` (what the time went into) and
        `claims` (what the paper says of it, and whether that is so).
    """
    cells = []
    key = None if verify is None else read_public_key(verify)
    for cell in recipe.cells:
        shows = recipe.shows == "convergence"
        told = cell_numbers(cell, out, course=shows, trust=check_trust(trust), verify=key)
        # variations are for each other's sake, other images have numbers of their own; faces are
        # compared with whatever settings
        comparable = not cell.settings or recipe.shows == "celeba"
        cells.append(told | {"against": against_paper(told) if comparable else None})
    done = [cell for cell in cells if cell["seeds"]]
    if not done:
        raise RunError(
            f"`{recipe.root(out)}` holds no finished run of `{recipe.name}`: train it with "
            f"`paretocosmos reproduce {_called(recipe)}`{_elsewhere(out, recipe)}"
        )
    parts = ("training", "preparing", "evaluating")
    return {
        "format": FORMAT,
        "recipe": recipe.name,
        "title": recipe.title,
        "section": recipe.section,
        "shows": recipe.shows,
        "rehearsal": recipe.epochs,
        "cells": cells,
        "seconds": {part: sum(cell["seconds"][f"all_{part}"] for cell in done) for part in parts},
        "claims": _claims(recipe, cells),
    }


def read_collected(path: Path, *, trust: Collection[str] = ()) -> dict[str, Any]:
    """A value that `collect` gave, from a file.

    Args:
        path: the file.
        trust: packages and modules whose code it may name, as ``["my_package"]``.
    """
    from paretocosmos.io.schema.collected import check_collected
    from paretocosmos.io.schema.sentence import shown

    content: dict[str, Any] = dict(read_json(path))
    if content.get("format") != FORMAT:
        raise RunError(
            f"`{path}` does not hold what this version of `paretocosmos report` writes (format "
            f"{shown(content.get('format'))}, here {FORMAT}): write it again from the run folders"
        )
    named = [("problems", cell.problem) for cell in check_collected(content, path).cells]
    check_names(named, file=path, trust=check_trust(trust))
    return content


def _claims(recipe: Recipe, cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if recipe.epochs is not None:  # a rehearsal says nothing of the paper
        return []
    judges = {
        "table": paper_claim,
        "ablation": ablation_claims,
        "convergence": convergence_claim,
    }
    return judges[recipe.shows](cells) if recipe.shows in judges else []


def _called(recipe: Recipe) -> str:
    return recipe.name if recipe.name in recipe_names() else f"{recipe.name}.toml"


def _elsewhere(out: Path, recipe: Recipe) -> str:
    """What else is there that one may have meant."""
    rehearsals = sorted(path.name.partition("-")[2] for path in out.glob("rehearsal-*/"))
    if recipe.epochs is None and rehearsals:
        return f"; there is a rehearsal, shown with epochs={rehearsals[0]}"
    return ""


def found_in(out: Path, epochs: int | None) -> list[Recipe]:
    """The recipes of this package of which a folder has results, in the order of the paper.

    They were begun there, or other recipes have trained all of their cells.
    """
    made = [load_recipe(name).rehearsal(epochs) for name in in_order(recipe_names())]
    return [recipe for recipe in made if _is_there(recipe, out)]


def in_order(names: Sequence[str]) -> list[str]:
    """Names of recipes in the order of the paper.

    >>> in_order(["mine", "intuition", "table_1"])
    ['table_1', 'intuition', 'mine']
    """
    return [*(name for name in ORDER if name in names), *(n for n in names if n not in ORDER)]


def _is_there(recipe: Recipe, out: Path) -> bool:
    begun = (recipe.root(out) / f"{recipe.name}.json").exists()
    runs = [folder for cell in recipe.cells for folder in cell.runs(out).values()]
    finished = [(folder / "front.json").exists() for folder in runs]
    return any(finished) if begun else all(finished)
