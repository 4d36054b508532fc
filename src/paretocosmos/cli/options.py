"""Options that commands share, and the parsing of their values."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from paretocosmos.cli import console
from paretocosmos.errors import ConfigurationError, MissingExtraError
from paretocosmos.io.progress import status
from paretocosmos.plotting import save_front
from paretocosmos.problems import problem_name
from paretocosmos.runs.run import Run
from paretocosmos.runtime.device import convert_sigterm
from paretocosmos.training.progress import show_bars


def parse_name(text: str | None) -> str | None:
    """Return a name; if it is `package.module:Name`, allow imports from the current folder."""
    if text is not None and ":" in text:
        _add_current_folder()
    return text


def _parse_trust(packages: list[str] | None) -> list[str]:
    if packages:
        _add_current_folder()
    return packages or []


def _add_current_folder() -> None:
    """Append the current folder to the path: last, so that it cannot hide installed packages."""
    # the path of an installed command lacks the current folder
    if "" not in sys.path:
        sys.path.append("")


# Options that `--help` lists under headings of their own.
training_option = partial(typer.Option, rich_help_panel="Training")
table_option = partial(typer.Option, rich_help_panel="Tables")
machine_option = partial(typer.Option, rich_help_panel="Machine")

# Annotations that several commands share, so that an option means the same everywhere.
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
RunFolders = Annotated[list[Path], typer.Argument(metavar="RUN", help="Run folders.")]
Threshold = Annotated[
    float | None,
    typer.Option(help="The probability above which a prediction is positive, e.g. 0.3."),
]
MovedData = Annotated[
    str | None, typer.Option(help="The new location of the data, if it was moved.")
]
RunDevice = Annotated[str, typer.Option(help="cpu, cuda or cuda:1.")]
ProblemName = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="A name from `list`, or a table: a CSV, TSV or Parquet file.",
        callback=parse_name,
    ),
]
MethodName = Annotated[
    str | None,
    training_option(
        help="The method, a name from `list methods`; by default the preset's.",
        callback=parse_name,
    ),
]
Seeds = Annotated[
    str | None, training_option(help="Several seeds, e.g. 1,2,3: a run for each, trained together.")
]
Task = Annotated[
    str | None, table_option(help="What to predict: binary (the default), classes or number.")
]
Fairness = Annotated[
    str | None, training_option(help="The fairness objective, a name from `list objectives`.")
]
Device = Annotated[str, machine_option(help="auto, cpu, cuda or cuda:1.")]
Precision = Annotated[str, machine_option(help="tf32, fp32, bf16 or fp64.")]
Workers = Annotated[
    int, machine_option(help="Processes to train in at once, with the same results; 0: none.")
]
Cluster = Annotated[
    str | None,
    machine_option(
        metavar="[ADDRESS]", help="Train on a Ray cluster; without ADDRESS, on one started here."
    ),
]
RecipeSeeds = Annotated[str | None, typer.Option(help="Seeds instead of the recipe's, e.g. 1,2,3.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PACKAGE",
        help="A package whose code the files may name; repeatable.",
        callback=_parse_trust,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def _share(kind: Any, default: Any, text: str, make: Any = training_option, **more: Any) -> Any:
    """Return the annotation and the default of an option."""
    flags = more.pop("flags", ())
    return Annotated[kind, make(*flags, help=text, **more)], default


MAYBE, TEXTS = str | None, list[str] | None
# Options of all commands that train: with their annotations and defaults.
SHARED: dict[str, tuple[Any, Any]] = {
    "preset": _share(
        MAYBE, None, "Settings to start from: default or paper; --protocol paper implies paper."
    ),
    "protocol": _share(
        MAYBE, None, "clean, or paper for the published setup, including its flaws."
    ),
    "seed": _share(int, 1, "Seed of weights, shuffling and rays."),
    "seeds": (Seeds, None),
    "epochs": _share(int | None, None, "Passes over the data."),
    "target": _share(MAYBE, None, "The column to predict.", table_option),
    "sensitive": _share(
        TEXTS,
        None,
        "A sensitive column, e.g. `sex`, or `age:5` for five age groups; repeatable.",
        table_option,
    ),
    "positive": _share(MAYBE, None, "The target's positive class.", table_option),
    "drop": _share(TEXTS, None, "A column to leave out; repeatable.", table_option),
    "backbone": _share(
        MAYBE, None, "The network, a name from `list backbones`.", callback=parse_name
    ),
    "data": _share(MAYBE, None, "The folder or file with the problem's data.", typer.Option),
    "out": _share(Path | None, None, "The new folder, of a run or of all runs.", typer.Option),
    "resume": _share(
        bool, False, "Continue what was begun in --out.", typer.Option, flags=["--resume"]
    ),
    "device": (Device, "auto"),
    "engine": _share(
        str,
        "auto",
        "How to run training steps: auto, eager, traced, compiled or captured.",
        machine_option,
    ),
    "precision": (Precision, "tf32"),
    "deterministic": _share(
        bool, False, "Use reproducible kernels on a GPU.", machine_option, flags=["--deterministic"]
    ),
    "workers": (Workers, 0),
    "cluster": (Cluster, None),
    "log_to": _share(
        TEXTS,
        None,
        "Log to tensorboard (WHERE: a folder), wandb (a project) or mlflow (a store), each of "
        "which is an extra; repeatable.",
        typer.Option,
        metavar="NAME[=WHERE]",
    ),
    "as_json": (AsJson, False),
    "changes": _share(
        TEXTS,
        None,
        "Set any other setting; repeatable.",
        typer.Option,
        flags=["--set"],
        metavar="KEY=VALUE",
    ),
}


def add_training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``**shared`` the options of all commands that train."""
    own = [p for p in signature(command).parameters.values() if p.name != "shared"]
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in SHARED.items()
    ]
    # where Typer looks for the options
    command.__signature__ = Signature([*own, *shared])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
    return command


