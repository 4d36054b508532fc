"""`paretocosmos serve`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli.console import print_note
from paretocosmos.cli.options import MovedData, RunDevice, RunFolder, Trust, Verify
from paretocosmos.io.progress import close_display
from paretocosmos.serving import Settings
from paretocosmos.serving import serve as serve_run


def serve(
    folder: RunFolder,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="PARETOCOSMOS_TOKEN", help="The token that clients must send."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes, each with the whole run.")] = 1,
    onnx: Annotated[
        Path | None, typer.Option(help="Predict with this exported file instead of PyTorch.")
    ] = None,
    data: MovedData = None,
    device: RunDevice = "cpu",
    trust: Trust = None,
    verify: Verify = None,
    max_rows: Annotated[int, typer.Option(help="Rows per request.")] = Settings.max_rows,
    max_bytes: Annotated[int, typer.Option(help="Bytes per request.")] = Settings.max_bytes,
    timeout: Annotated[float, typer.Option(help="Seconds a request may take.")] = Settings.timeout,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="A site whose scripts may call this server, as https://example.org; repeatable.",
        ),
    ] = None,
    batching: Annotated[
        bool, typer.Option("--batching/--no-batching", help="Batch the rows of several requests.")
    ] = True,
) -> None:
    """Serve a RUN over HTTP: predictions at any preference, its front, and choices."""
    settings = Settings(
        folder=folder,
        host=host,
        port=port,
        token=token,
        workers=workers,
        onnx=onnx,
        data=data,
        device=device,
        trust=tuple(trust or ()),
        verify=verify,
        max_rows=max_rows,
        max_bytes=max_bytes,
        timeout=timeout,
        origins=tuple(allow_origin or ()),
        batching=batching,
    )
    serve_run(settings, started=partial(_note_start, folder))


def _note_start(folder: Path, at: str) -> None:
    """Print the address; from now on the server waits."""
    close_display()
    print_note(f"serving {folder} on {at}, with a start page")
