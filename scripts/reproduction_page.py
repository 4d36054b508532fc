"""docs/reproduction.md and its figures, from what is committed in results/reproduction/."""

from pathlib import Path

from paretocosmos.experiments.collected import in_order, read_collected
from paretocosmos.experiments.report import markdown, sections

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "reproduction"
FOLDER = "reproduction"

OPENING = """\
Written by `make docs` from `results/reproduction/`, which `paretocosmos report` wrote from the run
folders of `paretocosmos reproduce`: the paper's numbers, ours, the difference, and a reason where
one is known. A number with ± is a mean and the standard deviation over seeds. Means differ, or one
is ahead of another, if they are further apart than two standard deviations of their difference."""


def reproduction_page() -> str:
    """The page; the figures are named, not drawn."""
    found, _ = sections(_contents(), None)
    return markdown(found, title="The paper, reproduced", opening=OPENING, folder=FOLDER)


def draw_reproduction() -> None:
    """The figures of the page."""
    folder = ROOT / "docs" / FOLDER
    folder.mkdir(exist_ok=True)
    sections(_contents(), folder, endings=("png",))


def _contents() -> list[dict[str, object]]:
    there = {path.stem: path for path in sorted(RESULTS.glob("*.json"))}
    return [read_collected(there[name]) for name in in_order(list(there))]
