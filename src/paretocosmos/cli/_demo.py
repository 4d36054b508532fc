"""`paretocosmos demo`."""

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import torch
import typer
from rich.table import Table

from paretocosmos.cli._options import AsJson
from paretocosmos.cli.output._console import error, note, print_json, safe, say, wide
from paretocosmos.cli.output._next import next_command
from paretocosmos.cli.output._plain import consequences_of, heading_of, print_consequences
from paretocosmos.cli.output._reproduction import show_experiments
from paretocosmos.cli.output._run import numbers_of_run
from paretocosmos.cli.output._table import print_table
from paretocosmos.io.progress import status
from paretocosmos.runs.zoo import load
from paretocosmos.runtime.device import sigterm_as_interrupt

if TYPE_CHECKING:
    from paretocosmos.paper.report import Table as ReportTable


def demo(
    out: Annotated[
        Path, typer.Option(help="The folder of the demonstration; what is finished is kept.")
    ] = Path("runs/demo"),
    as_json: AsJson = False,
) -> None:
    """Train COSMOS as published on three sets, beside the paper's numbers; then the default.

    The three fairness sets and the default's network come with the package. Runs on the CPU, in
    seconds, and writes one page with both.
    """
    from paretocosmos.paper import demo as paper
    from paretocosmos.paper.collect import collect
    from paretocosmos.paper.reproduce import reproduce

    started = time.perf_counter()
    recipe = paper.demo_recipe()
    try:
        with sigterm_as_interrupt(), show_experiments(quiet=as_json) as show:
            done = reproduce(
                recipe,
                out=out,
                device="cpu",
                workers=min(len(recipe.experiments), torch.get_num_threads()),
                progress=show,
            )
    except KeyboardInterrupt:
        note(f"interrupted; finished experiments are in {out}: run the same command to continue")
        raise typer.Exit(130) from None
    for name, why in done.failures.items():
        error(f"{name}: {why}")
    if done.failures:
        raise typer.Exit(1)
    folder = out.expanduser()
    with status("writing the page"):
        run = load("adult")
        run = dataclasses.replace(run, trained_on=run.problem())  # whose words are printed
        result = collect(recipe, folder)
        seconds = {name: one.seconds for name, one in done.statuses.items()}
        compared = paper.compare(result, seconds)
        missing = paper.write_demo(
            folder, result, compared, run, heading_of(run), consequences_of(run)
        )
    for sentence in missing:
        note(sentence)
    page = folder / paper.PAGE
    if as_json:
        published = [one.to_dict() for one in done.statuses.values()]
        print_json({"page": str(page), "cells": published, "default": numbers_of_run(run)})
        return
    _print_compared(compared)
    print_consequences(run)
    console = wide()
    say(console, f"\n{safe(paper.DIFFERENCE)}")
    say(console, f"[bold]all of it[/]  {time.perf_counter() - started:.0f} s")
    say(console, f"[bold]page[/]  {safe(page)}")
    next_command("train", "adult")


def _print_compared(compared: "ReportTable") -> None:
    """Print the hypervolumes of COSMOS beside the paper's."""
    console = wide()
    say(console, "[bold]COSMOS as published[/]")
    say(console, safe(compared.title))
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for number, name in enumerate(compared.head):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for row in compared.rows:
        table.add_row(*map(safe, row))
    print_table(console, table)
    for mark, sentence in compared.notes.items():
        say(console, safe(f"({mark}) {sentence}"))
    console.print()
