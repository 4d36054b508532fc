"""What the command line shows: tables and JSON on stdout, notes and the bar on stderr."""

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from paretocosmos.front import Front
from paretocosmos.loop import Progress
from paretocosmos.run import Run

__all__ = [
    "bar",
    "error",
    "note",
    "notes",
    "numbers_of_run",
    "print_front",
    "print_json",
    "print_run",
    "print_runs",
]

err = Console(stderr=True, highlight=False)


def error(message: str) -> None:
    """One sentence on stderr."""
    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


def note(message: str) -> None:
    """Something to know, on stderr."""
    err.print(f"[yellow]note:[/] {escape(message)}", soft_wrap=True)


def print_json(content: object) -> None:
    """One line of JSON on stdout."""
    sys.stdout.write(json.dumps(content) + "\n")


def numbers_of_run(run: Run) -> dict[str, Any]:
    """What `train --json` prints."""
    record, test = run.record, run.record["metrics"]["test"]
    return {
        "run": str(run.folder),
        "problem": run.front.provenance["problem"],
        "method": record["method"]["name"],
        "protocol": record["protocol"],
        "seed": record["seed"],
        "parameters": record["parameters"],
        **test,
        "hypervolume_val": record["metrics"]["val"]["hypervolume"],
        "epoch_selected": record["epoch_selected"],
        "seconds_training": record["seconds_training"],
        "seconds_to_selected": record["seconds_to_selected"],
        "seconds_preparing": record["seconds_preparing"],
        "seconds_evaluating": record["seconds_evaluating"],
        "seeds_together": record["seeds_together"],
        "precision": record["precision"],
        "engine": record["engine"],
        "scores": run.front.provenance["scores"],
    }


def print_run(run: Run) -> None:
    """What `train` ends with."""
    numbers, front = numbers_of_run(run), run.front
    ends = [front.values[index] for index in (0, len(front) - 1)]
    table = Table(show_header=False, box=None, padding=(0, 2))
    reference = ", ".join(f"{value:g}" for value in front.reference)
    for name, value in {
        "hypervolume": f"{numbers['hypervolume']:.4f} test, {numbers['hypervolume_val']:.4f} val, "
        f"at ({reference})",
        "span": f"{numbers['span']:.4f}",
        "dominated": f"{numbers['dominated_share']:.0%} of {len(front)} rays",
        "objectives": ", ".join(front.names),
        **_meaning(run),
        "ends of the front": " to ".join(
            "(" + ", ".join(f"{value:.4f}" for value in end) + ")" for end in ends
        ),
        "training": f"{numbers['seconds_training']:.1f} s, epoch {numbers['epoch_selected']} "
        f"selected, {numbers['parameters']:,} parameters",
        "engine": f"{numbers['engine']} on {_device(run)}, {numbers['seconds_preparing']:.1f} s to "
        f"prepare",
        "scores": f"{numbers['scores']} ({numbers['protocol']} protocol)",
    }.items():
        table.add_row(f"[bold]{name}[/]", escape(value))
    console = Console(highlight=False)
    console.print(table, soft_wrap=True)
    # outside the table, which would break a long path in two
    console.print(f"  [bold]{'run':<21}[/]{escape(str(run.folder))}", soft_wrap=True)
    if numbers["dominated_share"] > 0.5:
        note(
            "most rays are dominated, so there is little to choose from: the objectives may hardly "
            "conflict on this data; try another --penalty, or --set groups=4"
        )


def _device(run: Run) -> str:
    """Where, and how precisely where that is a choice."""
    device, precision = run.record["device"], run.record["precision"]
    return device if device == "cpu" and precision == "tf32" else f"{device}, {precision}"


def _meaning(run: Run) -> dict[str, str]:
    """Which class a table's network predicts, and whom it compares; what images it looks at."""
    about = run.record["about"]
    said = {}
    if {"positive", "target"} <= about.keys():
        said["predicts"] = f"`{about['positive']}` of `{about['target']}`"
    if {"sensitive", "groups"} <= about.keys():
        said["compares"] = f"`{about['sensitive']}`: {', '.join(about['groups'])}"
    if "images" in about:
        said["images"] = str(about["images"])
    return said


def print_runs(runs: Sequence[Run]) -> None:
    """What `train --seeds` ends with: a row per seed, their mean, and how they were trained."""
    every = [numbers_of_run(run) for run in runs]
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for name in ("seed", "hypervolume", "val", "span", "dominated", "epoch"):
        table.add_column(name, justify="right")
    table.add_column("run", overflow="fold")
    for numbers in every:
        table.add_row(
            str(numbers["seed"]),
            f"{numbers['hypervolume']:.4f}",
            f"{numbers['hypervolume_val']:.4f}",
            f"{numbers['span']:.4f}",
            f"{numbers['dominated_share']:.0%}",
            str(numbers["epoch_selected"]),
            escape(numbers["run"]),
        )
    console = _wide()
    console.print(table)
    reached = [numbers["hypervolume"] for numbers in every]
    spread = f" ± {stdev(reached):.4f}" if len(reached) > 1 else ""
    lead = every[0]
    together = lead["seeds_together"]
    seconds = sum(numbers["seconds_training"] / numbers["seeds_together"] for numbers in every)
    console.print(
        f"  [bold]mean hypervolume {fmean(reached):.4f}{spread}[/] on test; {seconds:.1f} s of "
        f"training in all, {together} {'seeds' if together > 1 else 'seed'} at a time, engine "
        f"{escape(lead['engine'])} on {_device(runs[0])}",
        soft_wrap=True,
    )


def print_front(front: Front) -> None:
    """One row per ray; 80 columns hold two objectives with their metrics."""
    metrics_shown = [name for name in front.metrics if name != "misclassification"]  # 1 - accuracy
    weights = front.names[:1] if front.objectives == 2 else front.names
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in (*(f"weight on {name}" for name in weights), *front.names, *metrics_shown):
        table.add_column(name.replace("_", " "), justify="right", overflow="fold")
    table.add_column("", no_wrap=True)
    keep = front.non_dominated
    for index in range(len(front)):
        row = [*front.rays[index][: len(weights)], *front.values[index]]
        row += [front.metrics[name][index] for name in metrics_shown]
        table.add_row(*(f"{value:.3f}" for value in row), "" if keep[index] else "dominated")
    _wide().print(table)


def _wide() -> Console:
    """For tables: a pipe has no width, so nothing needs to be cut or folded there."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 240)


@contextmanager
def notes() -> Iterator[None]:
    """Show warnings as notes on stderr, each once; a refusal stands alone."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note(message)


@contextmanager
def bar(seen: list[Path], *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A live bar on stderr: epoch, losses, validation hypervolume, time left."""
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[losses]}"),
        TextColumn("HV val {task.fields[hypervolume]}"),
        TimeRemainingColumn(),
    )
    live = Bar(*columns, console=err, disable=quiet)
    task = live.add_task("train", total=None, losses="", hypervolume="-")

    def show(at: Progress) -> None:
        seen[:] = [at.folder]
        reached = "-" if at.hypervolume_val is None else f"{at.hypervolume_val:.4f}"
        losses = "  ".join(f"{name} {value:.3f}" for name, value in at.losses.items())
        live.update(
            task,
            total=at.epochs,
            completed=at.epoch,
            losses=escape(losses),
            hypervolume=reached,
        )
        live.start()  # not earlier: what is refused is one sentence, without a bar

    try:
        yield show
    finally:
        if live.live.is_started:
            live.stop()
