"""`paretocosmos check`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli import console, options
from paretocosmos.io.files import user_path
from paretocosmos.problems.tables import read_table
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import predicts_at


def check(
    folder: options.RunFolder,
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="A table of new labelled rows.")],
    at_most: options.AtMost = None,
    at_least: options.AtLeast = None,
    minimize: options.Minimize = None,
    maximize: options.Maximize = None,
    confidence: options.Confidence = None,
    ray: Annotated[str | None, typer.Option(help="The trade-off, e.g. 0.3,0.7.")] = None,
    threshold: options.Threshold = None,
    data: options.MovedData = None,
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Check whether bounds are kept on new labelled rows: exit code 0 if they are, 1 if not.

    At the trade-off that you give, at that of a saved estimator, or at the one that `choose` finds
    for these bounds.
    """
    # first, while nothing but the options is local
    arguments = locals()
    run = load_run(folder, trust=trust or (), device=device)
    criteria = options.collect_criteria(arguments)
    with console.warnings_as_notes():
        frame = read_table(user_path(rows), **options.get_table_format(run))
        weights = predicts_at(run).ray if ray is None else tuple(options.parse_numbers(ray))
        if weights is None:
            choice = run.choose(problem=run.problem(data=data), **criteria)
            weights, threshold = choice.ray, choice.threshold
        kept = ("max", "min", "confidence")
        checked = run.check(
            frame,
            ray=weights,
            threshold=threshold,
            rows_name=rows.name,
            **{name: criteria[name] for name in kept},
        )
    if as_json:
        console.print_json({"run": str(folder), **checked.to_dict()})
    else:
        console.print_value(checked)
    if not checked.kept:
        console.print_note(f"not all bounds are kept on `{rows.name}`")
        raise typer.Exit(1)
