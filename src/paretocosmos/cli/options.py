"""Options that commands share, and how their texts are read."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from paretocosmos.cli.console import print_note
from paretocosmos.errors import ConfigurationError, MissingExtraError
from paretocosmos.io.progress import status
from paretocosmos.problems import problem_name
from paretocosmos.runs.run import Run
from paretocosmos.training.callbacks import Callback


def parse_name(text: str | None) -> str | None:
    """Parse a name; `package.module:Thing` may lie in the current folder."""
    if text is not None and ":" in text:
        _add_current_folder()
    return text


def _parse_trust(packages: list[str] | None) -> list[str]:
    if packages:
        _add_current_folder()
    return packages or []


def _add_current_folder() -> None:
    """Put the current folder last on the path, where nothing in it can hide what is installed."""
    if "" not in sys.path:
        sys.path.append("")


# Headings of `--help`.
TRAINING, TABLES, MACHINE = "Training", "Tables", "Machine"

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
RunFolders = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")]
Threshold = Annotated[
    float | None,
    typer.Option(help="The probability above which a decision is positive, as 0.3."),
]
MovedData = Annotated[str | None, typer.Option(help="Where the data is now, if it was moved.")]
RunDevice = Annotated[str, typer.Option(help="cpu, cuda, cuda:1.")]
ProblemName = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="A name from `list`, or a table: a CSV, TSV or Parquet file.",
        callback=parse_name,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="Settings to start from: default, or paper, which --protocol paper implies.",
        rich_help_panel=TRAINING,
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        help="clean, or paper: the published setup, flaws included.", rich_help_panel=TRAINING
    ),
]
Seed = Annotated[
    int, typer.Option(help="Seed of weights, shuffling and rays.", rich_help_panel=TRAINING)
]
Seeds = Annotated[
    str | None,
    typer.Option(
        help="Several seeds, as 1,2,3: one run each, trained together.", rich_help_panel=TRAINING
    ),
]
Epochs = Annotated[int | None, typer.Option(help="Passes over the data.", rich_help_panel=TRAINING)]
Target = Annotated[str | None, typer.Option(help="The column to predict.", rich_help_panel=TABLES)]
Sensitive = Annotated[
    list[str] | None,
    typer.Option(
        help="A column of groups, as `sex`, or cut, as `age:5`; repeatable.", rich_help_panel=TABLES
    ),
]
SmallGroups = Annotated[
    str | None,
    typer.Option(help="keep, pool or refuse groups of few rows.", rich_help_panel=TABLES),
]
Positive = Annotated[
    str | None, typer.Option(help="The target's positive class.", rich_help_panel=TABLES)
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="A column to leave out; repeatable.", rich_help_panel=TABLES),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        help="A column to keep that looks like an identifier; repeatable.", rich_help_panel=TABLES
    ),
]
Separator = Annotated[
    str | None, typer.Option(help="The column separator, as `;` or `tab`.", rich_help_panel=TABLES)
]
Decimal = Annotated[
    str | None, typer.Option(help="The decimal mark, `.` or `,`.", rich_help_panel=TABLES)
]
Encoding = Annotated[
    str | None, typer.Option(help="The text encoding, as `cp1252`.", rich_help_panel=TABLES)
]
Task = Annotated[
    str | None,
    typer.Option(help="binary (the default), classes or number.", rich_help_panel=TABLES),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(help="balanced gives all classes the same weight.", rich_help_panel=TABLES),
]
Fairness = Annotated[
    str | None, typer.Option(help="The fairness measure, by name.", rich_help_panel=TRAINING)
]
Val = Annotated[
    str | None, typer.Option(help="A file with the validation rows.", rich_help_panel=TABLES)
]
Test = Annotated[
    str | None, typer.Option(help="A file with the test rows.", rich_help_panel=TABLES)
]
Backbone = Annotated[
    str | None,
    typer.Option(help="The network, by name.", rich_help_panel=TRAINING, callback=parse_name),
]
Data = Annotated[str | None, typer.Option(help="The folder or file with the problem's data.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.", rich_help_panel=MACHINE)]
Engine = Annotated[
    str,
    typer.Option(
        help="How steps are run: auto, eager, traced, compiled, captured.", rich_help_panel=MACHINE
    ),
]
Precision = Annotated[str, typer.Option(help="tf32, fp32, bf16 or fp64.", rich_help_panel=MACHINE)]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="Reproducible kernels on a GPU.", rich_help_panel=MACHINE),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PACKAGE",
        help="A package whose code a file may name; repeatable.",
        callback=_parse_trust,
    ),
]
Verify = Annotated[
    Path | None,
    typer.Option(metavar="PUBKEY", help="Open only runs signed with the matching private key."),
]
LogTo = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=WHERE]",
        help="Log to tensorboard, wandb or mlflow, each an extra; repeatable. WHERE: a folder, a "
        "project, a store.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any constructor argument; repeatable."),
]


OF_TABLES = (
    *("target", "sensitive", "positive", "drop", "keep", "small_groups"),
    *("task", "class_weight"),
    *("separator", "decimal", "encoding", "val", "test"),
)
"""Options that are settings of the problem `table`."""


def describe_trust(packages: Iterable[str]) -> str:
    """Return the options that trust packages, in parentheses."""
    options = " ".join(f"--trust {package}" for package in packages)
    return f" (here: {options})" if options else ""


def collect_settings(
    problem: str, changes: list[str] | None, *, epochs: int | None, **options: Any
) -> dict[str, Any]:
    """Collect the options that are settings and were given, and what `--set` adds to them.

    Args:
        problem: its name, or a table.
        changes: of `--set`.
        epochs: of `--epochs`, which `--set` must not say again.
        options: those that are settings, by their names; `None` for what was not given.
    """
    settings = {key: value for key, value in options.items() if value not in (None, [])}
    changed = [parse_setting(change) for change in changes or []]
    given = {*settings, *(() if epochs is None else ("epochs",))}
    for key, _ in changed:
        if key in given:
            raise ConfigurationError(f"`{key}` is set twice: give it once")
    for_tables = [f"--{key.replace('_', '-')}" for key in OF_TABLES if key in settings]
    if for_tables and problem_name(problem) != "table":
        raise ConfigurationError(
            f"only tables take {', '.join(for_tables)}, and `{problem}` is not the path of one: "
            "give such a path, or leave that out"
        )
    return settings | dict(changed)


def parse_setting(text: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigurationError(f"--set takes KEY=VALUE, found `{text}`")
    return key.strip(), value.strip()


def make_loggers(texts: list[str] | None) -> list[Callback]:
    """Build the loggers of `--log-to`."""
    if not texts:
        return []
    from paretocosmos.integrations.loggers import make_logger

    return [make_logger(text) for text in texts]


def parse_integers(text: str) -> list[int]:
    """Parse the seeds of `--seeds`."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigurationError(f"--seeds takes whole numbers as 1,2,3, found `{text}`") from error


