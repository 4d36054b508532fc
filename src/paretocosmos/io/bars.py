"""A bar for what takes minutes, in a terminal or a notebook; nothing where nobody looks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paretocosmos.io.display import showing

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

    count = progress.DownloadColumn() if of_bytes else progress.MofNCompleteColumn()
    columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), count)
    shown = progress.Progress(*columns, progress.TimeRemainingColumn(), auto_refresh=False)
    task = shown.add_task(what, total=total)
    with showing(shown.get_renderable):
        yield lambda done: shown.advance(task, done)
