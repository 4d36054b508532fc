"""`paretocosmos watch`, and what `train --watch` does beside training."""

import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli.console import print_next_command, print_note
from paretocosmos.errors import RunError
from paretocosmos.explorer.live import Watch, read_state
from paretocosmos.io.files import user_path
from paretocosmos.io.progress import status


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder, or a folder of runs.")
    ],
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address, but do not open a browser.")
    ] = False,
) -> None:
    """Watch a training on a web page: the front as it develops, the losses and the time left.

    The page can be opened on this machine only; it is served until the training ends.
    """
    path = user_path(folder)
    # a mistyped path would give an empty page that waits for ever
    if not read_state(path)["runs"]:
        raise RunError(
            f"there is no run in `{folder}`: give the folder of a training, or a folder above it"
        )
    try:
        label = f"watching {folder}; Ctrl-C ends watching, not the training"
        with Watch(lambda: path) as page, status(label):
            _note_address(page)
            if not no_open:
                # Without a browser, the printed address is enough.
                webbrowser.open(page.address)
            last_state = page.wait()
    except KeyboardInterrupt:
        print_note("stopped watching; the training continues")
        raise typer.Exit(130) from None
    statuses = sorted({run["status"] for run in last_state["runs"]})
    print_note(f"{folder} is {' and partly '.join(statuses)}")
    print_next_command("explore", folder)


@contextmanager
def watch_training(folders: Sequence[Path], *, wanted: bool, several: bool) -> Iterator[None]:
    """Serve a page that follows the training in this process, until a moment after its end.

    Args:
        folders: the run folders so far, the last of which is in training; may be empty.
        wanted: whether to serve a page at all.
        several: whether several seeds are trained, each in a folder inside a common one.
    """
    if not wanted:
        yield
        return

    def find_folder() -> Path | None:
        if not folders:
            return None
        # the page shows all seeds side by side
        return folders[-1].parent if several else folders[-1]

    with Watch(find_folder) as page:
        _note_address(page)
        yield
        # not after an error or Ctrl-C: nobody wants to wait then
        page.linger()


def _note_address(page: Watch) -> None:
    print_note(f"watch the training at {page.address} (on this machine only)")
