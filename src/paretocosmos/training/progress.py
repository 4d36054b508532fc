"""Progress of a training: numbers after every epoch, live bars, and lines in a log."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from paretocosmos.io.formatting import (
    format_bytes,
    format_duration,
    format_number,
    format_share,
    sanitize,
)
from paretocosmos.io.progress import NOTEBOOK_WIDTH, get_console, in_notebook, show_live

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import TaskID

# The fraction of a training's time that checkpoints may take, and seconds they may always take.
CHECKPOINT_FRACTION, FREE_SECONDS = 0.05, 2.0

# Columns that a bar takes beside its name, the losses, the hypervolume and the epochs.
FIXED_COLUMNS = 36
# The longest name of a loss where the whole names do not fit: long enough to tell losses apart.
SHORT_NAME = 12
# Columns of a line in a log that the losses may take: a log has no width, but people read it.
LOG_COLUMNS = 100
LOG_INTERVAL = 30.0
"""Seconds between two lines where stderr is no terminal; a shorter training has none."""


@dataclass(frozen=True)
class Progress:
    """The state of a training; passed to `fit`'s `progress` after every epoch.

    Attributes:
        epoch: epochs done.
        epochs: epochs in all.
        losses: the epoch's mean training loss of every objective, over all seeds.
        hypervolume_val: the last validation's hypervolume, averaged over seeds; `None` before the
            first.
        seconds: training time so far.
        engine: the engine that runs the steps.
        folder: the run folder; that of the first seed where several train together.
        unit: what a sample is called, ``"images"`` or ``"samples"``.
        samples_per_second: the epoch's training samples a second, of all networks and all seeds
            that train together, as in ``run.json``.
        seconds_left: an estimate of the time to the end, evaluations included.
        memory: the peak memory in bytes: on a GPU of this training, on a CPU of the process;
            `None` if the system does not say.
        waiting: the fraction of the epoch's training time spent waiting for data; 0 if all data is
            on the device.
    """

    epoch: int
    epochs: int
    losses: Mapping[str, float]
    hypervolume_val: float | None
    seconds: float
    engine: str
    folder: Path
    unit: str
    samples_per_second: float
    seconds_left: float
    memory: int | None
    waiting: float


ProgressCallback = Callable[[Progress], None]
"""A function that is called after every epoch."""


class EpochSteps(NamedTuple):
    """The result of an epoch's steps: losses ``[steps, K, J]`` of all K networks, and times."""

    losses: Tensor
    seconds: float
    preparing: float
    waited: float


class CheckpointBudget:
    """The time that checkpoints may take.

    There is one after every epoch, unless epochs are so short and networks so large that writing
    would cost more than a fraction of the training: then it waits for a later epoch.

    >>> budget = CheckpointBudget()
    >>> budget.add(training=0.5, saving=3.0)
    >>> budget.due
    False
    >>> budget.add(training=30.0, saving=0.0)
    >>> budget.due
    True
    """

    def __init__(self) -> None:
        self._training, self._saving = 0.0, 0.0

    @property
    def due(self) -> bool:
        """True if a checkpoint should be written now."""
        # what was written before counts: a large checkpoint is paid back by more epochs without one
        return self._saving <= FREE_SECONDS + CHECKPOINT_FRACTION * self._training

    def add(self, *, training: float, saving: float) -> None:
        """Add an epoch.

        Args:
            training: seconds of its steps.
            saving: seconds of its checkpoint, 0 if it had none.
        """
        self._training += training
        self._saving += saving


