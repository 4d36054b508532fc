"""`paretocosmos explore`."""

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from paretocosmos.cli._options import AsJson, MovedData, RunDevice, RunFolders, Trust, Verify
from paretocosmos.cli.output._console import note, notes, print_json, safe
from paretocosmos.errors import ConfigurationError
from paretocosmos.runs.load import load_run


def explore(
    folders: RunFolders,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the page goes; else a new folder.")
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Write the page and open no browser.")
    ] = False,
    no_samples: Annotated[
        bool, typer.Option("--no-samples", help="Put no rows or images of the data into the page.")
    ] = False,
    data: MovedData = None,
    device: RunDevice = "cpu",
    trust: Trust = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Drag the trade-off in the browser: the fronts of one or several RUNs on one page.

    The page is one file that needs no server and no network.
    """
    from paretocosmos.explorer import look_at, write_report

    runs = [load_run(folder, trust=trust or (), verify=verify, device=device) for folder in folders]
    wanted = None if out is None else _place(out)
    with notes():
        view = look_at(runs, data=data, samples=not no_samples)
    page = wanted or Path(tempfile.mkdtemp(prefix="paretocosmos-")) / "explore.html"
    if view.why:
        note(f"no samples and no counted answers: {view.why}")
    write_report(page, view)
    if as_json:
        print_json({"page": str(page), "runs": [str(folder) for folder in folders]})
    else:
        Console(highlight=False).print(f"page {safe(page)}", soft_wrap=True)
    if not no_open and not webbrowser.open(page.as_uri()):
        note(f"no browser was found: open {page} in one")


def _place(out: Path) -> Path:
    page = out.expanduser().absolute()
    if page.suffix.lower() not in (".html", ".htm") or not page.parent.is_dir():
        raise ConfigurationError(
            f"--out names an .html file to write, in a folder that exists, found `{out}`: try "
            "--out explore.html"
        )
    return page
