"""`paretocosmos compare`."""

from pathlib import Path
from typing import Annotated

import typer

from paretocosmos.cli._options import (
    AsJson,
    Backbone,
    Changes,
    Data,
    Deterministic,
    Device,
    Drop,
    Engine,
    Epochs,
    Positive,
    Precision,
    Preset,
    ProblemName,
    Protocol,
    Seed,
    Seeds,
    Sensitive,
    Target,
    draw,
    named,
    settings_of,
    whole_numbers,
)
from paretocosmos.cli.output import bars, error, note, notes, print_comparison, print_json
from paretocosmos.errors import ConfigurationError, MissingExtraError
from paretocosmos.training.compare import BASELINES, Comparison
from paretocosmos.training.compare import compare as compare_methods

__all__ = ["compare"]


def compare(
    problem: ProblemName,
    methods: Annotated[
        str, typer.Option(help="Names, separated by commas.", callback=named)
    ] = ",".join(BASELINES),
    preset: Preset = None,
    protocol: Protocol = None,
    seed: Seed = 1,
    seeds: Seeds = None,
    epochs: Epochs = None,
    target: Target = None,
    sensitive: Sensitive = None,
    positive: Positive = None,
    drop: Drop = None,
    backbone: Backbone = None,
    data: Data = None,
    out: Annotated[Path | None, typer.Option(help="The folder of all runs, new.")] = None,
    device: Device = "auto",
    engine: Engine = "auto",
    precision: Precision = "tf32",
    deterministic: Deterministic = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue what is in --out.")] = False,
    as_json: AsJson = False,
    changes: Changes = None,
) -> None:
    """Train several methods on PROBLEM: one table, one picture.

    --set KEY=VALUE is for all of them, --set METHOD.KEY=VALUE for one.
    """
    options = {
        "target": target,
        "sensitive": sensitive,
        "positive": positive,
        "drop": tuple(drop) if drop else None,
        "data": data,
    }
    settings = settings_of(problem, options, changes, epochs=epochs)
    if seeds is not None and seed != 1:
        raise ConfigurationError(f"--seeds stands instead of --seed, found {seed} too: give one")
    seen: list[Path] = []
    try:
        with notes(), bars(seen, quiet=as_json) as show:
            done = compare_methods(
                problem,
                [name.strip() for name in methods.split(",") if name.strip()],
                seeds=[seed] if seeds is None else whole_numbers(seeds),
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
                progress=show,
            )
            for run in (run for runs in done.runs.values() for run in runs):
                draw(run)
            _draw(done)
    except KeyboardInterrupt:
        begun = seen[-1].parents[1] if seen else out
        if begun is None:
            note("interrupted before the first epoch was done: start again")
        else:
            saved = "what is done is saved" if seen else "no epoch is done yet"
            note(f"interrupted; {saved}: continue with --out {begun} --resume")
        raise typer.Exit(130) from None
    if as_json:
        print_json(done.to_dict())
    else:
        print_comparison(done)
    for method, why in done.failures.items():
        error(f"{method}: {why}")
    if done.failures:
        raise typer.Exit(1)


def _draw(done: Comparison) -> None:
    """One figure; a missing plotting package costs the picture, not the runs."""
    try:
        from paretocosmos.plotting import save_comparison

        fronts = {method: [run.front for run in runs] for method, runs in done.runs.items()}
        save_comparison(done.folder / "compare.png", fronts, title=done.problem, ideal=done.alone)
    except MissingExtraError as missing:
        note(f"no compare.png: {missing}")
