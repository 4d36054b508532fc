"""The runs in a folder of several: what `compare` wrote, or several seeds."""

from pathlib import Path

from paretocosmos.errors import RunError
from paretocosmos.io.files import exists
from paretocosmos.runs.record import record_in

__all__ = ["places_in", "runs_below"]

# Folders below one another in which runs are looked for: comparisons, their methods, their seeds.
DEEP = 3


def places_in(folder: Path) -> list[Path]:
    """The folder itself where it is that of a run, else those of all runs below it."""
    if exists(folder / "run.json"):
        return [folder]
    found = (folder.glob(f"{'*/' * depth}run.json") for depth in range(1, DEEP + 1))
    return sorted(path.parent for some in found for path in some) if folder.is_dir() else []


def runs_below(folder: Path) -> tuple[list[Path], list[Path]]:
    """The folders of finished runs in a folder, and of those that were only begun.

    The folder of a run is that run, and what is wrong with it, or with what is no folder, is told
    by whoever reads it. Other folders are looked through, a few levels deep, in the order of their
    names.

    >>> import tempfile
    >>> empty = Path(tempfile.mkdtemp())
    >>> runs_below(empty / "nowhere")[0] == [empty / "nowhere"]
    True
    """
    found = places_in(folder)
    if found == [folder] or not folder.is_dir():
        return [folder], []
    if not found:
        raise RunError(
            f"there is no run in `{folder}`: neither it nor a folder in it has a `run.json`; train "
            "one with `paretocosmos train`"
        )
    ended = {place: record_in(place).get("status") == "finished" for place in found}
    finished = [place for place in found if ended[place]]
    begun = [place for place in found if not ended[place]]
    if not finished:
        raise RunError(
            f"no run in `{folder}` is finished: continue them with the same call and resume=True"
        ).by({"resume": True})
    return finished, begun
