"""`paretocosmos predict`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from paretocosmos.cli import options
from paretocosmos.cli.console import print_next_command, print_note, print_text, warnings_as_notes
from paretocosmos.errors import ConfigurationError, DataError, RunError
from paretocosmos.evaluation.choose import Choice
from paretocosmos.evaluation.threshold import MIDDLE, check_threshold
from paretocosmos.io.files import replace_file, user_path
from paretocosmos.pareto.front import Array
from paretocosmos.problems.tables import Answer, read_table, to_frame
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run, predicts_at

Bounds = list[str] | None
ONE_OF_TWO = (
    "give a trade-off with --ray 0.3,0.7, or choose one, as with --max tpr_gap=0.02 and --maximize "
    "accuracy"
)


def predict(
    folder: options.RunFolder,
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="A table of new rows.")],
    ray: Annotated[str | None, typer.Option(help="The trade-off, as 0.3,0.7.")] = None,
    at_most: Annotated[
        Bounds,
        typer.Option("--max", metavar="NAME=NUMBER", help="Choose it: an upper bound; repeatable."),
    ] = None,
    at_least: Annotated[
        Bounds,
        typer.Option("--min", metavar="NAME=NUMBER", help="Choose it: a lower bound; repeatable."),
    ] = None,
    minimize: Annotated[str | None, typer.Option(help="Choose it: what to minimise.")] = None,
    maximize: Annotated[str | None, typer.Option(help="Choose it: what to maximise.")] = None,
    threshold: options.Threshold = None,
    out: Annotated[
        Path | None, typer.Option(help="A new CSV file; by default standard output.")
    ] = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    data: options.MovedData = None,
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
    verify: options.Verify = None,
) -> None:
    """Predict the rows of a table with a RUN, at a given or chosen trade-off.

    Writes the rows as CSV with a column `prediction`, and with the `probability` of the positive
    class, or a column for each of several classes. With two classes, the prediction is positive
    above the threshold: the given one, the chosen one, or 0.5. A saved estimator has its own
    trade-off and threshold.
    """
    chosen = any((at_most, at_least, minimize, maximize))
    if ray is not None and chosen:
        raise ConfigurationError(f"{ONE_OF_TWO}; found both")
    out = None if out is None else user_path(out)
    if out is not None and out.exists():
        raise RunError(f"`{out}` exists: choose another name with --out")
    run = load_run(folder, trust=trust or (), verify=verify, device=device)
    if run.table is None:
        raise ConfigurationError(
            f"`{folder}` was not trained on a table, so it cannot predict rows"
        )
    own = predicts_at(run)
    if ray is None and not chosen and own.ray is None:
        raise ConfigurationError(f"{ONE_OF_TWO}; found neither")
    with warnings_as_notes():
        table = read_table(rows, separator=separator, decimal=decimal, encoding=encoding)
        frame = to_frame(table)
        if not chosen:
            weights = list(own.ray or ()) if ray is None else options.parse_numbers(ray)
            decided = own.threshold if threshold is None else threshold
            binary = Answer.from_about(run.record["about"]).task == "binary"
            check_threshold(decided, decided=binary, name=run.record["name"])
        else:
            choice = run.choose(
                max=options.parse_named_numbers("--max", at_most),
                min=options.parse_named_numbers("--min", at_least),
                minimize=minimize,
                maximize=maximize,
                threshold=threshold,
                problem=run.problem(data=data),
            )
            weights, decided = list(choice.ray), choice.threshold
            _note_choice(choice)
        added = _make_columns(run.record["about"], run.predict(frame, ray=weights), decided)
        taken = [name for name in added if name in frame.columns]
        if taken:
            raise DataError(f"`{rows}` has a column `{taken[0]}` already: rename it")
    text = frame.assign(**added).to_csv(index=False)
    if out is None:
        print_text(text)
        return
    with replace_file(out, way_out="choose another place for it") as temporary:
        temporary.write_text(text, encoding="utf-8")
    print_note(f"`{out}`: {len(frame):,} rows{_count_positives(run, added)}")
    print_next_command("export", folder)


def _make_columns(about: Mapping[str, Any], found: Array, threshold: float) -> dict[str, Any]:
    """Return the columns to add: the prediction, and the probabilities of classes."""
    answer = Answer.from_about(about)
    if answer.task == "number":
        return {"prediction": found}
    if answer.task == "classes":
        every = {f"probability_{one}": found[:, at] for at, one in enumerate(answer.classes)}
        return every | {"prediction": [answer.classes[at] for at in found.argmax(axis=1)]}
    positive = about.get("positive", "1")
    classes = about.get("negative", f"not {positive}"), positive
    return {"probability": found, "prediction": [classes[int(one > threshold)] for one in found]}


def _count_positives(run: Run, added: Mapping[str, Any]) -> str:
    if "probability" not in added:
        return ""
    positive = run.record["about"].get("positive", "1")
    return f", {added['prediction'].count(positive):,} of them predicted `{positive}`"


def _note_choice(choice: Choice) -> None:
    """Print which trade-off was chosen."""
    ray = ", ".join(f"{part:.4f}" for part in choice.ray)
    moved = "" if choice.threshold == MIDDLE else f", with the threshold {choice.threshold:g}"
    print_note(f"predicted at the ray {ray}{moved}")
