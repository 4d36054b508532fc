"""`report`: what was reproduced, beside the paper, as Markdown, JSON, figures and one HTML page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from paretocosmos.errors import MissingExtraError, cannot_use
from paretocosmos.io.files import write_bytes, write_json
from paretocosmos.io.schema.collected import RecipeResult
from paretocosmos.paper.report._markdown import markdown
from paretocosmos.paper.report._page import page
from paretocosmos.paper.report._parts import Picture, Section, Table
from paretocosmos.paper.report._pictures import figures
from paretocosmos.paper.report._section import section
from paretocosmos.paper.report._texts import describe_progress
from paretocosmos.paper.report._verdict import verdict
from paretocosmos.plotting import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Table", "describe_progress", "markdown", "sections", "verdict", "write_report"]

FOLDER = "figures"
ENDINGS = ("png", "pdf")


def write_report(results: Sequence[RecipeResult], folder: Path) -> list[str]:
    """Write a report of some recipes into a folder; what is there of an earlier one is replaced.

    It has ``report.md``, ``report.html`` (the same, with its pictures inside), a ``RECIPE.json``
    for each recipe, and its figures as PNG and PDF in ``figures``.

    Args:
        results: what `collect` gave for each recipe.
        folder: where it goes.

    Returns:
        What could not be done, in sentences: no pictures where matplotlib is missing.
    """
    try:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_use(folder, error) from error
    found, notes = sections(results, folder / FOLDER)
    for result in results:
        write_json(folder / f"{result.recipe}.json", result.to_dict())
    text = markdown(found, verdict=verdict(results), folder=FOLDER)
    pictures = {
        quote(f"{FOLDER}/{picture.name}.png"): picture.png
        for section in found
        for picture in section.pictures
    }
    write_bytes(folder / "report.md", text.encode())
    write_bytes(folder / "report.html", page(text, pictures).encode())
    return notes


def sections(
    results: Sequence[RecipeResult], pictures: Path | None, *, endings: Sequence[str] = ENDINGS
) -> tuple[list[Section], list[str]]:
    """Every recipe as a section; its pictures are written into a folder.

    Args:
        results: what `collect` gave for each recipe.
        pictures: the folder of the pictures; `None` names them without drawing.
        endings: in what the pictures are written, PNG among it.

    Returns:
        The sections, and what could not be done.
    """
    found: list[Section] = []
    notes = []
    known: dict[str, str] = {}  # by its runs, the recipe that has told their time
    for result in results:
        kept = []
        for number, (caption, draw) in enumerate(figures(result), start=1):
            name = result.recipe if number == 1 else f"{result.recipe}-{number}"
            try:
                png = b"" if pictures is None else _write(draw(), pictures / name, endings)
            except MissingExtraError as missing:
                notes.append(f"no pictures: {missing}")
                break
            kept.append(Picture(name, caption, png))
        one = section(result, kept, known)
        known = {cell.name: result.recipe for cell in result.done} | known
        told = {note for before in found for note in before.notes}
        found.append(replace(one, notes=tuple(note for note in one.notes if note not in told)))
    return found, list(dict.fromkeys(notes))


def _write(figure: "Figure", path: Path, endings: Sequence[str]) -> bytes:
    for ending in endings:
        save_figure(path.with_name(f"{path.name}.{ending}"), figure)
    return path.with_name(f"{path.name}.png").read_bytes()