# Criteria of `choose` and `predict`.
Bounds = list[str] | None
AtMost = Annotated[
    Bounds,
    typer.Option(
        "--max", metavar="NAME=NUMBER", help="An upper bound, e.g. tpr_gap=2%; repeatable."
    ),
]
AtLeast = Annotated[
    Bounds, typer.Option("--min", metavar="NAME=NUMBER", help="A lower bound; repeatable.")
]
Minimize = Annotated[
    str | None,
    typer.Option(
        help="The quantity to minimise, or several with a weight each, e.g. "
        "false_positives=1,false_negatives=5; by default the first objective without a bound."
    ),
]
Confidence = Annotated[
    float | None, typer.Option(help="The confidence that bounds hold for new people, e.g. 0.9.")
]
Maximize = Annotated[str | None, typer.Option(help="The quantity to maximise, e.g. accuracy.")]

# Options of `train` and `compare` that are settings: of the problem `table`, and of others.
TABLE_SETTINGS = ("target", "sensitive", "positive", "drop", "task")
OTHER_SETTINGS = ("penalty", "alpha", "fairness", "data")
# Options that `fit` and `compare` take by the same names.
PLAN_OPTIONS = (
    *("preset", "protocol", "method", "backbone", "conditioning", "epochs", "out", "resume"),
    *("device", "engine", "precision", "deterministic", "workers", "cluster"),
)


def describe_trust(packages: Iterable[str]) -> str:
    """Return the options that trust packages, in parentheses."""
    options = " ".join(f"--trust {package}" for package in packages)
    return f" (here: {options})" if options else ""


def collect_settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the settings among the arguments of a command: its options, and those of `--set`."""
    # Typer gives `None` or an empty list for an option that is not used
    names = (*TABLE_SETTINGS, *OTHER_SETTINGS)
    settings = {key: arguments[key] for key in names if arguments.get(key) not in (None, [])}
    # named in the message as they are typed
    for_tables = [f"--{key.replace('_', '-')}" for key in TABLE_SETTINGS if key in settings]
    changes = [parse_setting(change) for change in arguments["changes"] or []]
    # `--epochs` is passed to `fit` by itself, but `--set epochs=...` would contradict it
    fixed = settings.keys() | ({"epochs"} if arguments["epochs"] is not None else set())
    for key, _ in changes:
        # silently preferring one of two values would be a trap
        if key in fixed:
            raise ConfigurationError(f"`{key}` is set twice: give it once")
    # without this check the problem would refuse a setting that the user knows as an option
    if for_tables and problem_name(arguments["problem"]) != "table":
        raise ConfigurationError(
            f"only tables take {', '.join(for_tables)}, and `{arguments['problem']}` is not "
            "the path of one: give such a path, or leave them out"
        )
    return settings | dict(changes)


def collect_plan(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the keyword arguments of `fit` or `compare` among the arguments of a command."""
    # `compare` lacks some of these options, such as `method`
    plan = {name: arguments[name] for name in PLAN_OPTIONS if name in arguments}
    callbacks = []
    if arguments["log_to"]:
        # imported on demand, as each logger needs an extra
        from paretocosmos.integrations.loggers import make_logger

        callbacks = [make_logger(text) for text in arguments["log_to"]]
    return plan | {"callbacks": callbacks}


