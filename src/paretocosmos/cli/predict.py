"""`paretocosmos predict`."""

import copy
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated

import torch
import typer

from paretocosmos.cli import console, options
from paretocosmos.errors import ConfigurationError, RunError
from paretocosmos.evaluation.threshold import MIDDLE, check_threshold
from paretocosmos.export.formats import add_predictions
from paretocosmos.export.network import has_threshold, list_classes
from paretocosmos.io.files import lock_folder, read_json, user_path, write_json
from paretocosmos.problems.tables import TABLE_ENDINGS, read_chunks, write_chunks
from paretocosmos.runs.load import load_run
from paretocosmos.runs.run import Run, predicts_at

if TYPE_CHECKING:
    import pandas as pd

# Chunks of 65,536 rows in a part: a million rows.
PART = 16
# Names what the parts of a folder were predicted with; tools that read the parts skip it.
SETTINGS = "_predictions.json"

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
        Path | None,
        typer.Option(
            help="The new CSV or Parquet file, or a folder for many rows, in parts that are not "
            "computed again; by default, CSV on standard output."
        ),
    ] = None,
    data: options.MovedData = None,
    device: options.RunDevice = "cpu",
    trust: options.Trust = None,
) -> None:
    """Predict the rows of a table with a RUN, at a given or chosen trade-off.

    Writes the rows with a column `prediction`, and with the `probability` of the positive class, or
    a column for each of several classes. With two classes, the prediction is positive above a
    threshold: the one you give, the one that was chosen, or 0.5. A saved estimator has its own
    trade-off and threshold. A table need not fit into memory.
    """
    # first, while nothing but the options is local
    arguments = locals()
    # any criterion means that the trade-off is to be chosen
    chosen = any((at_most, at_least, minimize, maximize))
    if ray is not None and chosen:
        raise ConfigurationError(f"{RAY_OR_CHOICE}; found both")
    # before anything is loaded: nobody wants to wait for this
    rows, out = user_path(rows), None if out is None else user_path(out)
    if out is not None and out.name.lower().endswith(TABLE_ENDINGS):
        if out.exists():
            raise RunError(f"`{out}` exists: choose another name with --out")
    elif out is not None and (out.suffix or out.is_file()):
        raise ConfigurationError(
            f"--out must be a {', '.join(TABLE_ENDINGS)} file or a folder, found `{out}`"
        )
    run = load_run(folder, trust=trust or (), device=device)
    if run.table is None:
        raise ConfigurationError(
            f"`{folder}` was not trained on a table, so it cannot predict rows: use its network in "
            "Python, as `load_run(...).model`"
        )
    default = predicts_at(run)
    # a saved estimator has a trade-off, any other run has none
    if ray is None and not chosen and default.ray is None:
        raise ConfigurationError(f"{RAY_OR_CHOICE}; found neither")
    with console.warnings_as_notes():
        chunks = read_chunks(rows, text=run.table.text, **options.get_table_format(run))
        # Read before the run is asked to choose, which may take long: mistakes in the file come
        # first.
        head = next(chunks)
        if not chosen:
            weights = list(default.ray or ()) if ray is None else options.parse_numbers(ray)
            decided = default.threshold if threshold is None else threshold
            # a threshold means nothing for numbers or several classes
            check_threshold(decided, decided=has_threshold(run), name=run.record["name"])
        else:
            criteria = options.collect_criteria(arguments)
            choice = run.choose(problem=run.problem(data=data), **criteria)
            weights, decided = list(choice.ray), choice.threshold
            chosen_ray = ", ".join(f"{weight:.4f}" for weight in choice.ray)
            also = "" if decided == MIDDLE else f", with the threshold {decided:g}"
            console.print_note(f"predicted at the ray {chosen_ray}{also}")
        predictor = _Predictor(run, rows, weights, decided)
        predictor.write(out, chain([head], chunks))
    if out is not None:
        console.print_note(f"`{out}`: {predictor.describe()}")
        console.print_next_command("export", folder)


