"""`paretocosmos compare`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from paretocosmos.cli import options
from paretocosmos.cli.console import (
    escape,
    get_stdout,
    print_error,
    print_json,
    print_markup,
    print_next_command,
    print_note,
    print_table,
    warnings_as_notes,
)
from paretocosmos.cli.results import find_leading, format_span, get_measures, print_page
from paretocosmos.errors import ConfigurationError, MissingExtraError
from paretocosmos.io.formatting import format_number
from paretocosmos.io.progress import status
from paretocosmos.pareto.metrics import MEANINGS
from paretocosmos.training.compare import COMPARED, Comparison
from paretocosmos.training.compare import compare as compare_methods
from paretocosmos.training.progress import show_bars


def compare(
    problem: options.ProblemName,
    methods: Annotated[
        str, typer.Option(help="Names, separated by commas.", callback=options.parse_name)
    ] = ",".join(COMPARED),
    preset: options.Preset = None,
    protocol: options.Protocol = None,
    seed: options.Seed = 1,
    seeds: options.Seeds = None,
    epochs: options.Epochs = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    small_groups: options.SmallGroups = None,
    positive: options.Positive = None,
    drop: options.Drop = None,
    backbone: options.Backbone = None,
    data: options.Data = None,
    out: Annotated[Path | None, typer.Option(help="The new folder of all runs.")] = None,
    device: options.Device = "auto",
    engine: options.Engine = "auto",
    precision: options.Precision = "tf32",
    deterministic: options.Deterministic = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the comparison in --out.")
    ] = False,
    log_to: options.LogTo = None,
    as_json: options.AsJson = False,
    changes: options.Changes = None,
) -> None:
    """Train several methods on PROBLEM: one table, one picture.

    --set KEY=VALUE applies to all methods, --set METHOD.KEY=VALUE to one.
    """
    settings = options.collect_settings(
        problem,
        changes,
        epochs=epochs,
        target=target,
        sensitive=sensitive,
        small_groups=small_groups,
        positive=positive,
        drop=drop,
        data=data,
    )
    if seeds is not None and seed != 1:
        raise ConfigurationError("--seeds and --seed exclude each other: give one of them")
    seen: list[Path] = []
    try:
        with warnings_as_notes(), show_bars(seen, quiet=as_json, log=True):
            done = compare_methods(
                problem,
                [name.strip() for name in methods.split(",") if name.strip()],
                seeds=[seed] if seeds is None else options.parse_integers(seeds),
                preset=preset,
                protocol=protocol,
                epochs=epochs,
                backbone=backbone,
                settings=settings,
                out=out,
                resume=resume,
                device=device,
                engine=engine,
                precision=precision,
                deterministic=deterministic,
                callbacks=options.make_loggers(log_to),
            )
            for run in (run for runs in done.runs.values() for run in runs):
                options.save_picture(run)
            _save_picture(done)
    except KeyboardInterrupt:
        begun = seen[-1].parents[1] if seen else out
        raise options.end_interrupted(
            begun, "finished epochs are saved" if seen else "no epoch is finished yet"
        ) from None
    if as_json:
        print_json(done.to_dict())
    else:
        print_comparison(done)
    for method, why in done.failures.items():
        print_error(f"{method}: {why}")
    if done.failures:
        raise typer.Exit(1)


def _save_picture(done: Comparison) -> None:
    """One figure; a missing plotting package costs the picture, not the runs."""
    try:
        from paretocosmos.plotting import save_comparison

        fronts = {method: [run.front for run in runs] for method, runs in done.runs.items()}
        with status("drawing"):
            place = done.folder / "compare.png"
            save_comparison(place, fronts, title=done.problem, ideal=done.alone)
    except MissingExtraError as missing:
        print_note(f"no compare.png: {missing}")


# Columns a terminal needs for the names of all that dominate a method; else it sees the first.
ROOM = 130


def print_comparison(done: Comparison) -> None:
    """Print a row per method: how good it is before what it costs."""
    console = get_stdout()
    all_names = not sys.stdout.isatty() or console.width >= ROOM
    beside = "separate" in done.runs
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("method")
    rows = [_format_fields(row, beside=beside, roomy=all_names or not beside) for row in done.rows]
    for name in rows[0]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("dominated by")
    for row, fields in zip(done.rows, rows, strict=True):
        betters = _format_betters(row["dominated_by"], all_names=all_names)
        table.add_row(f"[bold]{escape(row['method'])}[/]", *fields.values(), escape(betters))
    _print_traded(done)
    print_table(console, table)
    reference = ", ".join(
        f"{value:g}" for value in next(iter(done.runs.values()))[0].front.reference
    )
    lines = [f"order: {MEANINGS['monotonicity']}"]
    if beside:
        lines += [f"range: {MEANINGS['range_covered']}", f"behind: {MEANINGS['igd_plus']}"]
    lines += [f"hypervolume: on test, at ({reference}); larger is better"]
    for row in done.rows:
        if row["method"] in done.alone:
            lines.append(
                f"{row['method']}: its ideal point, the best of every objective, has "
                f"{format_number(row['hypervolume_ideal'])}"
            )
    lines.append("dominated by: the share of a method's points that a point of another dominates")
    if not all_names and any(len(row["dominated_by"]) > 1 for row in done.rows):
        lines.append("+2: two others dominate some of its points too; compare.json has them")
    for line in lines:
        print_markup(console, escape(line))
    for name, place in (("table", "compare.json"), ("picture", "compare.png")):
        if (done.folder / place).exists():
            console.print(f"[bold]{name}[/]  {escape(done.folder / place)}", soft_wrap=True)
    print_page(done.folder)
    print_next_command("explore", done.folder)


def _print_traded(done: Comparison) -> None:
    """Print what each method trades, in plain words: a row per method, of its first seed."""
    lead = next(iter(done.runs.values()))[0]
    problem, measures = lead.trained_on, get_measures(lead.trained_on, lead.front)
    names = find_leading(problem, lead.front)[: lead.front.objectives]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("on test")
    for name in names:
        table.add_column(escape(measures[name].label), justify="right")
    for row in done.rows:
        front = done.runs[row["method"]][0].front
        spans = (escape(format_span(front, name, measures[name])) for name in names)
        table.add_row(f"[bold]{escape(row['method'])}[/]", *spans)
    console = get_stdout()
    print_table(console, table)
    console.print()


def _format_fields(row: Mapping[str, Any], *, beside: bool, roomy: bool) -> dict[str, str]:
    """The columns between a method's name and what dominates it."""

    def measure(name: str, form: str) -> str:
        # one point has no order and no range
        return "-" if row["points"] == 1 or row.get(name) is None else format(row[name], form)

    fields = {"order": measure("monotonicity", ".2f")}
    if beside:
        fields |= {"range": measure("range_covered", ".0%"), "behind": measure("igd_plus", ".3f")}
    fields["hypervolume"] = _format_mean(row)
    if roomy:
        fields |= {"points": str(row["points"]), "parameters": _format_size(row)}
    return fields | {"time": f"{row['seconds']:.1f} s"}


def _format_mean(row: Mapping[str, Any]) -> str:
    spread = "" if row["hypervolume_std"] is None else f" ± {format_number(row['hypervolume_std'])}"
    return f"{format_number(row['hypervolume'])}{spread}"


def _format_size(row: Mapping[str, Any]) -> str:
    each, count = row["parameters"] // row["networks"], row["networks"]
    return f"{count} x {each:,}" if count > 1 else f"{each:,}"


def _format_betters(shares: Mapping[str, float], *, all_names: bool) -> str:
    said = [f"{name} {_format_percent(share)}" for name, share in shares.items()]
    shown = said if all_names else said[:1]
    more = f" +{len(said) - len(shown)}" if len(said) > len(shown) else ""
    return ", ".join(shown) + more or "-"


def _format_percent(share: float) -> str:
    """Neither 0 for what is a little nor 100 for what is not all."""
    return "<1%" if share < 0.005 else ">99%" if 0.995 <= share < 1 else f"{share:.0%}"
