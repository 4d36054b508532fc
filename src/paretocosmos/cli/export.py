"""`paretocosmos export`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli.console import print_fields, print_json, print_next_command
from paretocosmos.cli.options import AsJson, RunFolder, Threshold, Trust
from paretocosmos.export import export as export_run
from paretocosmos.io.progress import status
from paretocosmos.runs.load import load_run


def export(
    folder: RunFolder,
    out: Annotated[
        Path | None, typer.Option(help="The new .onnx file; by default in the run folder.")
    ] = None,
    threshold: Threshold = None,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Write a RUN as one ONNX file with the inputs x and preference, and a model card beside it."""
    run = load_run(folder, trust=trust or ())
    with status("exporting the network, and comparing it with PyTorch"):
        exported = export_run(run, out=out, threshold=threshold)
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
    print_fields(
        {
            "file": f"{exported.path} ({exported.path.stat().st_size:,} bytes)",
            "card": f"{exported.card}, with the code that calls the file",
            "preference": exported.preference,
            "difference": f"at most {exported.difference:.1e} from PyTorch, on random rows",
        }
    )
    print_next_command("serve", folder)
