"""`report`: what was reproduced, beside the paper, as Markdown, JSON, figures and one HTML page.

`tables` arranges the results of recipes, the templates beside it, such as ``table.md.jinja``, say
them in Markdown, and `page` renders the templates, with a verdict on all. `figures` draws.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from paretocosmos.errors import MissingExtraError, cannot_use
from paretocosmos.io.files import write_bytes, write_json
from paretocosmos.paper.report.figures import Picture, list_pictures
from paretocosmos.paper.report.page import render_page, render_report, summarize_claim
from paretocosmos.paper.report.tables import (
    Footnotes,
    describe_progress,
    format_difference,
    format_duration,
    format_epochs,
    format_printed,
    format_ratio,
    format_spread,
)
from paretocosmos.paper.results import RecipeResult
from paretocosmos.plotting import save_figure

FOLDER = "figures"


def write_report(
    results: Sequence[RecipeResult], folder: Path, *, title: str = "Reproduction", opening: str = ""
) -> list[str]:
    """Write a report of some recipes into a folder; what is there of an earlier one is replaced.

    It has ``report.md``, ``report.html`` (the same, with its pictures inside), a ``RECIPE.json``
    for each recipe, and its figures as PNG and PDF in ``figures``.

    Args:
        results: what `collect_results` returned for each recipe.
        folder: where it goes.
        title: of the page.
        opening: Markdown that stands after the verdict.

    Returns:
        What could not be done, in sentences: no pictures where matplotlib is missing.
    """
    try:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_use(folder, error) from error
    pictures, notes = {result.recipe: list_pictures(result) for result in results}, []
    try:
        for listed in pictures.values():
            # PNG for the page, PDF for papers
            draw_pictures(listed, folder / FOLDER, ("png", "pdf"))
    # numbers do not need matplotlib: a report without pictures is better than none
    except MissingExtraError as missing:
        pictures, notes = {}, [f"no pictures: {missing}"]
    for result in results:
        write_json(folder / f"{result.recipe}.json", result.to_dict())
    text = render_report(results, pictures, title=title, opening=opening, folder=FOLDER)
    names = [f"{FOLDER}/{picture.name}.png" for listed in pictures.values() for picture in listed]
    # quoted as Markdown addresses are: a recipe's name may have a space
    page = render_page(text, {quote(name): (folder / name).read_bytes() for name in names})
    write_bytes(folder / "report.md", text.encode())
    write_bytes(folder / "report.html", page.encode())
    return notes


def draw_pictures(pictures: Iterable[Picture], folder: Path, endings: Sequence[str]) -> None:
    """Draw pictures into a folder, each in several formats such as ``"png"``."""
    for picture in pictures:
        # drawn one at a time: all of them at once would hold many megabytes
        figure = picture.draw()
        for ending in endings:
            save_figure(folder / f"{picture.name}.{ending}", figure)
