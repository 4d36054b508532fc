"""`paretocosmos train`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paretocosmos.cli import options
from paretocosmos.cli.console import print_json, warnings_as_notes
from paretocosmos.cli.summary import print_run, print_runs, summarize_run
from paretocosmos.cli.watch import watch_training
from paretocosmos.io.signatures import read_private_key
from paretocosmos.runs.run import Run
from paretocosmos.runs.signing import sign_run
from paretocosmos.runtime.device import sigterm_as_interrupt
from paretocosmos.runtime.launch import launched_rank
from paretocosmos.training.fit import FitOptions, fit
from paretocosmos.training.progress import show_bars

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def train(
    problem: options.ProblemName,
    method: Annotated[
        str | None,
        typer.Option(
            help="How rays and losses become a step; by default the preset's.",
            rich_help_panel=options.TRAINING,
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
        typer.Option(
            help="Weight of the cosine term, for the method cosmos.",
            rich_help_panel=options.TRAINING,
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            help="Dirichlet parameter: 0.5, or one per objective: 0.1,0.5.",
            rich_help_panel=options.TRAINING,
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
        typer.Option(
            help="How the ray enters the network.",
            rich_help_panel=options.TRAINING,
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
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the training on a page, on this machine only.")
    ] = False,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="Sign the run with this Ed25519 private key."),
    ] = None,
    log_to: options.LogTo = None,
    as_json: options.AsJson = False,
    changes: options.Changes = None,
) -> None:
    """Train one network for the whole front of PROBLEM, or whatever the method trains."""
    settings = options.collect_settings(
        problem,
        changes,
        epochs=epochs,
        penalty=penalty,
        alpha=alpha,
        target=target,
        task=task,
        sensitive=sensitive,
        small_groups=small_groups,
        positive=positive,
        drop=drop,
        keep=keep,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        class_weight=class_weight,
        fairness=fairness,
        val=val,
        test=test,
        data=data,
    )
    key = None if sign is None else read_private_key(sign)  # hours later would be too late
    seen: list[Path] = []
    several = seeds is not None
    try:
        with (
            sigterm_as_interrupt(),
            warnings_as_notes(),
            show_bars(seen, quiet=as_json, log=True),
            watch_training(seen, wanted=watch and not launched_rank(), several=several),
        ):
            given: FitOptions = {
                "preset": preset,
                "method": method,
                "backbone": backbone,
                "conditioning": conditioning,
                "protocol": protocol,
                "epochs": epochs,
                "settings": settings,
                "out": out,
                "resume": resume,
                "device": device,
                "engine": engine,
                "precision": precision,
                "deterministic": deterministic,
                "callbacks": options.make_loggers(log_to),
            }
            wanted = None if seeds is None else options.parse_integers(seeds)
            found = fit(problem, seed=seed, seeds=wanted, **given)
            runs: list[Run] = found if isinstance(found, list) else [found]
            if launched_rank():  # the first of several processes draws and prints
                return
            _save_extras(runs, key)
    except KeyboardInterrupt:
        # several seeds have a folder each, in one that holds them all
        begun = seen[-1] if seen and not several else seen[-1].parent if seen else out
        kept = "the last checkpoint is kept" if seen else "no epoch is finished yet"
        raise options.end_interrupted(begun, kept) from None
    _print_runs(runs, several=several, as_json=as_json)


def _save_extras(runs: list[Run], key: "Ed25519PrivateKey | None") -> None:
    """Draw what was trained, and sign it."""
    for run in runs:
        options.save_picture(run)
        if key is not None:
            sign_run(run.folder, key)


def _print_runs(runs: list[Run], *, several: bool, as_json: bool) -> None:
    if several:
        print_json([summarize_run(run) for run in runs]) if as_json else print_runs(runs)
    else:
        print_json(summarize_run(runs[0])) if as_json else print_run(runs[0])
