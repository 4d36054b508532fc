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
        Path, typer.Argument(metavar="RUN", help="A run folder, or a folder with runs below it.")
    ],
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address and open no browser.")
    ] = False,
) -> None:
    """Watch a training on a page: the front as it develops, the losses and the time left.

    The page reads the run folder, is reachable only from this machine, and ends with the run.
    """
    place = user_path(folder)
    if not read_state(place)["runs"]:
        raise RunError(
            f"there is no run in `{folder}`: give the folder of a training, or a folder above it"
        )
    try:
        with Watch(lambda: place) as page, status(f"watching {folder}, until it ends or Ctrl-C"):
            _note_address(page)
            if not no_open:
                webbrowser.open(page.address)
            ended = page.wait()
    except KeyboardInterrupt:
        print_note("stopped watching; the training continues")
        raise typer.Exit(130) from None
    states = {run["status"] for run in ended["runs"]}
    print_note(f"{folder} is {' and partly '.join(sorted(states))}")
    print_next_command("explore", folder)


@contextmanager
def watch_training(seen: Sequence[Path], *, wanted: bool, several: bool) -> Iterator[None]:
    """A page beside a training of this process, which ends a moment after it.

    Args:
        seen: its last entry is the folder in training, once there is one.
        wanted: whether there is to be a page at all.
        several: whether the folder above holds a run for each of several seeds.
    """
    if not wanted:
        yield
        return

    def folder() -> Path | None:
        return None if not seen else seen[-1].parent if several else seen[-1]

    with Watch(folder) as page:
        _note_address(page)
        yield
        page.linger()


def _note_address(page: Watch) -> None:
    print_note(f"watch it on {page.address}, from this machine only")
