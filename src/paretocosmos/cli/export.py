"""`paretocosmos export`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli import console, options
from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation.choose import Choice
from paretocosmos.export import export as export_run
from paretocosmos.io.progress import status
from paretocosmos.runs.load import load_run


def export(
    folder: options.RunFolder,
    ray: Annotated[
        str | None, typer.Option(help="Freeze the file at a trade-off, e.g. 0.3,0.7.")
    ] = None,
    at_most: options.AtMost = None,
    at_least: options.AtLeast = None,
    minimize: options.Minimize = None,
    maximize: options.Maximize = None,
    confidence: options.Confidence = None,
    threshold: options.Threshold = None,
    out: Annotated[
        Path | None, typer.Option(help="The new .onnx file; by default in the run folder.")
    ] = None,
    data: options.MovedData = None,
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a RUN as one ONNX file with the inputs x and preference, and a model card beside it.

    With a ray, or with the criteria of `choose`, the file is frozen at that trade-off: then its
    input is x alone, and the card says what it reaches.
    """
    # first, while nothing but the options is local
    arguments = locals()
    chosen = any((at_most, at_least, minimize, maximize))
    if ray is not None and chosen:
        raise ConfigurationError("give --ray or criteria such as --max tpr_gap=0.02, found both")
    run = load_run(folder, trust=trust or ())
    at: Choice | list[float] | None = None
    with console.warnings_as_notes():
        if data is not None:
            run = dataclasses.replace(run, trained_on=run.problem(data=data))
        if chosen:
            at, threshold = run.choose(**options.collect_criteria(arguments)), None
        elif ray is not None:
            at = options.parse_numbers(ray)
        with status("exporting the network, and comparing it with PyTorch"):
            exported = export_run(run, at=at, out=out, threshold=threshold)
    if as_json:
        console.print_json(
            {
                "file": str(exported.path),
                "card": str(exported.card),
                "difference": exported.difference,
                "preference": exported.preference,
            }
        )
        return
    console.print_fields(
        {
            "file": f"{exported.path} ({exported.path.stat().st_size:,} bytes)",
            "card": f"{exported.card}, with the code that calls the file",
            "preference": exported.preference,
            "difference": f"at most {exported.difference:.1e} from PyTorch, on random rows",
        }
    )
    console.print_next_command("serve", folder)
