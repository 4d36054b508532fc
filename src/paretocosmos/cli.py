"""The command line: parses and prints, nothing more."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from paretocosmos import __version__, find, metrics, printing
from paretocosmos.errors import ConfigurationError, MissingExtraError, ParetoCosmosError
from paretocosmos.evaluation import evaluate as evaluate_model
from paretocosmos.printing import (
    bar,
    note,
    notes,
    numbers_of_run,
    print_front,
    print_json,
    print_run,
    print_runs,
)
from paretocosmos.problems import problem_name
from paretocosmos.run import Run, load_run
from paretocosmos.training import fit

__all__ = ["app", "main"]

app = typer.Typer(
    help="One network, trained once, gives the whole Pareto front.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
ROOMS = ("problems", "methods", "conditioning", "backbones", "objectives")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def main() -> None:
    """Run the command line; what we refuse is one sentence and exit code 2."""
    sys.path.insert(0, "")  # as `python -m` does: things of one's own lie beside one
    try:
        app()
    except ParetoCosmosError as error:
        printing.error(str(error))
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"paretocosmos {__version__}\n")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """One network, trained once, gives the whole Pareto front."""


@app.command("list")
def list_things(as_json: AsJson = False) -> None:
    """List problems, methods, conditionings, backbones and objectives."""
    found = {room: {n: find.summary(room, n) for n in find.names(room)} for room in ROOMS}
    if as_json:
        print_json(found)
        return
    for room, things in found.items():
        table = Table(title=room, title_justify="left", box=None, show_header=False, padding=(0, 2))
        for name, line in things.items():
            table.add_row(f"[bold]{name}[/]", escape(line))
        Console().print(table)


@app.command()
def train(
    problem: Annotated[str, typer.Argument(help="A name from `list`, or a CSV file.")],
    method: Annotated[str, typer.Option(help="How rays and losses become one step.")] = "cosmos",
    protocol: Annotated[
        str | None, typer.Option(help="clean, or paper: as published, flaws included.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights, shuffling and rays.")] = 1,
    seeds: Annotated[
        str | None, typer.Option(help="Several, as 1,2,3: one run each, trained together.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    penalty: Annotated[float | None, typer.Option(help="Weight of the cosine term.")] = None,
    alpha: Annotated[
        str | None, typer.Option(help="Dirichlet parameter: 0.5, or one per objective: 0.1,0.5.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="CSV: the column to predict.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="CSV: the column to be fair to.")] = None,
    positive: Annotated[str | None, typer.Option(help="CSV: the target's positive class.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="CSV: a column to leave out; repeatable.")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="The network, by name.")] = None,
    conditioning: Annotated[str | None, typer.Option(help="How the ray enters it.")] = None,
    data: Annotated[str | None, typer.Option(help="Where the problem's data lies.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder, new.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    engine: Annotated[
        str, typer.Option(help="How steps are run: auto, eager, traced, compiled, captured.")
    ] = "auto",
    precision: Annotated[str, typer.Option(help="tf32, fp32, bf16 or fp64.")] = "tf32",
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Reproducible kernels on a GPU.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    as_json: AsJson = False,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any constructor argument; repeatable."),
    ] = None,
) -> None:
    """Train one network for the whole front of PROBLEM."""
    options = {
        "penalty": penalty,
        "alpha": alpha,
        "target": target,
        "sensitive": sensitive,
        "positive": positive,
        "drop": tuple(drop) if drop else None,
        "data": data,
    }
    settings: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
    for_csv = [f"--{key}" for key in ("target", "sensitive", "positive", "drop") if key in settings]
    if for_csv and problem_name(problem) != "table":
        raise ConfigurationError(f"{', '.join(for_csv)} is for CSV files, not for `{problem}`")
    settings |= dict(_key_value(change) for change in changes or [])
    seen: list[Path] = []
    try:
        with notes(), bar(seen, quiet=as_json) as show:
            one = partial(
                fit,
                problem,
                method=method,
                backbone=backbone,
                conditioning=conditioning,
                protocol=protocol,
                epochs=epochs,
                settings=settings,
                out=out,
                resume=resume,
                device=device,
                engine=engine,
                precision=precision,
                deterministic=deterministic,
                progress=show,
            )
            runs: list[Run] = (
                [one(seed=seed)] if seeds is None else one(seed=seed, seeds=_seeds(seeds))  # type: ignore[assignment]
            )
            for run in runs:
                _draw(run)
    except KeyboardInterrupt:
        # several seeds have a folder each, in one that holds them all
        begun = seen[-1] if seen and seeds is None else seen[-1].parent if seen else out
        if begun is None:
            note("interrupted before the first epoch was done: start again")
        else:
            saved = "the last whole epoch is saved" if seen else "no epoch is done yet"
            note(f"interrupted; {saved}: continue with --out {begun} --resume")
        raise typer.Exit(130) from None
    if seeds is None:
        print_json(numbers_of_run(runs[0])) if as_json else print_run(runs[0])
    else:
        print_json([numbers_of_run(run) for run in runs]) if as_json else print_runs(runs)


@app.command()
def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    rays: Annotated[int | None, typer.Option(help="How many even rays; the run's own.")] = None,
    ray: Annotated[list[str] | None, typer.Option(help="One ray, as 0.3,0.7; repeatable.")] = None,
    data: Annotated[str | None, typer.Option(help="Where the data lies now, if moved.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Evaluate a RUN again: reproduces its front, or gives other rays and splits."""
    if ray and rays is not None:
        raise ConfigurationError("--ray and --rays exclude each other: give one of them")
    run = load_run(folder, device=device)
    with notes():
        problem = run.problem(data=data)
        count = len(run.front) if rays is None else rays
        wanted = [_numbers_of(text) for text in ray] if ray else count
        origin = {key: run.front.provenance.get(key) for key in ("method", "seed")}
        front = evaluate_model(run.model, problem, split=split, rays=wanted, provenance=origin)
        reached = metrics.hypervolume(front)
    if as_json:
        print_json(front.to_dict())
        return
    print_front(front)
    console = Console(highlight=False)
    console.print(
        f"hypervolume {reached:.4f} at {front.reference.tolist()} on {split}, "
        f"span {metrics.span(front):.4f}; scores: {front.provenance['scores']}"
    )


def _draw(run: Run) -> None:
    """The picture and the page; a missing plotting package costs the picture, not the run."""
    from paretocosmos.explorer import write_report

    title = f"{run.front.provenance['problem']} by {run.record['method']['name']}"
    write_report(run.folder / "report.html", run.record, [run.front, run.front_val])
    try:
        from paretocosmos.plotting import save_front

        save_front(run.folder / "front.png", [run.front, run.front_val], title=title)
    except MissingExtraError as error:
        note(f"no front.png: {error}")


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigurationError(f"--set takes KEY=VALUE, found `{text}`")
    return key.strip(), value.strip()


def _seeds(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigurationError(f"--seeds takes whole numbers as 1,2,3, found `{text}`") from error


def _numbers_of(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigurationError(f"--ray takes numbers as 0.3,0.7, found `{text}`") from error
