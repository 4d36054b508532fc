"""`paretocosmos sweep`."""

import shlex
from typing import Annotated, Any

from paretocosmos.cli import console, options
from paretocosmos.errors import ConfigurationError
from paretocosmos.training.sweep import sweep as sweep_settings


@options.add_training_options
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
    **shared: Any,
) -> None:
    """Train PROBLEM with every combination of some values, and rank them on validation data."""
    arguments = {**locals(), **shared}
    combinations: dict[str, Any] = {}
    for text in grid:
        key, values = options.parse_setting(text, "--grid")
        if key in combinations:
            raise ConfigurationError(f"--grid has `{key}` twice: give it once")
        try:
            combinations[key] = shlex.split(values)  # quotes hold a value together
        except ValueError as error:
            raise ConfigurationError(
                f"--grid takes values between spaces, found `{text}`: close the quote"
            ) from error
    # a folder per trial, which has one per seed
    with options.follow_training(shared["out"], quiet=shared["as_json"], levels=2):
        done = sweep_settings(
            problem,
            combinations,
            samples=samples,
            measure=measure,  # type: ignore[arg-type]  # checked there
            seeds=options.list_seeds(shared["seeds"], shared["seed"]),
            settings=options.collect_settings(arguments),
            **options.collect_plan(arguments),
        )
    if shared["as_json"]:
        console.print_json(done.to_dict())
    else:
        console.print_value(done)
        (best,) = done.best.values()
        console.print_next_command("explore", best[0].folder)
    options.report_failures(done.failures)
