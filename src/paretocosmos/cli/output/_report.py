"""What `report` ends with: what is there of each recipe, what was found, and where it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from paretocosmos.cli.output._console import wide

__all__ = ["print_report"]


def print_report(contents: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """A few lines for each recipe.

    Args:
        contents: what `collect` gave for each recipe.
        folder: where the report is.
    """
    console = wide()
    for content in contents:
        epochs, cells = content["rehearsal"], content["cells"]
        mark = "" if epochs is None else f"REHEARSAL, {epochs} epoch{'s' * (epochs > 1)}: "
        title = f"{mark}{content['recipe']}: {content['title']}"
        console.print(escape(title), style="bold", soft_wrap=True)
        whole = sum(not cell["missing"] for cell in cells)
        failed = sum(cell["error"] is not None for cell in cells)
        tail = f", {failed} failed" if failed else ""
        console.print(f"  {whole} of {len(cells)} cells complete{tail}")
        for claim in content["claims"] if epochs is None else ():
            said = f"  {claim['claim']} {claim['sentence']}"
            console.print(escape(said), soft_wrap=True)
    console.print(f"[bold]report[/] {escape(str(folder / 'report.html'))}", soft_wrap=True)
