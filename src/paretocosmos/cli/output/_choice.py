"""What `choose` prints."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from paretocosmos.cli.output._console import wide
from paretocosmos.evaluation.choice import Choice
from paretocosmos.io.trust import modules_of
from paretocosmos.pareto.selection import Point
from paretocosmos.runs.run import Run

__all__ = ["print_choice"]


def print_choice(run: Run, choice: Choice) -> None:
    """The ray, its numbers on val and on test with their intervals, and the code to use it."""
    ray = ", ".join(f"{part:.4f}" for part in choice.ray)
    console = Console(highlight=False)
    weights = ", ".join(
        f"{part:.1%} on {name}" for part, name in zip(choice.ray, run.front.names, strict=True)
    )
    console.print(f"[bold]ray[/] {ray} ({escape(weights)})", soft_wrap=True)
    table = Table(box=None, padding=(0, 2), header_style="bold")
    table.add_column("")
    for heading in ("val, by which it was chosen", "test, which had no say"):
        table.add_column(heading, justify="right")
    for name in (*choice.val.values, *choice.val.metrics):
        if name != "misclassification":  # 1 - accuracy
            table.add_row(escape(name), *(_number(p, name) for p in (choice.val, choice.test)))
    wide().print(table)
    console.print(
        "In brackets: 95 % intervals (bootstrap), for samples as large as this one. The choice was "
        "made on val, so its numbers there flatter.",
        soft_wrap=True,
    )
    console.print(f"\n{escape(_code(run, choice))}", soft_wrap=True)


def _number(point: Point, name: str) -> str:
    low, high = point.intervals[name]
    return f"{point[name]:.4f} \\[{low:.4f}, {high:.4f}]"


def _code(run: Run, choice: Choice) -> str:
    """What to paste into Python; the ray in all its digits, since a bound may hang on them."""
    ray = ", ".join(f"{part:.9g}" for part in choice.ray)
    parts = (run.record[part] or {} for part in ("problem", "method", "conditioning", "backbone"))
    own = modules_of(part.get("name") for part in parts)
    folder = f"{str(run.folder)!r}" + (f", trust={list(own)}" if own else "")
    load = ["from paretocosmos import load_run", "", f"run = load_run({folder})"]
    if run.table is not None:
        lines = [*load, f"run.predict(rows, ray=[{ray}])  # rows: a DataFrame"]
    else:
        lines = ["import torch", *load, f"run.model(inputs, torch.tensor([{ray}]))"]
    return "\n".join(lines)
