"""What every command ends with: where the page is, and the command to type next."""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paretocosmos.cli.output._console import safe, wide
from paretocosmos.runs.run import PAGE, Run

# Of the way from the best to the worst value of an objective, how far a suggested bound is.
NEAR = 0.15
# As wide as no command is.
WIDEST = 10_000


def print_page(folder: Path) -> None:
    """Where the page of a folder of runs is, if it was written."""
    if (folder / PAGE).exists():
        wide().print(f"[bold]report[/]  {safe(folder / PAGE)}", soft_wrap=True)


def next_choice(run: Run) -> list[object]:
    """The words of a command that chooses a point: under a bound that some ray keeps, or the knee.

    A table's last objective is what is fair or not; other objectives have no bound by nature.
    """
    front = run.front_val
    if len(front) == 1:
        return ["explore", run.folder]
    if run.table is None or front.objectives == 1 or np.isnan(front.values[:, -1]).all():
        return ["choose", run.folder, "--knee"]
    low, high = np.nanmin(front.values[:, -1]), np.nanmax(front.values[:, -1])
    bound = low + NEAR * (high - low)
    step = 10.0 ** (math.floor(math.log10(bound)) - 1) if bound > 0 else 1.0
    number = math.ceil(bound / step) * step  # two digits, so that the ray still keeps it
    return ["choose", run.folder, "--max", f"{front.names[-1]}={number:.2g}"]


def same_options(seeds: str | None, epochs: int | None) -> list[object]:
    """Return the options that `reproduce` and `report` share, as they were given."""
    given = {"--seeds": seeds, "--epochs": epochs}
    return [word for flag, value in given.items() if value is not None for word in (flag, value)]


def next_command(*parts: object) -> None:
    """Print the command to type next, so that it can be copied."""
    console = wide()
    words = ["paretocosmos", *(safe(shlex.quote(str(part))) for part in parts)]
    room = console.width if console.is_terminal else WIDEST
    console.print(f"[bold]next[/]  {_lines(words, room - 8)}", soft_wrap=True)


def _lines(words: Sequence[str], room: int) -> str:
    r"""Words of a command, in lines that a shell reads as one.

    >>> print(_lines(["paretocosmos", "choose", "runs/adult", "--max", "tpr_gap=0.02"], 30))
    paretocosmos choose runs/adult \
          --max tpr_gap=0.02
    """
    lines = [words[0]]
    for word in words[1:]:
        longer = f"{lines[-1]} {word}"
        if len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return " \\\n      ".join(lines)
