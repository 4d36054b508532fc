"""`paretocosmos train`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from paretocosmos.cli import options
from paretocosmos.cli.console import print_json, warnings_as_notes
from paretocosmos.cli.summary import print_run, print_runs, summarize_run
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import convert_sigterm
from paretocosmos.runtime.launch import launched_rank
from paretocosmos.training.fit import fit
from paretocosmos.training.progress import show_bars


def train(
    problem: options.ProblemName,
    method: Annotated[
        str | None,
        options.training_option(
            help="The method, a name from `list methods`; by default the preset's.",
            callback=options.parse_name,
        ),
    ] = None,
    preset: options.Preset = None,
    protocol: options.Protocol = None,
    seed: options.Seed = 1,
    seeds: options.Seeds = None,
    epochs: options.Epochs = None,
    penalty: Annotated[
        float | None,
        options.training_option(help="Weight of the cosine term of the method cosmos."),
    ] = None,
    alpha: Annotated[
        str | None,
        options.training_option(
            help="Dirichlet parameter, e.g. 0.5, or one per objective, e.g. 0.1,0.5."
        ),
    ] = None,
    target: options.Target = None,
    task: options.Task = None,
    sensitive: options.Sensitive = None,
    small_groups: options.SmallGroups = None,
    positive: options.Positive = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    class_weight: options.ClassWeight = None,
    fairness: options.Fairness = None,
    val: options.Val = None,
    test: options.Test = None,
    backbone: options.Backbone = None,
    conditioning: Annotated[
        str | None,
        options.training_option(
            help="How the ray enters the network, a name from `list conditioning`.",
            callback=options.parse_name,
        ),
    ] = None,
    data: options.Data = None,
    out: Annotated[Path | None, typer.Option(help="The new run folder.")] = None,
    device: options.Device = "auto",
    engine: options.Engine = "auto",
    precision: options.Precision = "tf32",
    deterministic: options.Deterministic = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    log_to: options.LogTo = None,
    as_json: options.AsJson = False,
    changes: options.Changes = None,
) -> None:
    """Train one network for the whole front of PROBLEM (some methods train several)."""
    # first, while nothing but the options is local
    arguments = locals()
    settings = options.collect_settings(arguments)
    folders: list[Path] = []
    # `--seeds 1` is a list, too, with a folder per seed
    several = seeds is not None
    try:
        with (
            # a scheduler's SIGTERM ends training like Ctrl-C, with a checkpoint
            convert_sigterm(),
            warnings_as_notes(),
            # it fills `folders`, which Ctrl-C needs, as the training goes on
            show_bars(folders, quiet=as_json, log=True),
        ):
            plan = options.collect_plan(arguments)
            parsed_seeds = options.parse_seeds(seeds)
            result: Any = fit(problem, seed=seed, seeds=parsed_seeds, settings=settings, **plan)
            runs: list[Run] = result if several else [result]
            if launched_rank():  # the first of several processes draws and prints
                return
            for run in runs:
                options.save_picture(run)
    except KeyboardInterrupt:
        # several seeds have a folder each, inside the one to continue
        folder = (folders[-1].parent if several else folders[-1]) if folders else out
        saved_note = "the last checkpoint is kept" if folders else "no epoch is finished yet"
        raise options.end_interrupted(folder, saved_note) from None
    if several:
        print_json([summarize_run(run) for run in runs]) if as_json else print_runs(runs)
    else:
        print_json(summarize_run(runs[0])) if as_json else print_run(runs[0])
