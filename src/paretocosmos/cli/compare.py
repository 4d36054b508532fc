"""`paretocosmos compare`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from paretocosmos.cli import options
from paretocosmos.cli.console import (
    escape,
    get_stdout,
    make_table,
    print_error,
    print_json,
    print_markup,
    print_next_command,
    print_note,
    print_path,
    warnings_as_notes,
)
from paretocosmos.cli.results import find_plain_metrics, format_span, get_measures
from paretocosmos.errors import MissingExtraError
from paretocosmos.io.formatting import format_number
from paretocosmos.io.progress import status
from paretocosmos.pareto.metrics import MEANINGS
from paretocosmos.runs.run import PAGE
from paretocosmos.runtime.device import convert_sigterm
from paretocosmos.training.compare import COMPARED, Comparison
from paretocosmos.training.compare import compare as compare_methods
from paretocosmos.training.progress import show_bars


def compare(
    problem: options.ProblemName,
    methods: Annotated[
        str,
        typer.Option(help="Names of methods, separated by commas.", callback=options.parse_name),
    ] = ",".join(COMPARED),
    preset: options.Preset = None,
    protocol: options.Protocol = None,
    seed: options.Seed = 1,
    seeds: options.Seeds = None,
    epochs: options.Epochs = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    positive: options.Positive = None,
    drop: options.Drop = None,
    backbone: options.Backbone = None,
    data: options.Data = None,
    out: Annotated[Path | None, typer.Option(help="The new folder for all runs.")] = None,
    device: options.Device = "auto",
    engine: options.Engine = "auto",
    precision: options.Precision = "tf32",
    deterministic: options.Deterministic = False,
    workers: options.Workers = 0,
    cluster: options.Cluster = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the comparison in --out.")
    ] = False,
    log_to: options.LogTo = None,
    as_json: options.AsJson = False,
    changes: options.Changes = None,
) -> None:
    """Train several methods on PROBLEM, and compare their fronts in one table and one picture.

    --set KEY=VALUE applies to all methods, --set METHOD.KEY=VALUE to one of them.
    """
    arguments = locals()
    settings = options.collect_settings(arguments)
    folders: list[Path] = []
    try:
        # a scheduler's SIGTERM ends it like Ctrl-C, with everything saved
        with convert_sigterm(), warnings_as_notes(), show_bars(folders, quiet=as_json, log=True):
            comparison = compare_methods(
                problem,
                [name.strip() for name in methods.split(",") if name.strip()],
                seeds=options.list_seeds(seeds, seed),
                settings=settings,
                **options.collect_plan(arguments),
            )
            # inside of `try`: pictures take seconds, too, in which Ctrl-C should be as gentle
            for run in (run for runs in comparison.runs.values() for run in runs):
                options.save_picture(run)
            _save_picture(comparison)
    except KeyboardInterrupt:
        # a comparison has a folder per method, which has one per seed
        folder = folders[-1].parents[1] if folders else out
        raise options.end_interrupted(folder) from None
    if as_json:
        print_json(comparison.to_dict())
    else:
        print_comparison(comparison)
    # after the table: one method that fails does not take the others with it
    for method, reason in comparison.failures.items():
        print_error(f"{method}: {reason}")
    if comparison.failures:
        raise typer.Exit(1)


def _save_picture(comparison: Comparison) -> None:
    """Draw all fronts in one figure; without a plotting package, print a note instead."""
    try:
        # inside of `try`, since matplotlib is an extra
        from paretocosmos.plotting import save_comparison

        fronts = {method: [run.front for run in runs] for method, runs in comparison.runs.items()}
        with status("drawing"):
            picture = comparison.folder / "compare.png"
            save_comparison(picture, fronts, title=comparison.problem, ideal=comparison.alone)
    except MissingExtraError as error:
        print_note(f"no compare.png: {error}")


def print_comparison(comparison: Comparison) -> None:
    """Print a row per method: how good it is, then what it costs."""
    # what people understand comes first, as everywhere
    _print_traded(comparison)
    # two columns compare with separate networks, and mean nothing without them
    has_separate = "separate" in comparison.runs
    rows = [_format_fields(row, has_separate=has_separate) for row in comparison.rows]
    table = make_table("method", *rows[0], "dominated by")
    table.columns[-1].justify = "left"
    for row, fields in zip(comparison.rows, rows, strict=True):
        # the first dominates most, since the shares are sorted
        shares = (f"{name} {_format_percent(s)}" for name, s in row["dominated_by"].items())
        dominating = ", ".join(shares) or "-"
        table.add_row(f"[bold]{escape(row['method'])}[/]", *fields.values(), escape(dominating))
    console = get_stdout()
    console.print(table)
    for line in _explain_columns(comparison, has_separate=has_separate):
        print_markup(console, escape(line))
    print_path("table", comparison.folder / "compare.json")
    print_path("picture", comparison.folder / "compare.png")
    print_path("page", comparison.folder / PAGE)
    print_next_command("explore", comparison.folder)


def _explain_columns(comparison: Comparison, *, has_separate: bool) -> list[str]:
    """Return a line for each column, and a line for each method with an ideal point."""
    # All fronts of a comparison share the reference point of the problem.
    front = next(iter(comparison.runs.values()))[0].front
    reference = ", ".join(f"{value:g}" for value in front.reference)
    lines = [f"order: {MEANINGS['monotonicity']}"]
    if has_separate:
        lines += [f"range: {MEANINGS['range_covered']}", f"behind: {MEANINGS['igd_plus']}"]
    lines.append(f"hypervolume: on test, with reference point ({reference}); larger is better")
    lines += [
        f"{row['method']}: the ideal point, the best value of every objective, has a hypervolume "
        f"of {format_number(row['hypervolume_ideal'])}"
        for row in comparison.rows
        if row["method"] in comparison.alone
    ]
    return [*lines, "dominated by: the share of a method's points that another method dominates"]


def _print_traded(comparison: Comparison) -> None:
    """Print the range of plain metrics: a row per method, of its first seed."""
    first_run = next(iter(comparison.runs.values()))[0]
    problem, measures = first_run.trained_on, get_measures(first_run.trained_on, first_run.front)
    names = find_plain_metrics(problem, first_run.front)[: first_run.front.objectives]
    table = make_table("on test", *(measures[name].label for name in names))
    for row in comparison.rows:
        # one seed: the ends of a mean front would belong to no network
        front = comparison.runs[row["method"]][0].front
        spans = (escape(format_span(front, name, measures[name])) for name in names)
        table.add_row(f"[bold]{escape(row['method'])}[/]", *spans)
    console = get_stdout()
    console.print(table)
    console.print()


def _format_fields(row: Mapping[str, Any], *, has_separate: bool) -> dict[str, str]:
    """Return the columns between a method's name and the methods that dominate it."""

    def format_metric(name: str, spec: str) -> str:
        # one point has no order and no range
        return "-" if row["points"] == 1 or row.get(name) is None else format(row[name], spec)

    fields = {"order": format_metric("monotonicity", ".2f")}
    if has_separate:  # both are relative to separately trained networks
        fields["range"] = format_metric("range_covered", ".0%")
        fields["behind"] = format_metric("igd_plus", ".3f")
    std = row["hypervolume_std"]
    spread = "" if std is None else f" ± {format_number(std)}"
    fields["hypervolume"] = f"{format_number(row['hypervolume'])}{spread}"
    # all networks of a method have the same size
    size, count = row["parameters"] // row["networks"], row["networks"]
    fields["parameters"] = f"{count} x {size:,}" if count > 1 else f"{size:,}"
    return fields | {"time": f"{row['seconds']:.1f} s"}


def _format_percent(share: float) -> str:
    """Format a percentage; small shares do not round to 0, nor large ones to 100."""
    return "<1%" if share < 0.005 else ">99%" if 0.995 <= share < 1 else f"{share:.0%}"
