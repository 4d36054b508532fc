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

RAY_OR_CHOICE = (
    "give a trade-off with --ray 0.3,0.7, or choose one, e.g. with --max tpr_gap=0.02 and "
    "--maximize accuracy"
)


def predict(
    folder: options.RunFolder,
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="A table of new rows.")],
    ray: Annotated[str | None, typer.Option(help="The trade-off, e.g. 0.3,0.7.")] = None,
    at_most: options.AtMost = None,
    at_least: options.AtLeast = None,
    minimize: options.Minimize = None,
    maximize: options.Maximize = None,
    threshold: options.Threshold = None,
    out: Annotated[
        Path | None, typer.Option(help="The new CSV file; by default, standard output.")
    ] = None,
    data: options.MovedData = None,
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
) -> None:
    """Predict the rows of a table with a RUN, at a given or chosen trade-off.

    Writes the rows as CSV with a column `prediction`, and with the `probability` of the positive
    class, or a column for each of several classes. With two classes, the prediction is positive
    above a threshold: the one you give, the one that was chosen, or 0.5. A saved estimator has
    its own trade-off and threshold.
    """
    # first, while nothing but the options is local
    arguments = locals()
    # any criterion means that the trade-off is to be chosen
    chosen = any((at_most, at_least, minimize, maximize))
    if ray is not None and chosen:
        raise ConfigurationError(f"{RAY_OR_CHOICE}; found both")
    out = None if out is None else user_path(out)
    # before anything is loaded: nobody wants to wait for this
    if out is not None and out.exists():
        raise RunError(f"`{out}` exists: choose another name with --out")
    run = load_run(folder, trust=trust or (), device=device)
    if run.table is None:
        raise ConfigurationError(
            f"`{folder}` was not trained on a table, so it cannot predict rows"
        )
    default = predicts_at(run)
    # a saved estimator has a trade-off, any other run has none
    if ray is None and not chosen and default.ray is None:
        raise ConfigurationError(f"{RAY_OR_CHOICE}; found neither")
    with warnings_as_notes():
        # Read before the run is asked to choose, which may take long: mistakes in the file come
        # first.
        frame = to_frame(read_table(rows, **options.get_table_format(run)))
        if not chosen:
            weights = list(default.ray or ()) if ray is None else options.parse_numbers(ray)
            decided = default.threshold if threshold is None else threshold
            binary = Answer.from_about(run.record["about"]).task == "binary"
            # a threshold means nothing for numbers or several classes
            check_threshold(decided, decided=binary, name=run.record["name"])
        else:
            criteria = options.collect_criteria(arguments)
            choice = run.choose(problem=run.problem(data=data), **criteria)
            weights, decided = list(choice.ray), choice.threshold
            _note_choice(choice)
        added = _make_columns(run.record["about"], run.predict(frame, ray=weights), decided)
        # the file's own columns are never overwritten
        duplicates = [name for name in added if name in frame.columns]
        if duplicates:
            raise DataError(f"`{rows}` already has a column `{duplicates[0]}`: rename it")
    text = frame.assign(**added).to_csv(index=False)
    if out is None:
        # as it is: rich would wrap lines and colour numbers
        print_text(text)
        return
    with replace_file(out, way_out="choose another place for it") as temporary:
        temporary.write_text(text, encoding="utf-8")
    print_note(f"`{out}`: {len(frame):,} rows{_count_positives(run, added)}")
    print_next_command("export", folder)


def _make_columns(about: Mapping[str, Any], outputs: Array, threshold: float) -> dict[str, Any]:
    """Return the columns to add: the prediction, and the probabilities of classes."""
    answer = Answer.from_about(about)
    if answer.task == "number":
        return {"prediction": outputs}
    if answer.task == "classes":
        columns = zip(answer.classes, outputs.T, strict=True)
        probabilities = {f"probability_{name}": column for name, column in columns}
        predictions = [answer.classes[index] for index in outputs.argmax(axis=1)]
        return {**probabilities, "prediction": predictions}
    positive = about.get("positive", "1")
    classes = about.get("negative", f"not {positive}"), positive
    return {"probability": outputs, "prediction": [classes[int(p > threshold)] for p in outputs]}


def _count_positives(run: Run, added: Mapping[str, Any]) -> str:
    # only binary predictions have one
    if "probability" not in added:
        return ""
    positive = run.record["about"].get("positive", "1")
    return f", {added['prediction'].count(positive):,} of them predicted `{positive}`"


def _note_choice(choice: Choice) -> None:
    """Print which trade-off was chosen."""
    ray = ", ".join(f"{weight:.4f}" for weight in choice.ray)
    threshold = "" if choice.threshold == MIDDLE else f", with the threshold {choice.threshold:g}"
    print_note(f"predicted at the ray {ray}{threshold}")
