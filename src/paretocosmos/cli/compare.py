"""`paretocosmos compare`."""

from typing import Annotated, Any

import typer

from paretocosmos.cli import console, options
from paretocosmos.cli.results import find_plain_metrics, format_span, get_words
from paretocosmos.plotting import save_comparison
from paretocosmos.runs.run import PAGE
from paretocosmos.training.compare import COMPARED, Comparison
from paretocosmos.training.compare import compare as compare_methods


@options.add_training_options
def compare(
    problem: options.ProblemName,
    methods: Annotated[
        str,
        typer.Option(help="Names of methods, separated by commas.", callback=options.parse_name),
    ] = ",".join(COMPARED),
    **shared: Any,
) -> None:
    """Train several methods on PROBLEM, and compare their fronts in one table and one picture.

    --set KEY=VALUE applies to all methods, --set METHOD.KEY=VALUE to one of them.
    """
    arguments = {**locals(), **shared}
    # a folder per method, which has one per seed
    with options.follow_training(shared["out"], quiet=shared["as_json"], levels=2):
        comparison = compare_methods(
            problem,
            [name.strip() for name in methods.split(",") if name.strip()],
            seeds=options.list_seeds(shared["seeds"], shared["seed"]),
            settings=options.collect_settings(arguments),
            **options.collect_plan(arguments),
        )
        # inside: pictures take seconds, too, in which Ctrl-C should be as gentle
        for run in (run for runs in comparison.runs.values() for run in runs):
            options.save_picture(run)
        with options.note_missing_picture("compare.png"):
            fronts = {name: [run.front for run in runs] for name, runs in comparison.runs.items()}
            picture = comparison.folder / "compare.png"
            save_comparison(picture, fronts, title=comparison.problem, ideal=comparison.alone)
    if shared["as_json"]:
        console.print_json(comparison.to_dict())
    else:
        print_comparison(comparison)
    options.report_failures(comparison.failures)


def print_comparison(comparison: Comparison) -> None:
    """Print what the methods trade, how good each is and what it costs, and where the files are."""
    # what people understand comes first, as everywhere: the range of plain metrics
    first_run = next(iter(comparison.runs.values()))[0]
    problem = first_run.trained_on
    measures = get_words(problem, first_run.front).measures
    names = find_plain_metrics(problem, first_run.front)[: first_run.front.objectives]
    table = console.make_table("on test", *(measures[name].label for name in names))
    for method, runs in comparison.runs.items():
        # one seed: the ends of a mean front would belong to no network
        front = runs[0].front
        spans = (console.escape(format_span(front, name, measures[name])) for name in names)
        table.add_row(f"[bold]{console.escape(method)}[/]", *spans)
    stdout = console.get_stdout()
    stdout.print(table)
    stdout.print()
    console.print_value(comparison)
    console.print_path("table", comparison.folder / "compare.json")
    console.print_path("picture", comparison.folder / "compare.png")
    console.print_path("page", comparison.folder / PAGE)
    console.print_next_command("explore", comparison.folder)
