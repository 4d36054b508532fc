"""`report`: what was reproduced, beside the paper, as Markdown, JSON, figures and one HTML page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from paretocosmos.errors import MissingExtraError, cannot_use
from paretocosmos.io.files import write_bytes, write_json
from paretocosmos.paper.report.figures import list_figures
from paretocosmos.paper.report.page import render_markdown, render_page
from paretocosmos.paper.report.sections import build_section, build_verdict
from paretocosmos.paper.report.tables import (
    Claim,
    Picture,
    Section,
    Table,
    describe_progress,
    format_ratio,
)
from paretocosmos.paper.results import RecipeResult
from paretocosmos.plotting import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Claim",
    "Picture",
    "Section",
    "Table",
    "build_sections",
    "build_verdict",
    "describe_progress",
    "format_ratio",
    "list_figures",
    "render_markdown",
    "render_page",
    "write_report",
]

FOLDER = "figures"
ENDINGS = ("png", "pdf")


def write_report(results: Sequence[RecipeResult], folder: Path) -> list[str]:
    """Write a report of some recipes into a folder; what is there of an earlier one is replaced.

    It has ``report.md``, ``report.html`` (the same, with its pictures inside), a ``RECIPE.json``
    for each recipe, and its figures as PNG and PDF in ``list_figures``.

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
    found, notes = build_sections(results, folder / FOLDER)
    for result in results:
        write_json(folder / f"{result.recipe}.json", result.to_dict())
    text = render_markdown(found, verdict=build_verdict(results), folder=FOLDER)
    pictures = {
        quote(f"{FOLDER}/{picture.name}.png"): picture.png
        for section in found
        for picture in section.pictures
    }
    write_bytes(folder / "report.md", text.encode())
    write_bytes(folder / "report.html", render_page(text, pictures).encode())
    return notes


def build_sections(
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
        for number, (caption, draw) in enumerate(list_figures(result), start=1):
            name = result.recipe if number == 1 else f"{result.recipe}-{number}"
            try:
                png = b"" if pictures is None else _save_picture(draw(), pictures / name, endings)
            except MissingExtraError as missing:
                notes.append(f"no pictures: {missing}")
                break
            kept.append(Picture(name, caption, png))
        one = build_section(result, kept, known)
        known = {experiment.name: result.recipe for experiment in result.done} | known
        told = {note for before in found for note in before.notes}
        found.append(replace(one, notes=tuple(note for note in one.notes if note not in told)))
    return found, list(dict.fromkeys(notes))


def _save_picture(figure: "Figure", path: Path, endings: Sequence[str]) -> bytes:
    for ending in endings:
        save_figure(path.with_name(f"{path.name}.{ending}"), figure)
    return path.with_name(f"{path.name}.png").read_bytes()
