"""The one place that moves: the end of a terminal, or the output of a notebook's cell.

Parts (bars) are shown below one another, and below them what is under way. A program whose output
goes into a file or a pipe has no such place.
"""

import io
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from paretocosmos.io.doing import under_way
from paretocosmos.io.text import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["close", "console", "in_notebook", "is_open", "open_terminal", "showing", "tell"]

Part = Callable[[], "RenderableType | None"]

# Redrawn so many times a second; a notebook sends every picture to its browser.
TERMINAL, NOTEBOOK = 5, 3
# Columns of a notebook's cell.
WIDE = 100
# Seconds that something takes before it is named below a bar, which moves by itself.
SOON = 0.7


class _Place(Protocol):
    """Where parts are drawn."""

    def close(self, *, left: bool) -> None:
        """End it, leaving the last picture or nothing."""


class _Board:
    """The parts that are shown, and where."""

    place: _Place | None = None

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.lines: list[str] = []
        self.library = self.ended = False

    def frame(self) -> "RenderableType":
        """All parts as they are now."""
        from rich.console import Group

        return Group(*self._shown(), *([] if self.ended else self._status()))

    def end(self) -> bool:
        """Show parts alone from now on; whether there is one to be left."""
        self.ended = True
        return bool(self._shown())

    def clear(self) -> None:
        """Begin anew."""
        self.parts.clear()
        self.lines.clear()
        self.place, self.library, self.ended = None, False, False

    def _shown(self) -> "list[RenderableType]":
        from rich.text import Text

        pictures = [part() for part in [*self.parts]]
        told = [Text(printable(line)) for line in [*self.lines]]
        return [*(picture for picture in pictures if picture is not None), *told]

    def _status(self) -> "list[RenderableType]":
        now = under_way()
        if now is None:
            return []
        from rich.spinner import Spinner
        from rich.text import Text

        passed = time.monotonic() - now.since
        if passed < SOON and self._shown():
            return []
        seconds = f"  {passed:.0f} s" if passed >= 1 else ""
        said = Text(f"{printable(now.what)}{seconds}", style="dim", overflow="ellipsis")
        said.no_wrap = True
        spinner = Spinner("dots", text=said)
        spinner.start_time = now.since  # its picture follows from the time
        return [spinner]


_board = _Board()


@cache
def console() -> "Console":
    """The console of stderr, on which all that moves is drawn."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def is_open() -> bool:
    """Whether something is shown now."""
    return _board.place is not None


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, whose outputs are HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def open_terminal() -> None:
    """Begin to show what is under way, for a whole program; nothing where stderr is no terminal."""
    if not is_open() and console().is_terminal and console().is_interactive:
        _board.place = _Terminal(_board)


def close() -> None:
    """Leave the place, so that others can print; parts stay as they were last."""
    if _board.place is not None:
        _board.place.close(left=_board.end())
    _board.clear()


def tell(line: str) -> None:
    """Say something below the bars of a library's call; a program prints for itself."""
    if _board.library:
        _board.lines.append(line)


@contextmanager
def _notes() -> Iterator[None]:
    """Warnings of this package are lines below the bars, without a line of its source."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if category.__module__.partition(".")[0] == __name__.partition(".")[0]:
            tell(f"note: {message}")
        else:
            shown(message, category, *rest, **named)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = shown


@contextmanager
def showing(part: Part, *, left: bool = True, stdout: bool = True) -> Iterator[None]:
    """Show a part: where something is shown already, below it; else where somebody looks.

    Args:
        part: gives the picture of now whenever it is asked, or `None` for nothing.
        left: whether its last picture stays.
        stdout: whether stdout has to be a terminal too: a script's output is then in no pipe.
    """
    own = not is_open() and _open_somewhere(stdout=stdout)
    if is_open():
        _board.parts.append(part)
    _board.library = _board.library or (own and stdout)
    try:
        with _notes() if own and stdout else nullcontext():
            yield
    finally:
        if not left and part in _board.parts:
            _board.parts.remove(part)
        if own:
            close()


def _open_somewhere(*, stdout: bool) -> bool:
    """Open a place for a library's call: a notebook, or a terminal that shows all its output.

    Threads and processes of a search would draw over one another.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    from multiprocessing import current_process

    if current_process().name != "MainProcess":
        return False
    if in_notebook():
        _board.place = _Notebook(_board)
    elif not stdout or _stdout_is_seen():
        open_terminal()
    return is_open()


def _stdout_is_seen() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


class _Terminal:
    def __init__(self, board: _Board) -> None:
        from rich.live import Live

        self._live = Live(
            get_renderable=board.frame,
            console=console(),
            refresh_per_second=TERMINAL,
            redirect_stdout=_stdout_is_seen(),
        )
        self._live.start(refresh=True)

    def close(self, *, left: bool) -> None:
        self._live.transient = not left
        self._live.stop()


class _Notebook:
    def __init__(self, board: _Board) -> None:
        from IPython.display import display

        self._board, self._over = board, threading.Event()
        self._handle = display(self._picture(), raw=True, display_id=True)
        self._drawn = threading.Thread(target=self._draw, daemon=True)
        self._drawn.start()

    def _picture(self) -> dict[str, str]:
        from rich.console import Console

        drawn = Console(
            file=io.StringIO(), record=True, width=WIDE, force_terminal=True, force_jupyter=False
        )
        drawn.print(self._board.frame())
        page = drawn.export_html(
            inline_styles=True,
            code_format='<pre style="line-height:1.3;margin:0">{code}</pre>',
            clear=False,
        )
        return {"text/html": page, "text/plain": drawn.export_text().rstrip()}

    def _draw(self) -> None:
        while not self._over.wait(1 / NOTEBOOK):
            self._handle.update(self._picture(), raw=True)

    def close(self, *, left: bool) -> None:
        self._over.set()
        with suppress(RuntimeError):  # closed by its own thread, where a kernel ends
            self._drawn.join()
        self._handle.update(self._picture() if left else {"text/plain": ""}, raw=True)
