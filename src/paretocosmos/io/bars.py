"""A bar on stderr for what takes minutes; nothing where stderr is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["bar"]


@contextmanager
def bar(what: str, total: int | None, *, of_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """Show how far something is.

    Args:
        what: is done, in a few words.
        total: how much there is; `None` where that is unknown.
        of_bytes: whether bytes are counted, or pieces.

    Yields:
        What to call with how much more is done.
    """
    # `import paretocosmos` draws in no console
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    count = progress.DownloadColumn() if of_bytes else progress.MofNCompleteColumn()
    columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), count)
    with progress.Progress(
        *columns,
        progress.TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.advance(task, done)
