"""`paretocosmos export`."""

from pathlib import Path
from typing import Annotated, cast

import typer

from paretocosmos.cli._options import AsJson, Trust, Verify
from paretocosmos.cli.output import print_exported, print_json
from paretocosmos.export import Format
from paretocosmos.export import export as export_run
from paretocosmos.runs.load import load_run

__all__ = ["export"]


def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    form: Annotated[
        str, typer.Option("--format", help="onnx, or torch: a program of torch.export.")
    ] = "onnx",
    out: Annotated[
        Path | None, typer.Option(help="The file, .onnx or .pt2; else in the run folder.")
    ] = None,
    trust: Trust = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Write a RUN as one file with the inputs x and preference, and a model card beside it."""
    run = load_run(folder, trust=trust or (), verify=verify)
    exported = export_run(run, format=cast(Format, form), out=out)
    if as_json:
        print_json(
            {
                "file": str(exported.path),
                "card": str(exported.card),
                "difference": exported.difference,
                "preference": exported.preference,
            }
        )
        return
    print_exported(exported)
