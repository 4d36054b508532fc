"""How far a training is, on stderr: live bars in a terminal, lines now and then in a log."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from paretocosmos.cli.output._console import err, safe
from paretocosmos.cli.output._cost import amount, clock, rate, share
from paretocosmos.training.progress import Progress

# Columns that a bar takes beside the losses, the hypervolume and the epochs.
TAKEN = 41
# The longest name of a loss where the whole ones have no room.
SHORT = 12
# Columns of a line in a log that the losses may take.
WIDE = 100
# Seconds between two lines where stderr is no terminal; a training that is over earlier has none.
EVERY = 30.0


class _Left(ProgressColumn):
    """The time left: what was estimated after the last epoch, less what has passed since."""

    def render(self, task: Task) -> Text:
        end = task.fields["end"]
        left = "-:--:--" if end is None else clock(end - time.monotonic())
        return Text(left, style="progress.remaining")


class _Bars(Bar):
    """Bars, and below them what the training costs."""

    cost = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.cost:
            yield Text(self.cost, style="dim")


class _Lines:
    """Now and then a plain line, for logs."""

    def __init__(self, *, quiet: bool) -> None:
        self._silent = quiet or err.is_terminal
        self._last = time.monotonic()

    def show(self, at: Progress, method: str) -> None:
        """Write a line if the last one is long ago."""
        now = time.monotonic()
        if self._silent or now - self._last < EVERY:
            return
        self._last = now
        parts = [
            *([method] if method else []),
            f"epoch {at.epoch}/{at.epochs}",
            _losses(at, WIDE),
            f"HV val {_reached(at)}",
            _cost(at),
            f"{clock(at.seconds_left)} left",
        ]
        err.print(safe("  ".join(parts)), soft_wrap=True)


@contextmanager
def bars(seen: list[Path], *, quiet: bool) -> Iterator[Callable[[str, Progress], None]]:
    """A live bar for each method."""
    columns = TextColumn("{task.description:<12}"), MofNCompleteColumn(), BarColumn(bar_width=24)
    with _shown(seen, columns, quiet=quiet) as show:
        yield show


@contextmanager
def bar(seen: list[Path], *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A live bar on stderr: epoch, losses, validation hypervolume, time left; and the cost."""
    losses = TextColumn("{task.fields[losses]}")
    columns = TextColumn("epoch"), MofNCompleteColumn(), BarColumn(bar_width=16), losses
    with _shown(seen, columns, quiet=quiet) as show:
        yield lambda at: show("", at)


@contextmanager
def _shown(
    seen: list[Path], columns: tuple[ProgressColumn, ...], *, quiet: bool
) -> Iterator[Callable[[str, Progress], None]]:
    """Bars for a terminal, a task for each method; a log has lines instead.

    Args:
        seen: gets the folder of the last progress.
        columns: what comes before the hypervolume and the time left.
        quiet: show neither.
    """
    reached = TextColumn("HV val {task.fields[hypervolume]}")
    live = _Bars(*columns, reached, _Left(), console=err, disable=quiet or not err.is_terminal)
    lines, tasks = _Lines(quiet=quiet), dict[str, TaskID]()

    def show(method: str, at: Progress) -> None:
        seen[:] = [at.folder]
        if method not in tasks:
            tasks[method] = live.add_task(safe(method), losses="", hypervolume="-", end=None)
        live.cost = _cost(at)
        room = err.width - TAKEN - len(_reached(at)) - 2 * len(str(at.epochs))
        live.update(
            tasks[method],
            total=at.epochs,
            completed=at.epoch,
            losses=safe(_losses(at, room)),
            hypervolume=_reached(at),
            end=time.monotonic() + at.seconds_left,
        )
        live.start()  # not earlier: what is refused is one sentence, without a bar
        lines.show(at, method)

    try:
        yield show
    finally:
        if live.live.is_started:
            live.stop()


def _reached(at: Progress) -> str:
    return "-" if at.hypervolume_val is None else f"{at.hypervolume_val:.4f}"


def _losses(at: Progress, room: int) -> str:
    """Every loss by its name, the names cut where need be; else as many numbers as have room."""
    for longest in (None, SHORT):
        names = [
            n if longest is None or len(n) <= longest else f"{n[: longest - 1]}…" for n in at.losses
        ]
        said = "  ".join(f"{n} {v:.3f}" for n, v in zip(names, at.losses.values(), strict=True))
        if len(said) <= room:
            return said
    numbers = [f"{value:.3f}" for value in at.losses.values()]
    for left_out in range(len(numbers)):
        more = [f"+{left_out}"] if left_out else []
        said = "  ".join([*numbers[: len(numbers) - left_out], *more])
        if len(said) <= room:
            return said
    return ""


def _cost(at: Progress) -> str:
    parts = [rate(at.samples_per_second, at.unit)]
    if at.memory is not None:
        parts.append(amount(at.memory))
    return "  ".join([*parts, f"{share(at.waiting)} waiting for data"])
