"""What `report` ends with: what is there of each recipe, what was found, and where it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from paretocosmos.cli.output._console import wide

if TYPE_CHECKING:
    from paretocosmos.io.schema.collected import RecipeResult

__all__ = ["print_report"]


def print_report(results: "Sequence[RecipeResult]", folder: Path) -> None:
    """A few lines for each recipe.

    Args:
        results: what `collect` gave for each recipe.
        folder: where the report is.
    """
    console = wide()
    for result in results:
        epochs = result.rehearsal
        mark = "" if epochs is None else f"REHEARSAL, {epochs} epoch{'s' * (epochs > 1)}: "
        title = f"{mark}{result.recipe}: {result.title}"
        console.print(escape(title), style="bold", soft_wrap=True)
        whole = sum(not cell.missing for cell in result.cells)
        failed = sum(cell.error is not None for cell in result.cells)
        tail = f", {failed} failed" if failed else ""
        console.print(f"  {whole} of {len(result.cells)} cells complete{tail}")
        for claim in result.claims if epochs is None else ():
            console.print(escape(f"  {claim.claim} {claim.sentence}"), soft_wrap=True)
    console.print(f"[bold]report[/] {escape(str(folder / 'report.html'))}", soft_wrap=True)
