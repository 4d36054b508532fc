"""`paretocosmos sweep`."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from paretocosmos.cli import options
from paretocosmos.cli.console import (
    print_error,
    print_json,
    print_next_command,
    print_value,
    warnings_as_notes,
)
from paretocosmos.errors import ConfigurationError
from paretocosmos.runtime.device import convert_sigterm
from paretocosmos.training.progress import show_bars
from paretocosmos.training.sweep import sweep as sweep_settings


def sweep(
    problem: options.ProblemName,
    grid: Annotated[
        list[str],
        options.training_option(
            "--grid",
            metavar="KEY='VALUE VALUE'",
            help="Values of a setting, or of method, backbone, conditioning or preset; repeatable.",
        ),
    ],
    samples: Annotated[
        int | None, options.training_option(help="Train so many combinations, drawn at random.")
    ] = None,
    measure: Annotated[
        str,
        options.training_option(
            help="What to rank by on validation data: hypervolume, expected_utility, "
            "monotonicity or dominated_share."
        ),
    ] = "hypervolume",
    method: options.MethodName = None,
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
    resume: Annotated[bool, typer.Option("--resume", help="Continue the sweep in --out.")] = False,
    log_to: options.LogTo = None,
    as_json: options.AsJson = False,
    changes: options.Changes = None,
) -> None:
    """Train PROBLEM with every combination of some values, and rank them on validation data."""
    arguments = locals()
    settings = options.collect_settings(arguments)
    folders: list[Path] = []
    try:
        with convert_sigterm(), warnings_as_notes(), show_bars(folders, quiet=as_json, log=True):
            done = sweep_settings(
                problem,
                parse_grid(grid),
                samples=samples,
                measure=measure,  # type: ignore[arg-type]  # checked there
                seeds=options.list_seeds(seeds, seed),
                settings=settings,
                **options.collect_plan(arguments),
            )
    except KeyboardInterrupt:
        # a sweep has a folder per trial, which has one per seed
        folder = folders[-1].parents[1] if folders else out
        raise options.end_interrupted(folder) from None
    if as_json:
        print_json(done.to_dict())
    else:
        print_value(done)
        (best,) = done.best.values()
        print_next_command("explore", best[0].folder)
    for trial, reason in done.failures.items():
        print_error(f"{trial}: {reason}")
    if done.failures:
        raise typer.Exit(1)


def parse_grid(texts: list[str]) -> dict[str, Any]:
    """Parse a repeatable KEY='VALUE VALUE' into lists of values; quotes hold a value together."""
    grid: dict[str, Any] = {}
    for text in texts:
        key, values = options.parse_setting(text, "--grid")
        if key in grid:
            raise ConfigurationError(f"--grid has `{key}` twice: give it once")
        try:
            grid[key] = shlex.split(values)
        except ValueError as error:
            raise ConfigurationError(
                f"--grid takes values between spaces, found `{text}`: close the quote"
            ) from error
    return grid
