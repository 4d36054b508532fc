"""`paretocosmos reproduce`, and what it and `demo` show of experiments."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from paretocosmos.cli import console, options
from paretocosmos.io.formatting import format_duration, format_number
from paretocosmos.paper.published import is_face_problem
from paretocosmos.runtime.device import convert_sigterm
from paretocosmos.training.progress import show_bars

if TYPE_CHECKING:
    from paretocosmos.paper.reproduction import ExperimentStatus, Reproduction


def reproduce(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A name from `list`, or a TOML file.")
    ],
    out: Annotated[
        Path, typer.Option(help="The folder for all recipes; finished experiments are kept.")
    ] = Path("reproduction"),
    only: Annotated[
        str | None,
        typer.Option(help="Train only these problems, methods or protocols, e.g. adult,cosmos."),
    ] = None,
    seeds: options.RecipeSeeds = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Rehearse with so few epochs; results are marked and kept apart."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A folder to search for data before the cache.")
    ] = None,
    device: options.Device = "auto",
    precision: options.Precision = "tf32",
    workers: options.Workers = 1,
    cluster: options.Cluster = None,
    trust: options.Trust = None,
    as_json: options.AsJson = False,
) -> None:
    """Train the experiments of a table or figure of the paper; run it again to continue."""
    from paretocosmos.paper.reproduction import reproduce as reproduce_recipe

    # "a, b" in quotes is as good as "a,b"
    names = [name.strip() for name in (only or "").split(",") if name.strip()]
    with follow_reproduction(out, quiet=as_json) as show:
        reproduction = reproduce_recipe(
            recipe,
            out=out,
            only=names,
            seeds=options.parse_seeds(seeds),
            epochs=epochs,
            data=data,
            trust=trust or (),
            device=device,
            precision=precision,
            # one by default, so that a crash in it does not end the recipe
            workers=0 if cluster is not None and workers == 1 else workers,
            cluster=cluster,
            progress=show,
        )
    if as_json:
        console.print_json(reproduction.to_dict())
    else:
        # kept back until the live display has ended
        for note in reproduction.notes:
            console.print_note(note)
        print_reproduction(reproduction)
        console.print_next_command(
            "report", recipe, *options.format_options(out=out, seeds=seeds, epochs=epochs)
        )
    # after the results: those that were reached are worth printing
    exit_on_failures(reproduction)


@contextmanager
def follow_reproduction(
    out: Path, *, quiet: bool
) -> Iterator["Callable[[Reproduction], None] | None"]:
    """Show a bar for each experiment that runs, and a line for each that ends, on stderr.

    If Ctrl-C stops them, say how to continue, and exit.
    """
    try:
        # a scheduler's SIGTERM ends it like Ctrl-C, with everything saved
        with convert_sigterm():
            if quiet:
                yield None
            else:
                with show_experiments() as show:
                    yield show
    except KeyboardInterrupt:
        console.print_note(
            f"interrupted; finished experiments are in {out}: run the same command to continue"
        )
        raise typer.Exit(130) from None


@contextmanager
def show_experiments() -> Iterator["Callable[[Reproduction], None]"]:
    """Show a bar for each experiment that runs, and a line for each that ends, on stderr."""
    # the last state seen of each experiment, to notice when it ends
    states: dict[str, str] = {}
    with show_bars(log=True, keep=False) as bars:

        def show(reproduction: "Reproduction") -> None:
            # what was done before this session is announced once, not as ends of experiments
            first = not states
            if first:
                console.print_markup(console.err, console.escape(_make_title(reproduction)))
                console.print_markup(console.err, console.escape(_count_states(reproduction)))
            for name, status in reproduction.statuses.items():
                before, states[name] = states.get(name), status.state
                if status.progress is not None:
                    bars.update(name, status.progress)
                elif not first and status.state != before and status.state in ("done", "failed"):
                    bars.remove(name)
                    console.print_markup(console.err, console.escape(_describe_end(status)))
                    console.print_markup(console.err, console.escape(_count_states(reproduction)))

        yield show


def exit_on_failures(reproduction: "Reproduction") -> None:
    """Print why experiments failed, if any did, and exit with code 1."""
    failed = reproduction.select("failed")
    for status in failed:
        advice = options.describe_trust(status.packages)
        console.print_error(f"{status.experiment.name}: {status.error}{advice}")
    # after the table, so that the error is the last thing in the terminal
    if failed:
        raise typer.Exit(1)


def print_reproduction(reproduction: "Reproduction") -> None:
    """Print a row per experiment, and what the time was spent on."""
    stdout = console.get_stdout()
    console.print_markup(stdout, f"[bold]{console.escape(_make_title(reproduction))}[/]")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    statuses = reproduction.statuses.values()
    # earlier results are shown beside those of this session
    shown = [s for s in statuses if s.asked or s.seeds_done or s.state == "failed"]
    compared = any(status.hypervolume_paper is not None for status in shown)
    table.add_column("experiment")
    for name in ("hypervolume", *(["the paper's"] if compared else []), "seeds", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state")
    for status in shown:
        table.add_row(
            console.escape(status.experiment.name),
            format_number(status.hypervolume),
            *([format_paper_volume(status)] if compared else []),
            f"{len(status.seeds_done)}/{len(status.experiment.seeds)}",
            format_duration(status.seconds) if status.seconds else "-",
            # one that was not asked for waits for nothing
            status.state if status.asked or status.state != "waiting" else "incomplete",
        )
    stdout.print(table)
    if any(status.experiment.method == "single_task" for status in shown):
        stdout.print("single_task: the hypervolume of the ideal point of its networks")
    if len(shown) < len(statuses):
        stdout.print(
            f"{len(statuses) - len(shown)} experiments that were not asked for are left out"
        )
    # the sums of the file, so that both agree
    total, *phases = (
        format_duration(seconds) + f" {phase}" * (phase != "all")
        for phase, seconds in reproduction.to_dict()["seconds"].items()
    )
    console.print_markup(stdout, f"total time: {total}, of which {', '.join(phases)}")
    console.print_path("results", reproduction.file)


def _make_title(reproduction: "Reproduction") -> str:
    recipe = reproduction.recipe
    title = f"{recipe.name}: {recipe.title}"
    if recipe.epochs is None:
        return title
    return f"REHEARSAL, {recipe.epochs} epoch{'s' * (recipe.epochs > 1)}, no results: {title}"


def _count_states(reproduction: "Reproduction") -> str:
    """Return how many of the experiments that were asked for are in each state."""
    counts = {s: len(reproduction.select(s)) for s in ("done", "running", "waiting", "failed")}
    parts = (f"{count} {state}" for state, count in counts.items() if count)
    return f"{sum(counts.values())} experiments: {', '.join(parts)}"


def _describe_end(status: "ExperimentStatus") -> str:
    name = status.experiment.name
    if status.state == "failed":
        return f"failed  {name}: {status.error}"
    seeds = len(status.experiment.seeds)
    printed = format_paper_volume(status)
    paper = "" if status.hypervolume_paper is None else f" (the paper's {printed})"
    return (
        f"done    {name}  HV {format_number(status.hypervolume)}{paper}  "
        f"{seeds} seed{'s' if seeds > 1 else ''}  {format_duration(status.seconds)}"
    )


def format_paper_volume(status: "ExperimentStatus") -> str:
    """Return the paper's hypervolume with as many digits as it has in print."""
    if status.hypervolume_paper is None:
        return "-"
    # the table of CelebA has three digits, Table 1 has two
    digits = 3 if is_face_problem(status.experiment.problem) else 2
    return f"{status.hypervolume_paper:.{digits}f}"
