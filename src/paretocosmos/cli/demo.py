"""`paretocosmos demo`."""

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import torch
import typer

from paretocosmos.cli import console, options
from paretocosmos.cli.reproduce import exit_on_failures, follow_reproduction, print_reproduction
from paretocosmos.cli.results import print_consequences
from paretocosmos.cli.train import summarize_run
from paretocosmos.explorer import build_page_model
from paretocosmos.explorer import write_report as write_page
from paretocosmos.io.progress import status
from paretocosmos.paper.recipe import Recipe, load_recipe
from paretocosmos.runs.load import load

# `Recipe.only` takes names of problems, methods and protocols together.
PUBLISHED = ("adult", "compas", "default_credit", "cosmos", "paper")
DIFFERENCE = (
    "The default on such tables is not COSMOS: one network learns the label and the group, and a "
    "formula shifts its predictions, so that half of the weight closes half of the gap, which is "
    "too noisy a loss to train on. This one comes with the package; `paretocosmos train adult` "
    "trains it."
)
# A page of its own: the explorer of the default has a script, which the report's policy forbids.
SLIDER = "slider.html"
TITLE = "COSMOS, one network for the whole Pareto front"


def load_demo_recipe() -> Recipe:
    """Return what the recipe of Table 1 has of COSMOS on the fairness sets, with one seed.

    >>> [experiment.name for experiment in load_demo_recipe().experiments]
    ['adult-paper/cosmos', 'compas-paper/cosmos', 'default_credit-paper/cosmos']
    """
    # one seed of each takes a minute; the five of the paper would take five
    table = load_recipe("table_1").with_seeds([1])
    return dataclasses.replace(
        table, name="demo", title="COSMOS as published", experiments=table.only(PUBLISHED)
    )


def demo(
    out: Annotated[
        Path, typer.Option(help="The folder for the results; finished trainings are kept.")
    ] = Path("runs/demo"),
    as_json: options.AsJson = False,
) -> None:
    """Train COSMOS as published on three fairness data sets, and show the default on one.

    Prints the hypervolumes beside the paper's, and writes a report and a page with a slider. The
    data and the default's network come with the package; it takes about a minute on a CPU.
    """
    # imported here, so that `demo --help` is fast
    from paretocosmos.paper.collect import collect_results
    from paretocosmos.paper.report import write_report
    from paretocosmos.paper.reproduction import reproduce

    started = time.perf_counter()
    recipe = load_demo_recipe()
    with follow_reproduction(out, quiet=as_json) as show:
        reproduction = reproduce(
            recipe,
            out=out,
            # networks so small are not faster on a GPU
            device="cpu",
            # a process per set, as long as each has a core
            workers=min(len(recipe.experiments), torch.get_num_threads()),
            progress=show,
        )
    # the report would lack a part without which it makes no sense
    exit_on_failures(reproduction)
    # `reproduce` has expanded it by itself
    folder = out.expanduser()
    with status("writing the report"):
        run = load("adult")
        # with the problem itself, whose labels are plainer than the names of metrics
        run = dataclasses.replace(run, trained_on=run.problem())
        opening = f"{DIFFERENCE} [Try its trade-offs with a slider.]({SLIDER})"
        result = collect_results(recipe, folder)
        notes = write_report([result], folder / "report", title=TITLE, opening=opening)
        write_page(folder / "report" / SLIDER, build_page_model([run]))
    for note in notes:
        console.print_note(note)
    page = folder / "report" / "report.html"
    if as_json:
        published = [status.to_dict() for status in reproduction.statuses.values()]
        # the same keys as `reproduce --json`, which call experiments cells
        console.print_json({"page": str(page), "cells": published, "default": summarize_run(run)})
        return
    # what the paper did first, then what this package does instead
    print_reproduction(reproduction)
    stdout = console.get_stdout()
    stdout.print()
    print_consequences(run)
    console.print_markup(stdout, f"\n{console.escape(DIFFERENCE)}")
    console.print_markup(stdout, f"[bold]total time[/]  {time.perf_counter() - started:.0f} s")
    console.print_path("page", page)
    console.print_next_command("train", "adult")
