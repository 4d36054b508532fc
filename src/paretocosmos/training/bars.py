"""How far a training is: live bars where somebody looks, lines now and then in a log."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from paretocosmos.io.amounts import amount, clock, rate, share
from paretocosmos.io.display import WIDE, console, in_notebook, showing
from paretocosmos.io.tables import number
from paretocosmos.io.text import printable
from paretocosmos.training.progress import Progress

__all__ = ["Bars", "bars"]

# Columns that a bar takes beside its name, the losses, the hypervolume and the epochs.
TAKEN = 36
# The longest name of a loss where the whole ones have no room.
SHORT = 12
# Columns of a line in a log that the losses may take.
LONG = 100
# Seconds between two lines where stderr is no terminal; a training that is over earlier has none.
EVERY = 30.0


class _Left(ProgressColumn):
    """The time left: what was estimated after the last epoch, less what has passed since."""

    def render(self, task: Task) -> Text:
        end = task.fields["end"]
        left = "-:--:--" if end is None else clock(end - time.monotonic())
        return Text(left, style="progress.remaining")


class Bars:
    """A bar for each of several trainings, and below them what the one that runs costs.

    Call it with a training's name and where it stands.

    Args:
        seen: gets the folder of the last progress.
        log: whether to write a line now and then where stderr is no terminal.
    """

    def __init__(self, seen: list[Path], *, log: bool) -> None:
        self._seen, self._log = seen, log and not console().is_terminal
        self._last, self._cost = time.monotonic(), ""
        self._tasks: dict[str, TaskID] = {}
        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            MofNCompleteColumn(),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[losses]}", markup=False),
            TextColumn("HV val {task.fields[hypervolume]}"),
            _Left(),
            auto_refresh=False,
        )

    def expect(self, epochs: int, *names: str) -> None:
        """Show trainings that are still to come, with their epochs; no name where there is one."""
        for name in names:
            if name not in self._tasks:
                shown = printable(name) or "epoch"
                self._tasks[name] = self._bar.add_task(
                    shown, total=epochs, losses="", hypervolume="-", end=None
                )

    def __call__(self, name: str, at: Progress) -> None:
        """Show where a training stands."""
        self._seen[:] = [at.folder]
        self.expect(at.epochs, name)
        self._cost = _cost(at)
        widest = max(len(printable(name) or "epoch") for name in self._tasks)
        room = _width() - TAKEN - widest - len(number(at.hypervolume_val)) - 2 * len(str(at.epochs))
        self._bar.update(
            self._tasks[name],
            total=at.epochs,
            completed=at.epoch,
            losses=printable(_losses(at, room)),
            hypervolume=number(at.hypervolume_val),
            end=time.monotonic() + at.seconds_left,
        )
        self._line(name, at)

    def picture(self) -> RenderableType | None:
        """The bars of now; nothing before there is one, so a refusal is a sentence without one."""
        if not self._tasks:
            return None
        cost: Iterable[RenderableType] = [Text(self._cost, style="dim")] if self._cost else []
        return Group(self._bar.get_renderable(), *cost)

    def _line(self, name: str, at: Progress) -> None:
        """A plain line for a log, if the last one is long ago."""
        now = time.monotonic()
        if not self._log or now - self._last < EVERY:
            return
        self._last = now
        parts = [
            *([name] if name else []),
            f"epoch {at.epoch}/{at.epochs}",
            _losses(at, LONG),
            f"HV val {number(at.hypervolume_val)}",
            _cost(at),
            f"{clock(at.seconds_left)} left",
        ]
        console().print(printable("  ".join(parts)), markup=False, soft_wrap=True)


_now: list[Bars] = []  # those that are shown, if any


@contextmanager
def bars(
    seen: list[Path] | None = None, *, quiet: bool = False, log: bool = False, left: bool = True
) -> Iterator[Bars]:
    """Bars for a terminal or a notebook, one for each training by its name.

    Inside of another call they are that one's, so that a caller decides where a training is shown.

    Args:
        seen: gets the folder of the last progress.
        quiet: show nothing.
        log: write lines where stderr is no terminal, and bars wherever stdout goes.
        left: whether finished bars stay where they were shown.
    """
    if _now:
        yield _now[-1]
        return
    own = Bars([] if seen is None else seen, log=log and not quiet)
    _now.append(own)
    try:
        with nullcontext() if quiet else showing(own.picture, left=left, stdout=not log):
            yield own
    finally:
        _now.remove(own)


def _width() -> int:
    return WIDE if in_notebook() else console().width


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