def collect_criteria(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the keyword arguments of `Run.choose` among the arguments of a command."""
    names = ("minimize", "maximize", "knee", "allow_constant", "confidence", "threshold")
    # `predict` lacks some of these options, such as `knee`
    criteria = {name: arguments[name] for name in (*names, "evaluations") if name in arguments}
    bounds = {
        "max": parse_named_numbers("--max", arguments["at_most"]),
        "min": parse_named_numbers("--min", arguments["at_least"]),
    }
    if "=" in (arguments["minimize"] or ""):
        criteria["minimize"] = parse_named_numbers("--minimize", arguments["minimize"].split(","))
    return criteria | bounds


def get_table_format(run: Run) -> dict[str, str | None]:
    """Return the format that was set for a run's table, in which new rows are read too."""
    problem = run.record["problem"] or {"settings": {}}
    return {key: problem["settings"].get(key) for key in ("separator", "decimal", "encoding")}


def format_options(**values: object) -> list[object]:
    """Return the options that were given as words of a command line."""
    given_values = {name: value for name, value in values.items() if value is not None}
    return [word for name, value in given_values.items() for word in (f"--{name}", value)]


def parse_setting(text: str, option: str = "--set") -> tuple[str, str]:
    """Split KEY=VALUE."""
    # at the first equals sign: a value may contain another
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigurationError(f"{option} takes KEY=VALUE, found `{text}`")
    return key.strip(), value.strip()


def parse_seeds(text: str | None) -> list[int] | None:
    """Parse the value of `--seeds`."""
    try:
        return None if text is None else [int(number) for number in text.split(",")]
    except ValueError as error:
        message = f"--seeds takes whole numbers such as 1,2,3, found `{text}`"
        raise ConfigurationError(message) from error


def list_seeds(seeds: str | None, seed: int) -> list[int]:
    """Return the seeds of `--seeds`, or that of `--seed`."""
    # 1 is the default of --seed, which cannot be told from a 1 that was typed
    if seeds is not None and seed != 1:
        raise ConfigurationError("--seeds and --seed exclude each other: give one of them")
    return parse_seeds(seeds) or [seed]


def parse_numbers(text: str, option: str = "--ray") -> list[float]:
    """Parse the numbers of an option, such as a ray."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError as error:
        message = f"{option} takes numbers such as 0.3,0.7, found `{text}`"
        raise ConfigurationError(message) from error


def parse_named_numbers(option: str, texts: list[str] | None) -> dict[str, float]:
    """Parse a repeatable NAME=NUMBER into numbers by name; `2%` and `2pt` (points) are 0.02."""
    numbers: dict[str, float] = {}
    for text in texts or []:
        name, _, value = map(str.strip, text.partition("="))
        # as in `Criteria`: gaps are spoken of in percent or in points
        percentage = value.removesuffix("%" if value.endswith("%") else "pt")
        try:
            number = float(percentage) / (1 if percentage == value else 100)
        except ValueError as error:
            raise ConfigurationError(
                f"{option} takes NAME=NUMBER, such as tpr_gap=0.02 or tpr_gap=2%, found `{text}`"
            ) from error
        # a dict would keep the last one without a word
        if name in numbers:
            raise ConfigurationError(f"{option} has `{name}` twice: give it once")
        numbers[name] = number
    return numbers


@contextmanager
def follow_training(out: Path | None, *, quiet: bool, levels: int) -> Iterator[None]:
    """Show bars and notes of trainings; say how to continue them if Ctrl-C stops them.

    Args:
        out: the folder that the user named.
        quiet: show no bars.
        levels: of folders between that of a run and the one to continue.
    """
    folders: list[Path] = []
    try:
        # a scheduler's SIGTERM ends it like Ctrl-C, with everything saved
        with (
            convert_sigterm(),
            console.warnings_as_notes(),
            show_bars(folders, quiet=quiet, log=True),
        ):
            yield
    except KeyboardInterrupt:
        folder = [folders[-1], *folders[-1].parents][levels] if folders else out
        if folder is None:
            console.print_note("interrupted before the end of the first epoch: start again")
        else:
            console.print_note(
                f"interrupted; finished epochs are saved: continue with --out {folder} --resume"
            )
        # 128 + SIGINT, by which shells recognise Ctrl-C
        raise typer.Exit(130) from None


def report_failures(failures: Mapping[str, str]) -> None:
    """Print why some of several trainings failed, after what the others gave, and exit with 1."""
    for name, reason in failures.items():
        console.print_error(f"{name}: {reason}")
    if failures:
        raise typer.Exit(1)


@contextmanager
def note_missing_picture(name: str) -> Iterator[None]:
    """Say that a picture is drawn; without a plotting package, print a note instead."""
    try:
        with status("drawing"):
            yield
    except MissingExtraError as error:
        console.print_note(f"no {name}: {error}")


def save_picture(run: Run) -> None:
    """Save the picture of a run."""
    title = f"{run.front.provenance['problem']} by {run.record['label']}"
    with note_missing_picture("front.png"):
        save_front(run.folder / "front.png", [run.front, run.front_val], title=title)
