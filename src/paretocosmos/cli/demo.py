"""`paretocosmos demo`."""

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import torch
import typer
from rich.table import Table

from paretocosmos.cli.console import (
    escape,
    get_stdout,
    print_error,
    print_json,
    print_markup,
    print_next_command,
    print_note,
    print_table,
)
from paretocosmos.cli.options import AsJson
from paretocosmos.cli.reproduction_view import show_experiments
from paretocosmos.cli.results import describe_heading, list_consequences, print_consequences
from paretocosmos.cli.summary import summarize_run
from paretocosmos.io.progress import status
from paretocosmos.runs.load import load
from paretocosmos.runtime.device import sigterm_as_interrupt

if TYPE_CHECKING:
    from paretocosmos.paper.demo import ComparisonTable


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
    from paretocosmos.paper.collect import collect_results
    from paretocosmos.paper.reproduce import reproduce

    started = time.perf_counter()
    recipe = paper.load_demo_recipe()
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
        print_note(
            f"interrupted; finished experiments are in {out}: run the same command to continue"
        )
        raise typer.Exit(130) from None
    for name, why in done.failures.items():
        print_error(f"{name}: {why}")
    if done.failures:
        raise typer.Exit(1)
    folder = out.expanduser()
    with status("writing the page"):
        run = load("adult")
        run = dataclasses.replace(run, trained_on=run.problem())  # whose words are printed
        result = collect_results(recipe, folder)
        seconds = {name: one.seconds for name, one in done.statuses.items()}
        compared = paper.build_comparison_table(result, seconds)
        missing = paper.write_demo(
            folder, result, compared, run, describe_heading(run), list_consequences(run)
        )
    for sentence in missing:
        print_note(sentence)
    page = folder / paper.PAGE
    if as_json:
        published = [one.to_dict() for one in done.statuses.values()]
        print_json({"page": str(page), "cells": published, "default": summarize_run(run)})
        return
    _print_compared(compared)
    print_consequences(run)
    console = get_stdout()
    print_markup(console, f"\n{escape(paper.DIFFERENCE)}")
    print_markup(console, f"[bold]all of it[/]  {time.perf_counter() - started:.0f} s")
    print_markup(console, f"[bold]page[/]  {escape(page)}")
    print_next_command("train", "adult")


def _print_compared(compared: "ComparisonTable") -> None:
    """Print the hypervolumes of COSMOS beside the paper's."""
    console = get_stdout()
    print_markup(console, "[bold]COSMOS as published[/]")
    print_markup(console, escape(compared.title))
    table = Table(box=None, padding=(0, 2), header_style="bold")
    for number, name in enumerate(compared.head):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for row in compared.rows:
        table.add_row(*map(escape, row))
    print_table(console, table)
    for mark, sentence in compared.notes:
        print_markup(console, escape(f"({mark}) {sentence}"))
    console.print()
