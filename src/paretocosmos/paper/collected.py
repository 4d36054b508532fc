"""`collect`: what a recipe gave, all its cells beside the paper's numbers, as one value."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from paretocosmos.errors import RunError
from paretocosmos.io.files import read_json
from paretocosmos.io.schema.collected import (
    CellResult,
    ClaimResult,
    RecipeResult,
    Spent,
    check_collected,
)
from paretocosmos.io.schema.models import mistakes_in, shown
from paretocosmos.io.signatures import read_public_key
from paretocosmos.io.trust import check_names, check_trust
from paretocosmos.paper._against import against_paper
from paretocosmos.paper._claim_ablation import ablation_claims
from paretocosmos.paper._claims import convergence_claim, paper_claim
from paretocosmos.paper._numbers import cell_result
from paretocosmos.paper.recipe import Recipe, load_recipe, recipe_names

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["collect", "found_in", "in_order", "read_collected"]

FORMAT = 1
"""Raised when a file of today could not be read by yesterday's code."""

# As they follow each other in the paper; others come after them.
ORDER = (
    *("table_1", "table_1_text", "figure_vs_sota", "figure_vs_single_task"),
    *("figure_convergence", "figure_ablation", "figure_ablation_text", "table_celeba"),
    *("figure_celeba", "celeba_objectives", "celeba_small", "intuition", "study_fronts"),
)

# By what a recipe shows, who judges what the paper says of it.
JUDGES: dict[str, Callable[[Sequence[CellResult]], list[ClaimResult]]] = {
    "table": paper_claim,
    "ablation": ablation_claims,
    "convergence": convergence_claim,
}


def collect(
    recipe: Recipe, out: Path, *, trust: Collection[str] = (), verify: str | Path | None = None
) -> RecipeResult:
    """The numbers of a recipe from its run folders.

    Args:
        recipe: with the seeds and epochs that were asked for.
        out: the folder of the reproduction.
        trust: packages and modules whose code its runs may name.
        verify: the file of the public key that all of its runs must be signed with.
    """
    try:
        key = None if verify is None else read_public_key(verify)
        return _collected(recipe, out, check_trust(trust), key)
    except ValidationError as error:
        raise RunError(
            f"`{recipe.root(out)}` has a result that no report can show for `{recipe.name}`: "
            f"{mistakes_in(error, RecipeResult)[0][1]}; fix that, or train it again"
        ) from error


def _collected(
    recipe: Recipe, out: Path, trust: Sequence[str], key: "Ed25519PublicKey | None"
) -> RecipeResult:
    cells = []
    for cell in recipe.cells:
        course = recipe.shows == "convergence"
        told = cell_result(cell, out, course=course, trust=trust, verify=key)
        against = against_paper(told) if recipe.compares(cell) else None
        cells.append(told.model_copy(update={"against": against}))
    done = [cell.seconds for cell in cells if cell.seeds]
    if not done:
        raise RunError(
            f"`{recipe.root(out)}` has no finished run of `{recipe.name}`: train it with "
            f"`paretocosmos reproduce {_called(recipe)}`{_elsewhere(out, recipe)}"
        )
    # a rehearsal says nothing of the paper
    judge = None if recipe.epochs is not None else JUDGES.get(recipe.shows)
    return RecipeResult(
        format=FORMAT,
        recipe=recipe.name,
        title=recipe.title,
        section=recipe.section,
        shows=recipe.shows,
        rehearsal=recipe.epochs,
        cells=cells,
        seconds=Spent(
            training=sum(seconds.all_training for seconds in done),
            preparing=sum(seconds.all_preparing for seconds in done),
            evaluating=sum(seconds.all_evaluating for seconds in done),
        ),
        claims=[] if judge is None else judge(cells),
    )


def read_collected(path: Path, *, trust: Collection[str] = ()) -> RecipeResult:
    """A value that `collect` gave, from a file.

    Args:
        path: the file.
        trust: packages and modules whose code it may name, as ``["my_package"]``.
    """
    content = read_json(path)
    if content.get("format") != FORMAT:
        raise RunError(
            f"`{path}` was not written by this version of `paretocosmos report` (format "
            f"{shown(content.get('format'))}, here {FORMAT}): write it again from the run folders"
        )
    result = check_collected(content, path)
    named = [("problems", cell.problem) for cell in result.cells]
    check_names(named, file=path, trust=check_trust(trust))
    return result


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
