"""The pages that a training leaves: one for each run, and one of all that belong together."""

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path

from paretocosmos.errors import ConfigurationError
from paretocosmos.io.progress import print_note, status
from paretocosmos.runs.run import PAGE, Run

__all__ = ["write_pages"]


def write_pages(runs: Sequence[Run], together: Path | None = None) -> None:
    """Write a page into every run's folder, and one of all runs into the folder `together`.

    What is shown of the data is looked at once, so all pages show the same samples. A page that
    cannot be made costs a warning, not the runs.
    """
    from paretocosmos.explorer import look_at, write_report

    with status("writing the page"):
        try:
            view = look_at(runs)
            for run, look in zip(runs, view.looks, strict=True):
                write_report(run.folder / PAGE, dataclasses.replace(view, looks=[look]))
            if together is not None:
                write_report(together / PAGE, view)
            print_note(f"page: {(together or runs[0].folder) / PAGE}")
        except ConfigurationError as error:
            warnings.warn(f"no {PAGE}: {error}", UserWarning, stacklevel=3)