class Bars:
    """A bar for each of several trainings, and below them the speed of the one that runs.

    Args:
        folders: gets the folder of the last progress.
        log: whether to write a line now and then where stderr is no terminal.
    """

    def __init__(self, folders: list[Path], *, log: bool) -> None:
        # here, since trainings without bars need no `rich`, which is slow to import
        from rich import progress
        from rich.text import Text

        class TimeLeft(progress.ProgressColumn):
            """The estimate after the last epoch, less the time that has passed since."""

            def render(self, task: progress.Task) -> Text:
                end = task.fields["end"]
                text = "-:--:--" if end is None else format_duration(end - time.monotonic())
                return Text(text, style="progress.remaining")

        self._folders, self._log = folders, log and not get_console().is_terminal
        self._last_line, self._cost = time.monotonic(), ""
        self._tasks: dict[str, TaskID] = {}
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.MofNCompleteColumn(),
            progress.BarColumn(bar_width=16),
            progress.TextColumn("{task.fields[losses]}", markup=False),
            progress.TextColumn("HV val {task.fields[hypervolume]}"),
            TimeLeft(),
            auto_refresh=False,  # `show_live` redraws, and two threads would garble the terminal
        )

    def add(self, name: str, epochs: int) -> ProgressCallback:
        """Add a bar and return the callback of its training."""
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(
                sanitize(name) or "epoch", total=epochs, losses="", hypervolume="-", end=None
            )
        return partial(self.update, name)

    def remove(self, name: str) -> None:
        """Remove the bar of a training that has ended, if it has one."""
        if name in self._tasks:
            self._bar.remove_task(self._tasks.pop(name))

    def update(self, name: str, progress: Progress) -> None:
        """Show where a training stands."""
        self._folders[:] = [progress.folder]
        self.add(name, progress.epochs)  # trainings that were not announced get their bar now
        self._cost = _format_cost(progress)
        hypervolume = format_number(progress.hypervolume_val)
        widest = max(len(sanitize(name) or "epoch") for name in self._tasks)
        width = NOTEBOOK_WIDTH if in_notebook() else get_console().width
        # losses take what is left; rich would otherwise wrap the line, and lines would jump
        room = width - FIXED_COLUMNS - widest - len(hypervolume) - 2 * len(str(progress.epochs))
        self._bar.update(
            self._tasks[name],
            total=progress.epochs,
            completed=progress.epoch,
            losses=sanitize(_format_losses(progress, room)),
            hypervolume=hypervolume,
            end=time.monotonic() + progress.seconds_left,
        )
        if self._log and time.monotonic() - self._last_line >= LOG_INTERVAL:
            self._last_line = time.monotonic()
            self._print_line(name, progress)

    def draw(self) -> "RenderableType | None":
        """Return the bars; `None` before the first, so that an error is all that is printed."""
        from rich.console import Group
        from rich.text import Text

        if not self._tasks:
            return None
        cost: Iterable[RenderableType] = [Text(self._cost, style="dim")] if self._cost else []
        return Group(self._bar.get_renderable(), *cost)

    def _print_line(self, name: str, progress: Progress) -> None:
        columns = [
            *([name] if name else []),
            f"epoch {progress.epoch}/{progress.epochs}",
            _format_losses(progress, LOG_COLUMNS),
            f"HV val {format_number(progress.hypervolume_val)}",
            _format_cost(progress),
            f"{format_duration(progress.seconds_left)} left",
        ]
        get_console().print(sanitize("  ".join(columns)), markup=False, soft_wrap=True)


_shown: list[Bars] = []  # the bars of the outermost call; nested calls add theirs to them


@contextmanager
def show_bars(
    folders: list[Path] | None = None, *, quiet: bool = False, log: bool = False, keep: bool = True
) -> Iterator[Bars]:
    """Show bars in a terminal or a notebook, one for each training by its name.

    Inside of another call they are that one's, so that a caller decides where a training is shown.

    Args:
        folders: gets the folder of the last progress.
        quiet: show nothing.
        log: write lines where stderr is no terminal, and bars wherever stdout goes.
        keep: whether finished bars stay where they were shown.
    """
    if _shown:
        yield _shown[-1]
        return
    bars = Bars([] if folders is None else folders, log=log and not quiet)
    _shown.append(bars)
    try:
        with nullcontext() if quiet else show_live(bars.draw, keep=keep, need_stdout=not log):
            yield bars
    finally:
        _shown.remove(bars)


@contextmanager
def follow_progress(
    callback: ProgressCallback | bool, *, first: bool = True
) -> Iterator[Callable[[str, int], ProgressCallback | None]]:
    """Choose the progress callback of trainings that are planned later.

    Args:
        callback: the caller's function; `True` for bars, `False` for none.
        first: set in the first of several processes, the only one that shows bars.

    Yields:
        A function from a training's name and epochs to its callback.
    """
    if callback is True and first:
        with show_bars() as bars:
            yield bars.add
    else:
        function = callback if callable(callback) else None
        yield lambda _name, _epochs: function


def _format_losses(progress: Progress, room: int) -> str:
    """Format every loss with its name, shortened if need be; else as many numbers as fit."""
    losses = progress.losses
    # whole names, then short ones, then numbers alone: a line must not wrap
    for longest in (max(map(len, losses), default=0), SHORT_NAME):
        names = [n if len(n) <= longest else f"{n[: longest - 1]}…" for n in losses]
        text = "  ".join(f"{n} {v:.3f}" for n, v in zip(names, losses.values(), strict=True))
        if len(text) <= room:
            return text
    numbers = [f"{value:.3f}" for value in losses.values()]
    for omitted in range(len(numbers)):
        more = [f"+{omitted}"] if omitted else []
        text = "  ".join([*numbers[: len(numbers) - omitted], *more])
        if len(text) <= room:
            return text
    return ""


def _format_cost(progress: Progress) -> str:
    rate = progress.samples_per_second
    columns = [f"{rate:,.{0 if rate >= 10 else 1}f} {progress.unit}/s"]
    if progress.memory is not None:
        columns.append(format_bytes(progress.memory))
    return "  ".join([*columns, f"{format_share(progress.waiting)} waiting for data"])
