"""`report`: what was reproduced, beside the paper, as Markdown, LaTeX, JSON and one HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretocosmos.errors import MissingExtraError, cannot_use
from paretocosmos.io.files import write_bytes, write_json
from paretocosmos.paper.report._latex import latex
from paretocosmos.paper.report._markdown import markdown
from paretocosmos.paper.report._page import page
from paretocosmos.paper.report._parts import Picture, Section
from paretocosmos.paper.report._pictures import figures
from paretocosmos.paper.report._section import section, trained
from paretocosmos.paper.report._verdict import verdict
from paretocosmos.plotting import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["markdown", "sections", "verdict", "write_report"]

FOLDER = "figures"
ENDINGS = ("png", "pdf")


def write_report(contents: Sequence[Mapping[str, Any]], folder: Path) -> list[str]:
    """Write a report of some recipes into a folder; what is there of an earlier one is replaced.

    It has ``report.md``, ``report.tex``, ``report.html`` (which holds its pictures itself), a
    ``RECIPE.json`` for each recipe, and its figures as PNG and PDF in ``figures``.

    Args:
        contents: what `collect` gave for each recipe.
        folder: where it goes.

    Returns:
        What could not be done, in sentences: no pictures where matplotlib is missing.
    """
    try:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_use(folder, error) from error
    found, notes = sections(contents, folder / FOLDER)
    found = [*verdict(contents), *found]
    for content in contents:
        write_json(folder / f"{content['recipe']}.json", content)
    write_bytes(folder / "report.md", markdown(found, folder=FOLDER).encode())
    write_bytes(folder / "report.tex", latex(found, folder=FOLDER).encode())
    write_bytes(folder / "report.html", page(found).encode())
    return notes


def sections(
    contents: Sequence[Mapping[str, Any]],
    pictures: Path | None,
    *,
    endings: Sequence[str] = ENDINGS,
) -> tuple[list[Section], list[str]]:
    """Every recipe as a section; its pictures are written into a folder.

    Args:
        contents: what `collect` gave for each recipe.
        pictures: the folder of the pictures; `None` names them without drawing.
        endings: in what the pictures are written, PNG among it.

    Returns:
        The sections, and what could not be done.
    """
    found: list[Section] = []
    notes = []
    known: dict[str, str] = {}  # by its runs, the recipe that has told their time
    for content in contents:
        kept = []
        for number, (caption, draw) in enumerate(figures(content), start=1):
            name = content["recipe"] if number == 1 else f"{content['recipe']}-{number}"
            try:
                png = b"" if pictures is None else _write(draw(), pictures / name, endings)
            except MissingExtraError as missing:
                notes.append(f"no pictures: {missing}")
                break
            kept.append(Picture(name, caption, png))
        one = section(content, kept, known)
        known |= {name: content["recipe"] for name in trained(content) if name not in known}
        told = {note for before in found for note in before.notes}
        found.append(replace(one, notes=tuple(note for note in one.notes if note not in told)))
    return found, list(dict.fromkeys(notes))


def _write(figure: "Figure", path: Path, endings: Sequence[str]) -> bytes:
    for ending in endings:
        save_figure(path.with_name(f"{path.name}.{ending}"), figure)
    return path.with_name(f"{path.name}.png").read_bytes()