class _Predictor:
    """Adds predictions to the rows of a table, several chunks of them at a time.

    Args:
        run: whose network predicts.
        rows: the table.
        ray: the trade-off.
        threshold: the probability above which a prediction is positive.
    """

    def __init__(self, run: Run, rows: Path, ray: list[float], threshold: float) -> None:
        self._run, self._rows, self._ray, self._threshold = run, rows, ray, threshold
        self._classes, self._decided = list_classes(run), has_threshold(run)
        self._count = self._positives = self._parts = 0

    def write(self, out: Path | None, chunks: "Iterable[pd.DataFrame]") -> None:
        """Write the rows with predictions to standard output, to a file, or to a folder."""
        if out is None:
            for number, frame in enumerate(self._predict(chunks)):
                # as it is: rich would wrap lines and colour numbers
                console.print_text(frame.to_csv(index=False, header=number == 0))
        elif out.suffix:
            self._write_file(out, chunks)
        else:
            self._write_parts(out, chunks)

    def describe(self) -> str:
        """Return the number of rows and of positive predictions."""
        if self._parts:
            return f"{self._count:,} rows predicted, in {self._parts:,} parts"
        if not self._decided:
            return f"{self._count:,} rows"
        return f"{self._count:,} rows, {self._positives:,} of them predicted `{self._classes[1]}`"

    def _write_file(self, path: Path, chunks: "Iterable[pd.DataFrame]") -> None:
        with write_chunks(path, rows=self._rows) as write:
            for frame in self._predict(chunks):
                write(frame)

    def _write_parts(self, folder: Path, chunks: "Iterable[pd.DataFrame]") -> None:
        """Write parts of a million rows, leaving out those that an earlier call has written."""
        state = self._rows.stat()
        settings = {
            "run": self._run.record["files"],
            "rows": [self._rows.name, state.st_size, state.st_mtime_ns],
            "ray": self._ray,
            "threshold": self._threshold,
        }
        with lock_folder(folder):
            path = folder / SETTINGS
            if path.exists() and read_json(path) != settings:
                raise RunError(
                    f"`{folder}` holds predictions of another run or table, or at another "
                    "trade-off: choose another folder with --out"
                )
            write_json(path, settings)
            # `rows.csv.gz` has two endings
            ending = next(e for e in TABLE_ENDINGS if self._rows.name.lower().endswith(e))
            numbered = enumerate(chunks)
            for number, part in groupby(numbered, key=lambda item: item[0] // PART):
                self._parts, path = number + 1, folder / f"part-{number:05}{ending}"
                if not path.exists():
                    self._write_file(path, (frame for _, frame in part))

    def _predict(self, chunks: "Iterable[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
        """Yield the chunks with their predictions, in order, computed by a thread per core."""
        on_cpu = next(self._run.model.parameters()).device.type == "cpu"
        threads = torch.get_num_threads() if on_cpu else 1
        # a network is for one thread at a time
        runs: SimpleQueue[Run] = SimpleQueue()
        for _ in range(threads):
            runs.put(replace(self._run, model=copy.deepcopy(self._run.model)))

        def predict(frame: "pd.DataFrame") -> "pd.DataFrame":
            run = runs.get()
            try:
                outputs = run.predict(frame, ray=self._ray)
                return add_predictions(frame, outputs, self._classes, self._threshold)
            finally:
                runs.put(run)

        # a thread of ours does more than one of torch's, which would wait for the others
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            waiting: deque[Future[pd.DataFrame]] = deque()
            for chunk in chunks:
                waiting.append(pool.submit(predict, chunk))
                # few at a time: read ahead, but not the whole table
                if len(waiting) > threads:
                    yield self._count_rows(waiting.popleft().result())
            while waiting:
                yield self._count_rows(waiting.popleft().result())

    def _count_rows(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        self._count += len(frame)
        if self._decided:
            self._positives += int((frame["probability"] > self._threshold).sum())
        return frame
