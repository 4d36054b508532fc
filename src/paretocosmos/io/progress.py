"""Live display for terminals and notebooks: what the program does now, and progress bars.

Code that may take a while says so with `status`. The display is drawn at the end of a terminal or
in the output of a notebook's cell: pictures (such as bars) one below the other, then the innermost
status. There is no display where output goes to a file or a pipe. This is the only module with such
state, since a process has only one terminal. Rich is imported when something is drawn, so that
`import paretocosmos` stays light.
"""

import io
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from paretocosmos.io.formatting import sanitize

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# A function, so that every redraw shows the state of that moment.
Picture = Callable[[], "RenderableType | None"]

TERMINAL_RATE, NOTEBOOK_RATE = 5, 3
"""Redraws per second; a notebook sends every picture to its browser."""
NOTEBOOK_WIDTH = 100
"""Columns of a notebook's cell."""
STATUS_DELAY = 0.7
"""Seconds before a status is named below a bar, which moves by itself."""


class Status(NamedTuple):
    """An activity, and when it began on the monotonic clock."""

    text: str
    since: float


class _Display:
    """Everything that is shown, and the screen it is drawn on."""

    def __init__(self) -> None:
        self.screen: _Terminal | _Notebook | None = None
        self.statuses: list[Status] = []
        self.pictures: list[Picture] = []
        self.notes: list[str] = []
        self.takes_notes = self.ended = False

    def draw(self) -> "RenderableType":
        """Return all pictures, notes and the status as they are now."""
        from rich.console import Group

        return Group(*self._draw_pictures(), *([] if self.ended else self._draw_status()))

    def end(self) -> bool:
        """Draw no status from now on; return True if a picture remains."""
        self.ended = True
        return bool(self._draw_pictures())

    def clear(self) -> None:
        """Forget the pictures and the screen; activities go on."""
        self.pictures.clear()
        self.notes.clear()
        self.screen, self.takes_notes, self.ended = None, False, False

    def _draw_pictures(self) -> "list[RenderableType]":
        from rich.text import Text

        # copies of the lists: a thread redraws while pictures and notes come and go
        drawn = [picture() for picture in [*self.pictures]]
        notes = [Text(sanitize(note)) for note in [*self.notes]]
        return [*(picture for picture in drawn if picture is not None), *notes]

    def _draw_status(self) -> "list[RenderableType]":
        if not self.statuses:
            return []
        status = self.statuses[-1]  # which began last and is not over
        from rich.spinner import Spinner
        from rich.text import Text

        elapsed = time.monotonic() - status.since
        if elapsed < STATUS_DELAY and self._draw_pictures():
            return []
        seconds = f"  {elapsed:.0f} s" if elapsed >= 1 else ""
        text = Text(f"{sanitize(status.text)}{seconds}", style="dim", overflow="ellipsis")
        # a second line would make the display jump
        text.no_wrap = True
        spinner = Spinner("dots", text=text)
        spinner.start_time = status.since  # its picture follows from the time
        return [spinner]


_display = _Display()


@contextmanager
def status(text: str) -> Iterator[None]:
    """Say what the body does, in a few words such as "loading adult".

    >>> with status("training"), status("validating"):
    ...     [activity.text for activity in _display.statuses]
    ['training', 'validating']
    """
    entry = Status(text, time.monotonic())
    _display.statuses.append(entry)
    try:
        yield
    finally:
        # not the last one: activities of several threads may end in any order
        _display.statuses.remove(entry)


