"""`paretocosmos explore`."""

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli.console import (
    print_json,
    print_next_command,
    print_note,
    print_path,
    warnings_as_notes,
)
from paretocosmos.cli.options import (
    AsJson,
    MovedData,
    RunDevice,
    RunFolders,
    Threshold,
    Trust,
)
from paretocosmos.cli.results import suggest_choice
from paretocosmos.errors import ConfigurationError
from paretocosmos.io.files import user_path
from paretocosmos.io.progress import status
from paretocosmos.runs.folders import split_runs
from paretocosmos.runs.load import load_run


def explore(
    folders: RunFolders,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write; by default in a temporary folder."),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Write the page, but do not open a browser.")
    ] = False,
    samples: Annotated[
        bool,
        typer.Option(
            "--samples", help="Show a dozen rows or images; whoever gets the page gets them."
        ),
    ] = False,
    no_model: Annotated[
        bool,
        typer.Option(
            "--no-model", help="Leave the weights out; the page then answers for no new rows."
        ),
    ] = False,
    threshold: Threshold = None,
    data: MovedData = None,
    device: RunDevice = "cpu",
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Explore the trade-off in the browser: the fronts of one or several RUNs on one page.

    A RUN may also be a folder of runs, as `compare` and `--seeds` write it. The page is one file
    that needs no server and no network.
    """
    from paretocosmos.explorer import build_page_model, write_report

    run_folders = [path for folder in folders for path in _find_finished(folder)]
    runs = [load_run(path, trust=trust or (), device=device) for path in run_folders]
    # before the evaluation, which takes a while
    page = None if out is None else _check_page(out)
    with warnings_as_notes(), status("evaluating the runs"):
        model = build_page_model(
            runs, data=data, samples=samples, threshold=threshold, network=not no_model
        )
    # outside of the run folder: a page of several runs belongs to none of them
    page = page or Path(tempfile.mkdtemp(prefix="paretocosmos-")) / "explore.html"
    # printed, since the page itself does not say it: the reason may name folders
    if model.reason:
        print_note(f"the page has no counted answers: {model.reason}")
    with status("writing the page"):
        write_report(page, model)
    if as_json:
        print_json({"page": str(page), "runs": list(map(str, run_folders))})
    else:
        print_path("page", page)
    # On a machine without a screen there is no browser, which is no error.
    if not no_open and not webbrowser.open(page.as_uri()):
        print_note(f"no browser was found: open {page} in one")
    if not as_json:
        print_next_command(*suggest_choice(runs[0]))


def _find_finished(folder: Path) -> list[Path]:
    """Return the folders of the finished runs; print a note on others, which are left out."""
    finished, unfinished = split_runs(user_path(folder))
    # a folder of seeds may be in training while somebody looks at it
    if unfinished:
        print_note(f"unfinished runs are left out: {', '.join(map(str, unfinished))}")
    return finished


def _check_page(out: Path) -> Path:
    page = user_path(out).absolute()
    if page.suffix.lower() not in (".html", ".htm") or not page.parent.is_dir():
        raise ConfigurationError(
            f"--out must be an .html file in a folder that exists, found `{out}`: try "
            "--out explore.html"
        )
    return page
