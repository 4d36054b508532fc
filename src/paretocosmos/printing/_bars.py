"""Live bars on stderr, in which a person sees a training advance."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from paretocosmos.loop import Progress
from paretocosmos.printing._console import err

__all__ = ["bar", "bars"]


@contextmanager
def bars(seen: list[Path], *, quiet: bool) -> Iterator[Callable[[str, Progress], None]]:
    """A live bar for each method."""
    columns = (
        TextColumn("{task.description:<12}"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("HV val {task.fields[hypervolume]}"),
        TimeRemainingColumn(),
    )
    live = Bar(*columns, console=err, disable=quiet)
    tasks: dict[str, TaskID] = {}

    def show(method: str, at: Progress) -> None:
        seen[:] = [at.folder]
        if method not in tasks:
            tasks[method] = live.add_task(escape(method), total=at.epochs, hypervolume="-")
        reached = "-" if at.hypervolume_val is None else f"{at.hypervolume_val:.4f}"
        live.update(tasks[method], completed=at.epoch, hypervolume=reached)
        live.start()

    try:
        yield show
    finally:
        if live.live.is_started:
            live.stop()


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
