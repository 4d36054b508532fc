"""`paretocosmos serve`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli._options import Trust, Verify
from paretocosmos.cli.output import note
from paretocosmos.serving import Settings
from paretocosmos.serving import serve as serve_run

__all__ = ["serve"]


def serve(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="PARETOCOSMOS_TOKEN", help="What clients must send."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes, each with the whole run.")] = 1,
    onnx: Annotated[
        Path | None, typer.Option(help="Predict with this export of the run, not PyTorch.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Where the data lies now, if moved.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1.")] = "cpu",
    trust: Trust = None,
    verify: Verify = None,
    max_rows: Annotated[int, typer.Option(help="Of a request.")] = Settings.max_rows,
    max_bytes: Annotated[int, typer.Option(help="Of a request's body.")] = Settings.max_bytes,
    timeout: Annotated[float, typer.Option(help="Seconds a request may take.")] = Settings.timeout,
    batching: Annotated[
        bool, typer.Option("--batching/--no-batching", help="Join rows of several requests.")
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
        batching=batching,
    )
    serve_run(settings, started=lambda at: note(f"serving {folder} on {at}, see {at}/docs"))