@contextmanager
def progress_bar(
    text: str, total: int | None, *, of_bytes: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show a bar for something that takes minutes.

    Args:
        text: what is done, in a few words.
        total: how much there is; `None` if that is unknown.
        of_bytes: whether bytes are counted, or pieces.

    Yields:
        A function to call with how much more is done.
    """
    from rich import progress

    count = progress.DownloadColumn() if of_bytes else progress.MofNCompleteColumn()
    columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), count)
    # holds the state of the bar; drawing it is left to the display, with all other pictures
    bar = progress.Progress(*columns, progress.TimeRemainingColumn(), auto_refresh=False)
    task = bar.add_task(text, total=total)
    with show_live(bar.get_renderable):
        yield lambda done: bar.advance(task, done)


@cache
def get_console() -> "Console":
    """Return the console of stderr, on which everything that moves is drawn."""
    from rich.console import Console

    # without highlights, which would colour every number in a message
    return Console(stderr=True, highlight=False)


def in_notebook() -> bool:
    """Return True in the kernel of a notebook, whose outputs are HTML."""
    # looked up, not imported: in a notebook it is there already
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def open_terminal_display() -> None:
    """Show statuses of a whole program; do nothing if stderr is no terminal."""
    console = get_console()
    if _display.screen is None and console.is_terminal and console.is_interactive:
        _display.screen = _Terminal()


def close_display() -> None:
    """End the display, so that others can print; pictures stay as they were last."""
    if _display.screen is not None:
        _display.screen.close(keep=_display.end())
    _display.clear()


def print_note(line: str) -> None:
    """Write a line below the bars of a library call; the command line prints for itself."""
    if _display.takes_notes:
        _display.notes.append(line)


@contextmanager
def show_live(picture: Picture, *, keep: bool = True, need_stdout: bool = True) -> Iterator[None]:
    """Show a picture: below what is shown already, or on a display of its own.

    Args:
        picture: returns what to draw whenever it is asked, or `None` for nothing.
        keep: whether the last picture stays.
        need_stdout: whether stdout must be a terminal too, so that no script's output is piped.
    """
    # whoever opens the display closes it; later pictures join it
    opened = _display.screen is None and _open_display(need_stdout=need_stdout)
    if _display.screen is not None:
        _display.pictures.append(picture)
    _display.takes_notes = _display.takes_notes or (opened and need_stdout)
    try:
        with _warnings_as_notes() if opened and need_stdout else nullcontext():
            yield
    finally:
        # the display may have been closed meanwhile, which forgets all pictures
        if not keep and picture in _display.pictures:
            _display.pictures.remove(picture)
        if opened:
            close_display()


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Turn warnings of this package into lines below the bars, without a line of its source."""
    showwarning = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if category.__module__.partition(".")[0] == __name__.partition(".")[0]:
            print_note(f"note: {message}")
        else:
            showwarning(message, category, *rest, **named)

    # printed as usual, a warning would break the bars apart
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = showwarning


def _open_display(*, need_stdout: bool) -> bool:
    """Open a display for a library call: in a notebook, or a terminal that shows all its output.

    Threads and processes of a search would draw over one another.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    from multiprocessing import current_process

    if current_process().name != "MainProcess":
        return False
    if in_notebook():
        _display.screen = _Notebook()
    elif not need_stdout or _is_stdout_terminal():
        open_terminal_display()
    return _display.screen is not None


def _is_stdout_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


class _Terminal:
    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(
            get_renderable=_display.draw,
            console=get_console(),
            refresh_per_second=TERMINAL_RATE,
            # what is printed meanwhile appears above the bars; a pipe must get it unchanged
            redirect_stdout=_is_stdout_terminal(),
        )
        self._live.start(refresh=True)

    def close(self, *, keep: bool) -> None:
        self._live.transient = not keep
        self._live.stop()


class _Notebook:
    # not rich's own notebook support, which redraws by clearing the whole output of the cell
    def __init__(self) -> None:
        from IPython.display import display

        self._over = threading.Event()
        self._handle = display(self._export(), raw=True, display_id=True)
        # a daemon, so that an interrupted training cannot keep the process alive
        self._thread = threading.Thread(target=self._redraw, daemon=True)
        self._thread.start()

    def _export(self) -> dict[str, str]:
        from rich.console import Console

        console = Console(
            file=io.StringIO(),
            record=True,
            width=NOTEBOOK_WIDTH,
            force_terminal=True,
            # else rich displays it by itself
            force_jupyter=False,
        )
        console.print(_display.draw())
        page = console.export_html(
            inline_styles=True,
            code_format='<pre style="line-height:1.3;margin:0">{code}</pre>',
            clear=False,
        )
        return {"text/html": page, "text/plain": console.export_text().rstrip()}

    def _redraw(self) -> None:
        # waits on the event instead of sleeping, so that closing takes no time
        while not self._over.wait(1 / NOTEBOOK_RATE):
            self._handle.update(self._export(), raw=True)

    def close(self, *, keep: bool) -> None:
        self._over.set()
        with suppress(RuntimeError):  # the kernel ends, and closes the display in its own thread
            self._thread.join()
        self._handle.update(self._export() if keep else {"text/plain": ""}, raw=True)
