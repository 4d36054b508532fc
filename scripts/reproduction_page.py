"""docs/reproduction.md and its figures, from what is committed in results/reproduction/."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from paretocosmos.experiments._names import device_title, problem_title
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


def reproduction_short() -> Iterator[str]:
    """For the README: how much of Table 1 there is, what it took, and what became of the claim."""
    content = read_collected(RESULTS / "table_1.json")
    cells = content["cells"]
    done = [cell for cell in cells if cell["seeds"]]
    published = [cell for cell in done if cell["protocol"] == "paper"]
    runs, missing = (sum(len(cell[key]) for cell in cells) for key in ("seeds", "missing"))
    theirs = sum(c["against"]["seconds"]["paper"] * len(c["seeds"]) for c in published)
    devices = dict.fromkeys(device_title(name) for c in done for name in c["made"]["device"])
    fair = [c["against"]["hypervolume"] for c in published if "deo" in c["objectives"]]
    same = sum(not one["differs"] for one in fair)
    claim = content["claims"][0]
    lost = {row["problem"] for row in claim["rows"] if row["verdict"] == "ahead"}
    sets = dict.fromkeys(row["problem"] for row in claim["rows"])
    held, not_held = ([p for p in sets if (p in lost) == so] for so in (False, True))
    verdict = {
        True: "holds on every set",
        False: f"holds on {_listed(held)}, not on {_listed(not_held)}",
        None: "is open",
    }[claim["holds"]]
    yield (
        f"Table 1, {runs}{f' of {runs + missing}' if missing else ''} trainings: "
        f"{content['seconds']['training'] / 60:.0f} minutes of training on "
        f"{' and '.join(devices)}; the paper's times for the same, `clean` aside, add up to "
        f"{theirs / 3600:.0f} hours. "
        f"On the fairness sets {same} of {len(fair)} hypervolumes are the published ones within "
        f"the noise. Its claim that no baseline outperforms COSMOS {verdict}: "
        "[where, by how much and why](docs/reproduction.md); "
        "[how to](docs/guide.md#the-whole-paper)."
    )


def _listed(problems: Sequence[str]) -> str:
    """Their titles, in words.

    >>> _listed(["adult", "compas", "multi_mnist"]), _listed([])
    ('Adult, COMPAS and Multi-MNIST', 'none')
    """
    *most, last = [problem_title(problem) for problem in problems] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def draw_reproduction() -> None:
    """The figures of the page."""
    folder = ROOT / "docs" / FOLDER
    folder.mkdir(exist_ok=True)
    sections(_contents(), folder, endings=("png",))


def _contents() -> list[dict[str, object]]:
    there = {path.stem: path for path in sorted(RESULTS.glob("*.json"))}
    return [read_collected(there[name]) for name in in_order(list(there))]
