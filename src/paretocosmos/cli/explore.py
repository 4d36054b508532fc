"""`paretocosmos explore`."""

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli.console import (
    escape,
    get_stdout,
    print_json,
    print_next_command,
    print_note,
    warnings_as_notes,
)
from paretocosmos.cli.options import (
    AsJson,
    MovedData,
    RunDevice,
    RunFolders,
    Threshold,
    Trust,
    Verify,
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
        typer.Option(metavar="FILE", help="The file to write; by default in a new folder."),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Write the page and open no browser.")
    ] = False,
    no_samples: Annotated[
        bool, typer.Option("--no-samples", help="Leave rows or images of the data out of the page.")
    ] = False,
    threshold: Threshold = None,
    data: MovedData = None,
    device: RunDevice = "cpu",
    trust: Trust = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Explore the trade-off in the browser: the fronts of one or several RUNs on one page.

    A RUN may be a folder with runs below it, as `compare` and `--seeds` write them. The page
    is one file that needs no server and no network.
    """
    from paretocosmos.explorer import build_page_model, write_report

    places = [place for folder in folders for place in _find_finished(folder)]
    runs = [load_run(place, trust=trust or (), verify=verify, device=device) for place in places]
    wanted = None if out is None else _check_page(out)
    with warnings_as_notes(), status("evaluating the runs"):
        model = build_page_model(runs, data=data, samples=not no_samples, threshold=threshold)
    page = wanted or Path(tempfile.mkdtemp(prefix="paretocosmos-")) / "explore.html"
    if model.reason:
        print_note(f"the page has no samples and no counted answers: {model.reason}")
    with status("writing the page"):
        write_report(page, model)
    if as_json:
        print_json({"page": str(page), "runs": [str(place) for place in places]})
    else:
        get_stdout().print(f"[bold]page[/]  {escape(page)}", soft_wrap=True)
    if not no_open and not webbrowser.open(page.as_uri()):
        print_note(f"no browser was found: open {page} in one")
    if not as_json:
        print_next_command(*suggest_choice(runs[0]))


def _find_finished(folder: Path) -> list[Path]:
    """Return the folders of the runs to show; print a note on those left out."""
    finished, begun = split_runs(user_path(folder))
    if begun:
        print_note(f"left out, because not finished: {', '.join(map(str, begun))}")
    return finished


def _check_page(out: Path) -> Path:
    page = user_path(out).absolute()
    if page.suffix.lower() not in (".html", ".htm") or not page.parent.is_dir():
        raise ConfigurationError(
            f"--out names an .html file to write, in a folder that exists, found `{out}`: try "
            "--out explore.html"
        )
    return page