def parse_numbers(text: str, option: str = "--ray") -> list[float]:
    """Parse the ray of a `--ray`, or the numbers of another option."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigurationError(f"{option} takes numbers as 0.3,0.7, found `{text}`") from error


def parse_named_numbers(option: str, texts: list[str] | None) -> dict[str, float]:
    """Parse the numbers of a repeatable NAME=NUMBER by name; `2%` and `2pt` (points) are 0.02."""
    numbers: dict[str, float] = {}
    for text in texts or []:
        name, _, value = (part.strip() for part in text.partition("="))
        hundredths = value.removesuffix("%" if value.endswith("%") else "pt")
        try:
            number = float(hundredths) / (1 if hundredths == value else 100)
        except ValueError as error:
            raise ConfigurationError(
                f"{option} takes NAME=NUMBER, as tpr_gap=0.02 or tpr_gap=2%, found `{text}`"
            ) from error
        if name in numbers:
            raise ConfigurationError(f"{option} has `{name}` twice: give it once")
        numbers[name] = number
    return numbers


def end_interrupted(begun: Path | None, saved: str) -> typer.Exit:
    """Print how to continue a training that Ctrl-C stopped, and return its exit.

    Args:
        begun: the folder to go on from; `None` where there is none yet.
        saved: what of it is saved.
    """
    if begun is None:
        print_note("interrupted before the end of the first epoch: start again")
    else:
        print_note(f"interrupted; {saved}: continue with --out {begun} --resume")
    return typer.Exit(130)


def save_picture(run: Run) -> None:
    """Save the picture of a run; without a plotting package, print a note instead."""
    title = f"{run.front.provenance['problem']} by {run.record['label']}"
    try:
        with status("drawing"):
            from paretocosmos.plotting import save_front

            save_front(run.folder / "front.png", [run.front, run.front_val], title=title)
    except MissingExtraError as error:
        print_note(f"no front.png: {error}")
