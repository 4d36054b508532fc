"""Output of `reproduce` and `demo`: experiments in training, and a table of their results."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paretocosmos.cli.console import (
    err,
    escape,
    get_stdout,
    print_error,
    print_markup,
    print_note,
    print_path,
)
from paretocosmos.cli.options import describe_trust
from paretocosmos.io.formatting import format_duration, format_number
from paretocosmos.io.progress import show_live
from paretocosmos.paper.published import is_face_problem
from paretocosmos.training.progress import LOG_INTERVAL

if TYPE_CHECKING:
    from paretocosmos.paper import Reproduction
    from paretocosmos.paper.reproduction import ExperimentStatus

# Columns of a bar, and of the name of an experiment beside it.
# A terminal of 80 columns holds both, with the numbers beside them.
BAR_WIDTH, MAX_NAME = 24, 48
# Waiting experiments that are named at the beginning, and while others run.
MAX_QUEUED, MAX_NEXT = 24, 3


class _View:
    """View of running experiments: live in a terminal, else a line for each end and interval."""

    def __init__(self) -> None:
        self._reproduction: Reproduction | None = None
        # the last state seen of each experiment, to notice when it ends
        self._states: dict[str, str] = {}
        self._last = time.monotonic()

    def show(self, reproduction: "Reproduction") -> None:
        """Show the progress of a reproduction."""
        # what was done before this session is announced once, not as ends of experiments
        first = self._reproduction is None
        self._reproduction = reproduction
        if first:
            self._announce(reproduction)
        for name, status in reproduction.statuses.items():
            before, self._states[name] = self._states.get(name), status.state
            if not first and status.state != before and status.state in ("done", "failed"):
                print_markup(err, escape(_describe_end(status)))
                self._last = 0.0  # so that the progress is printed after it
        now = time.monotonic()
        # a log file gets lines now and then, where a terminal has a live display
        if not err.is_terminal and not first and now - self._last >= LOG_INTERVAL:
            self._last = now
            print_markup(err, escape(_describe_progress(reproduction)))
            for status in reproduction.select("running"):
                if status.progress is not None:
                    epoch = f"epoch {status.progress.epoch}/{status.progress.epochs}"
                    volume = f"HV val {format_number(status.progress.hypervolume_val)}"
                    print_markup(err, escape(f"  {status.experiment.name}  {epoch}  {volume}"))

    def _announce(self, reproduction: "Reproduction") -> None:
        print_markup(err, escape(_make_title(reproduction)))
        done, waiting = reproduction.select("done"), reproduction.select("waiting")
        if waiting:
            if done:
                err.print(f"{len(done)} already done and kept")
            print_markup(err, escape(f"waiting: {_list_names(waiting, MAX_QUEUED)}"))

    def render(self) -> RenderableType | None:
        """Return the running experiments and the next ones, or `None` if there are none."""
        if self._reproduction is None:
            return None
        running = self._reproduction.select("running")
        waiting = self._reproduction.select("waiting")
        # everything is done: the live display disappears
        if not running and not waiting:
            return None
        # built anew for each frame, as rich expects
        table = Table.grid(padding=(0, 1))
        for status in running:
            progress, name = status.progress, status.experiment.name
            # names of third-party code may contain brackets, which rich reads as markup
            short = escape(name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…")
            if progress is None:
                table.add_row(short, "starting", "", "", "")
            else:
                table.add_row(
                    short,
                    f"{progress.epoch}/{progress.epochs}",
                    ProgressBar(progress.epochs, progress.epoch, width=BAR_WIDTH),
                    f"HV val {format_number(progress.hypervolume_val)}",
                    format_duration(progress.seconds_left),
                )
        following = [Text(f"then {_list_names(waiting, MAX_NEXT)}", style="dim")] if waiting else []
        return Group(Text(_describe_progress(self._reproduction), style="bold"), table, *following)


@contextmanager
def show_experiments(*, quiet: bool) -> Iterator["Callable[[Reproduction], None]"]:
    """Show all experiments live on stderr."""
    if quiet:
        yield lambda _: None
        return
    view = _View()
    # on stderr, so that stdout stays free for `--json`
    with show_live(view.render, keep=False, need_stdout=False):
        yield view.show


def end_interrupted_recipe(out: Path) -> typer.Exit:
    """Print how to continue a recipe that Ctrl-C stopped, and return its exit."""
    print_note(f"interrupted; finished experiments are in {out}: run the same command to continue")
    return typer.Exit(130)


def exit_on_failures(reproduction: "Reproduction") -> None:
    """Print why experiments failed, if any did, and exit with code 1."""
    failed = reproduction.select("failed")
    for status in failed:
        advice = describe_trust(status.packages)
        print_error(f"{status.experiment.name}: {status.error}{advice}")
    # after the table, so that the error is the last thing in the terminal
    if failed:
        raise typer.Exit(1)


def print_reproduction(reproduction: "Reproduction") -> None:
    """Print a row per experiment, and what the time was spent on."""
    console = get_stdout()
    print_markup(console, f"[bold]{escape(_make_title(reproduction))}[/]")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    statuses = reproduction.statuses.values()
    # earlier results are shown beside those of this session
    shown = [s for s in statuses if s.asked or s.seeds_done or s.state == "failed"]
    compared = any(status.hypervolume_paper is not None for status in shown)
    table.add_column("experiment")
    for name in ("hypervolume", *(["the paper's"] if compared else []), "seeds", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state")
    for status in shown:
        table.add_row(
            escape(status.experiment.name),
            format_number(status.hypervolume),
            *([format_paper_volume(status)] if compared else []),
            f"{len(status.seeds_done)}/{len(status.experiment.seeds)}",
            format_duration(status.seconds) if status.seconds else "-",
            # one that was not asked for waits for nothing
            status.state if status.asked or status.state != "waiting" else "incomplete",
        )
    console.print(table)
    if any(status.experiment.method == "single_task" for status in shown):
        console.print("single_task: the hypervolume of the ideal point of its networks")
    if len(shown) < len(statuses):
        console.print(
            f"{len(statuses) - len(shown)} experiments that were not asked for are left out"
        )
    # the sums of the file, so that both agree
    seconds = reproduction.to_dict()["seconds"]
    phases = ", ".join(
        f"{format_duration(seconds[phase])} {phase}"
        for phase in ("training", "preparing", "evaluating")
    )
    print_markup(console, f"total time: {format_duration(seconds['all'])}, of which {phases}")
    by_method = ", ".join(
        f"{name} {format_duration(s)}" for name, s in seconds["by_method"].items() if s
    )
    if by_method:
        print_markup(console, f"time by method: {escape(by_method)}")
    print_path("results", reproduction.file)


def _make_title(reproduction: "Reproduction") -> str:
    recipe = reproduction.recipe
    title = f"{recipe.name}: {recipe.title}"
    if recipe.epochs is None:
        return title
    return f"REHEARSAL, {recipe.epochs} epoch{'s' * (recipe.epochs > 1)}, no results: {title}"


def _describe_progress(reproduction: "Reproduction") -> str:
    done, running, waiting, failed = (
        len(reproduction.select(state)) for state in ("done", "running", "waiting", "failed")
    )
    # only of those that were asked for, which `select` returns
    total = done + running + waiting + failed
    parts = [f"{done} of {total} experiments done", f"{running} running"]
    if failed:
        parts.append(f"{failed} failed")
    seconds = reproduction.seconds_left
    parts.append(
        "time left unknown" if seconds is None else f"about {format_duration(seconds)} left"
    )
    mark = "REHEARSAL  " if reproduction.recipe.epochs is not None else ""
    return mark + ", ".join(parts)


def _list_names(statuses: "Sequence[ExperimentStatus]", most: int) -> str:
    more = f" and {len(statuses) - most} more" if len(statuses) > most else ""
    return ", ".join(status.experiment.name for status in statuses[:most]) + more


def _describe_end(status: "ExperimentStatus") -> str:
    name = status.experiment.name
    if status.state == "failed":
        return f"failed  {name}: {status.error}"
    seeds = len(status.experiment.seeds)
    printed = format_paper_volume(status)
    paper = "" if status.hypervolume_paper is None else f" (the paper's {printed})"
    return (
        f"done    {name}  HV {format_number(status.hypervolume)}{paper}  "
        f"{seeds} seed{'s' if seeds > 1 else ''}  {format_duration(status.session_seconds)}"
    )


def format_paper_volume(status: "ExperimentStatus") -> str:
    """Return the paper's hypervolume with as many digits as it has in print."""
    if status.hypervolume_paper is None:
        return "-"
    # the table of CelebA has three digits, Table 1 has two
    digits = 3 if is_face_problem(status.experiment.problem) else 2
    return f"{status.hypervolume_paper:.{digits}f}"
