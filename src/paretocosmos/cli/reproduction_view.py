"""Output of `reproduce`: experiments as they are trained, and a table of their results."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paretocosmos.cli.console import err, escape, get_stdout, print_markup, print_table
from paretocosmos.io.formatting import format_duration, format_number
from paretocosmos.io.progress import show_live
from paretocosmos.paper.published import is_face_problem
from paretocosmos.training.progress import LOG_INTERVAL

if TYPE_CHECKING:
    from paretocosmos.paper.reproduce import ExperimentStatus, Reproduction

# Columns of a bar, and the longest name of an experiment beside it.
BAR, NAME = 24, 48
# Experiments that are named at the beginning, and while others run.
LISTED, SOON = 24, 3


class _View:
    """Running experiments, live in a terminal; elsewhere lines for ends and progress."""

    def __init__(self) -> None:
        self._reproduction: Reproduction | None = None
        self._states: dict[str, str] = {}
        self._last = time.monotonic()

    def show(self, reproduction: "Reproduction") -> None:
        """Show the progress of a reproduction."""
        first = self._reproduction is None
        self._reproduction = reproduction
        if first:
            self._announce(reproduction)
        for name, status in reproduction.statuses.items():
            before, self._states[name] = self._states.get(name), status.state
            if not first and status.state != before and status.state in ("done", "failed"):
                print_markup(err, escape(_describe_end(status)))
                self._last = 0.0  # print the progress after it
        now = time.monotonic()
        if not err.is_terminal and not first and now - self._last >= LOG_INTERVAL:
            self._last = now
            print_markup(err, escape(_summarize(reproduction)))
            for status in reproduction.select("running"):
                if status.progress is not None:
                    at = f"epoch {status.progress.epoch}/{status.progress.epochs}"
                    volume = format_number(status.progress.hypervolume_val)
                    print_markup(err, escape(f"  {status.experiment.name}  {at}  HV val {volume}"))

    def _announce(self, reproduction: "Reproduction") -> None:
        print_markup(err, escape(_title(reproduction)))
        done, waiting = reproduction.select("done"), reproduction.select("waiting")
        if waiting:
            if done:
                err.print(f"{len(done)} already done: they are kept")
            print_markup(err, escape(f"to come: {_list_names(waiting, LISTED)}"))

    def picture(self) -> RenderableType | None:
        """Return the experiments that run, and those that are next."""
        if self._reproduction is None:
            return None
        running = self._reproduction.select("running")
        waiting = self._reproduction.select("waiting")
        if not running and not waiting:
            return None
        table = Table.grid(padding=(0, 1))
        for status in running:
            progress, name = status.progress, status.experiment.name
            short = escape(name if len(name) <= NAME else f"{name[: NAME - 1]}…")
            if progress is None:
                table.add_row(short, "begins", "", "", "")
            else:
                table.add_row(
                    short,
                    f"{progress.epoch}/{progress.epochs}",
                    ProgressBar(progress.epochs, progress.epoch, width=BAR),
                    f"HV val {format_number(progress.hypervolume_val)}",
                    format_duration(progress.seconds_left),
                )
        then = [Text(f"then {_list_names(waiting, SOON)}", style="dim")] if waiting else []
        return Group(Text(_summarize(self._reproduction), style="bold"), table, *then)


@contextmanager
def show_experiments(*, quiet: bool) -> Iterator["Callable[[Reproduction], None]"]:
    """Show all experiments live on stderr."""
    if quiet:
        yield lambda _: None
        return
    view = _View()
    with show_live(view.picture, keep=False, need_stdout=False):
        yield view.show


def print_reproduction(reproduction: "Reproduction") -> None:
    """Print a row per experiment, and where the time went."""
    console = get_stdout()
    print_markup(console, f"[bold]{escape(_title(reproduction))}[/]")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    statuses = reproduction.statuses.values()
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
            status.state if status.asked or status.state != "waiting" else "begun",
        )
    print_table(console, table)
    if any(status.experiment.method == "single_task" for status in shown):
        console.print("for single_task it is the hypervolume of the ideal point of its networks")
    if len(shown) < len(statuses):
        console.print(f"and {len(statuses) - len(shown)} experiments that you did not ask for")
    seconds = reproduction.to_dict()["seconds"]
    phases = ", ".join(
        f"{format_duration(seconds[phase])} {phase}"
        for phase in ("training", "preparing", "evaluating")
    )
    print_markup(console, f"time: {format_duration(seconds['all'])}, of which {phases}")
    by_method = ", ".join(
        f"{name} {format_duration(s)}" for name, s in seconds["by_method"].items() if s
    )
    if by_method:
        print_markup(console, f"by method: {escape(by_method)}")
    console.print(f"[bold]all of it[/]  {escape(reproduction.file)}", soft_wrap=True)


def _title(reproduction: "Reproduction") -> str:
    recipe = reproduction.recipe
    title = f"{recipe.name}: {recipe.title}"
    if recipe.epochs is None:
        return title
    return f"REHEARSAL, {recipe.epochs} epoch{'s' * (recipe.epochs > 1)}, no results: {title}"


def _summarize(reproduction: "Reproduction") -> str:
    done, running, waiting, failed = (
        len(reproduction.select(state)) for state in ("done", "running", "waiting", "failed")
    )
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
    digits = 3 if is_face_problem(status.experiment.problem) else 2
    return f"{status.hypervolume_paper:.{digits}f}"
