"""The command line: parses and prints, nothing more."""

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from paretocosmos import __version__, find, metrics
from paretocosmos.errors import ConfigurationError, MissingExtraError, ParetoCosmosError
from paretocosmos.evaluation import evaluate as evaluate_model
from paretocosmos.front import Front
from paretocosmos.problems import problem_name
from paretocosmos.run import Run, load_run
from paretocosmos.training import Progress, fit

__all__ = ["app", "main"]

app = typer.Typer(
    help="One network, trained once, gives the whole Pareto front.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
err = Console(stderr=True, highlight=False)

ROOMS = ("problems", "methods", "conditioning", "backbones", "objectives")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def main() -> None:
    """Run the command line; what we refuse is one sentence and exit code 2."""
    sys.path.insert(0, "")  # as `python -m` does: things of one's own lie beside one
    try:
        app()
    except ParetoCosmosError as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
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
        _print_json(found)
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
    engine: Annotated[str, typer.Option(help="auto, eager or traced; never the result.")] = "auto",
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
        with _notes(), _bar(seen, quiet=as_json) as show:
            run = fit(
                problem,
                method=method,
                backbone=backbone,
                conditioning=conditioning,
                protocol=protocol,
                epochs=epochs,
                seed=seed,
                settings=settings,
                out=out,
                resume=resume,
                device=device,
                engine=engine,
                deterministic=deterministic,
                progress=show,
            )
            _draw(run)
    except KeyboardInterrupt:
        where = f"--out {seen[-1]} " if seen else ""
        err.print(f"interrupted; the last whole epoch is saved: continue with {where}--resume")
        raise typer.Exit(130) from None
    if as_json:
        _print_json(_numbers(run))
    else:
        _print_run(run)


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
    with _notes():
        problem = run.problem(data=data)
        count = len(run.front) if rays is None else rays
        wanted = [_numbers_of(text) for text in ray] if ray else count
        origin = {key: run.front.provenance.get(key) for key in ("method", "seed")}
        front = evaluate_model(run.model, problem, split=split, rays=wanted, provenance=origin)
        reached = metrics.hypervolume(front)
    if as_json:
        _print_json(front.to_dict())
        return
    _print_front(front)
    console = Console(highlight=False)
    console.print(
        f"hypervolume {reached:.4f} at {front.reference.tolist()} on {split}, "
        f"span {metrics.span(front):.4f}; scores: {front.provenance['scores']}"
    )


def _numbers(run: Run) -> dict[str, Any]:
    record, test = run.record, run.record["metrics"]["test"]
    return {
        "run": str(run.folder),
        "problem": run.front.provenance["problem"],
        "method": record["method"]["name"],
        "protocol": record["protocol"],
        "seed": record["seed"],
        "parameters": record["parameters"],
        **test,
        "hypervolume_val": record["metrics"]["val"]["hypervolume"],
        "epoch_selected": record["epoch_selected"],
        "seconds_training": record["seconds_training"],
        "seconds_to_selected": record["seconds_to_selected"],
        "engine": record["engine"],
        "scores": run.front.provenance["scores"],
    }


def _print_run(run: Run) -> None:
    numbers, front = _numbers(run), run.front
    ends = [front.values[index] for index in (0, len(front) - 1)]
    table = Table(show_header=False, box=None, padding=(0, 2))
    reference = ", ".join(f"{value:g}" for value in front.reference)
    for name, value in {
        "hypervolume": f"{numbers['hypervolume']:.4f} test, {numbers['hypervolume_val']:.4f} val, "
        f"at ({reference})",
        "span": f"{numbers['span']:.4f}",
        "dominated": f"{numbers['dominated_share']:.0%} of {len(front)} rays",
        "objectives": ", ".join(front.names),
        **_meaning(run),
        "ends of the front": " to ".join(
            "(" + ", ".join(f"{value:.4f}" for value in end) + ")" for end in ends
        ),
        "training": f"{numbers['seconds_training']:.1f} s, epoch {numbers['epoch_selected']} "
        f"selected, {numbers['parameters']:,} parameters",
        "engine": numbers["engine"],
        "scores": f"{numbers['scores']} ({numbers['protocol']} protocol)",
    }.items():
        table.add_row(f"[bold]{name}[/]", escape(value))
    console = Console(highlight=False)
    console.print(table, soft_wrap=True)
    # outside the table, which would break a long path in two
    console.print(f"  [bold]{'run':<21}[/]{escape(str(run.folder))}", soft_wrap=True)


def _meaning(run: Run) -> dict[str, str]:
    """Which class a table's network predicts, and whom it compares."""
    about = run.record["about"]
    if not about:
        return {}
    return {
        "predicts": f"`{about['positive']}` of `{about['target']}`",
        "compares": f"`{about['sensitive']}`: {', '.join(about['groups'])}",
    }


def _print_front(front: Front) -> None:
    """One row per ray; 80 columns hold two objectives with their metrics."""
    metrics_shown = [name for name in front.metrics if name != "misclassification"]  # 1 - accuracy
    weights = front.names[:1] if front.objectives == 2 else front.names
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in (*(f"weight on {name}" for name in weights), *front.names, *metrics_shown):
        table.add_column(name.replace("_", " "), justify="right", overflow="fold")
    table.add_column("", no_wrap=True)
    keep = front.non_dominated
    for index in range(len(front)):
        row = [*front.rays[index][: len(weights)], *front.values[index]]
        row += [front.metrics[name][index] for name in metrics_shown]
        table.add_row(*(f"{value:.3f}" for value in row), "" if keep[index] else "dominated")
    console = Console(highlight=False)
    # a pipe has no width: cut numbers would be lost
    console.print(table, width=None if console.is_terminal else 240)


def _draw(run: Run) -> None:
    """The picture and the page; a missing plotting package costs the picture, not the run."""
    from paretocosmos.explorer import write_report

    title = f"{run.front.provenance['problem']} by {run.record['method']['name']}"
    write_report(run.folder / "report.html", run.record, [run.front, run.front_val])
    try:
        from paretocosmos.plotting import save_front

        save_front(run.folder / "front.png", [run.front, run.front_val], title=title)
    except MissingExtraError as error:
        err.print(f"[yellow]note:[/] no front.png: {escape(str(error))}", soft_wrap=True)


@contextmanager
def _notes() -> Iterator[None]:
    """Show warnings as notes on stderr, each once; a refusal stands alone."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        err.print(f"[yellow]note:[/] {escape(message)}", soft_wrap=True)


@contextmanager
def _bar(seen: list[Path], *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A live bar on stderr: epoch, losses, validation hypervolume, time left."""
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[losses]}"),
        TextColumn("HV val {task.fields[hypervolume]}"),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=err, disable=quiet)
    task = bar.add_task("train", total=None, losses="", hypervolume="-")

    def show(at: Progress) -> None:
        seen[:] = [at.folder]
        reached = "-" if at.hypervolume_val is None else f"{at.hypervolume_val:.4f}"
        losses = "  ".join(f"{name} {value:.3f}" for name, value in at.losses.items())
        bar.update(
            task,
            total=at.epochs,
            completed=at.epoch,
            losses=escape(losses),
            hypervolume=reached,
        )
        bar.start()  # not earlier: what is refused is one sentence, without a bar

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigurationError(f"--set takes KEY=VALUE, found `{text}`")
    return key.strip(), value.strip()


def _numbers_of(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigurationError(f"--ray takes numbers as 0.3,0.7, found `{text}`") from error


def _print_json(content: object) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
