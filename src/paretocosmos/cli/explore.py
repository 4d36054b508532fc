"""`paretocosmos explore`."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli import console, options
from paretocosmos.cli.results import suggest_choice
from paretocosmos.errors import ConfigurationError
from paretocosmos.io.files import user_path
from paretocosmos.runs.folders import split_runs
from paretocosmos.runs.load import load_run


def explore(
    folders: options.RunFolders,
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
    threshold: options.Threshold = None,
    data: options.MovedData = None,
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Explore the trade-off in the browser: the fronts of one or several RUNs on one page.

    A RUN may also be a folder of runs, as `compare` and `--seeds` write it. The page is one file
    that needs no server and no network.
    """
    from paretocosmos.explorer import write_page

    run_folders: list[Path] = []
    for folder in folders:
        finished, unfinished = split_runs(user_path(folder))
        run_folders += finished
        # a folder of seeds may be in training while somebody looks at it
        if unfinished:
            console.print_note(f"unfinished runs are left out: {', '.join(map(str, unfinished))}")
    runs = [load_run(path, trust=trust or (), device=device) for path in run_folders]
    if out is None:
        # outside of the run folder: a page of several runs belongs to none of them
        path = Path(tempfile.mkdtemp(prefix="paretocosmos-")) / "explore.html"
    else:
        path = user_path(out).absolute()
        # before the evaluation, which takes a while
        if path.suffix.lower() not in (".html", ".htm") or not path.parent.is_dir():
            raise ConfigurationError(
                f"--out must be an .html file in a folder that exists, found `{out}`: try "
                "--out explore.html"
            )
    with console.warnings_as_notes():
        page = write_page(
            runs, path, data=data, samples=samples, threshold=threshold, network=not no_model
        )
    # printed, since the page itself does not say it: the reason may name folders
    if page.reason:
        console.print_note(f"the page has no counted answers: {page.reason}")
    if as_json:
        console.print_json({"page": str(path), "runs": list(map(str, run_folders))})
    else:
        console.print_path("page", path)
    # On a machine without a screen there is no browser, which is no error.
    if not no_open and not page.open():
        console.print_note(f"no browser was found: open {path} in one")
    if not as_json:
        console.print_next_command(*suggest_choice(runs[0]))
