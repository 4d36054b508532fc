"""`paretocosmos serve`."""

from typing import Annotated, Any

import typer

from paretocosmos.cli import console, options
from paretocosmos.io.progress import close_display
from paretocosmos.serving import Settings
from paretocosmos.serving import serve as serve_run


def serve(
    folder: options.RunFolder,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="PARETOCOSMOS_TOKEN", help="The token that clients must send."),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Number of processes, each of which loads the run.")
    ] = 1,
    data: options.MovedData = None,
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
    max_rows: Annotated[int, typer.Option(help="The most rows of a request.")] = Settings.max_rows,
    max_bytes: Annotated[
        int, typer.Option(help="The most bytes of a request.")
    ] = Settings.max_bytes,
    timeout: Annotated[float, typer.Option(help="Seconds a request may take.")] = Settings.timeout,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="A site whose scripts may call this server, e.g. https://example.org; repeatable.",
        ),
    ] = None,
) -> None:
    """Serve a RUN over HTTP: predictions at any preference, the front, and choices."""
    # every option is a setting of the same name
    arguments: dict[str, Any] = locals()
    lists = {"trust": tuple(trust or ()), "origins": tuple(origins or ())}
    # tuples, since the settings are frozen and go to every worker process
    settings = Settings(**{**arguments, **lists})

    shown = "the page of the run" if (folder / "report.html").exists() else "a description"

    def note_start(address: str) -> None:
        # From now on the process only waits: no live display may stay open.
        close_display()
        console.print_note(f"serving {folder} at {address}: open this address for {shown}")

    serve_run(settings, started=note_start)
