"""`paretocosmos train`, and what it prints of one run or of several seeds."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from paretocosmos.cli import console, options
from paretocosmos.cli.results import compute_by_objective, print_consequences, suggest_choice
from paretocosmos.io.formatting import format_mean, format_number
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.problems.tables import Answer
from paretocosmos.runs.run import PAGE, Run
from paretocosmos.runtime.launch import launched_rank
from paretocosmos.training.fit import fit

# Keys of a record that `train --json` prints unchanged.
RECORD_KEYS = (
    *("epoch_selected", "networks", "seconds_training", "seconds_to_selected"),
    *("seconds_preparing", "seconds_evaluating", "samples_per_second", "peak_memory"),
    *("share_waiting", "data", "seeds_together", "precision", "engine"),
)


@options.add_training_options
def train(
    problem: options.ProblemName,
    method: options.MethodName = None,
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
    task: options.Task = None,
    fairness: options.Fairness = None,
    conditioning: Annotated[
        str | None,
        options.training_option(
            help="How the ray enters the network, a name from `list conditioning`.",
            callback=options.parse_name,
        ),
    ] = None,
    **shared: Any,
) -> None:
    """Train one network for the whole front of PROBLEM (some methods train several)."""
    arguments = {**locals(), **shared}
    settings, plan = options.collect_settings(arguments), options.collect_plan(arguments)
    parsed_seeds, as_json = options.parse_seeds(shared["seeds"]), shared["as_json"]
    # `--seeds 1` is a list, too, with a folder per seed inside the one to continue
    several = parsed_seeds is not None
    with options.follow_training(shared["out"], quiet=as_json, levels=int(several)):
        result: Any = fit(
            problem, seed=shared["seed"], seeds=parsed_seeds, settings=settings, **plan
        )
        runs: list[Run] = result if several else [result]
        if launched_rank():  # the first of several processes draws and prints
            return
        for run in runs:
            options.save_picture(run)
    if several:
        console.print_json([summarize_run(run) for run in runs]) if as_json else print_runs(runs)
    else:
        console.print_json(summarize_run(runs[0])) if as_json else print_run(runs[0])


def summarize_run(run: Run) -> dict[str, Any]:
    """Return the summary of a run that `train --json` prints."""
    record, test = run.record, run.record["metrics"]["test"]
    return {
        "run": str(run.folder),
        "problem": run.front.provenance["problem"],
        "method": record["label"],
        "preset": record["preset"],
        **{key: record[key] for key in ("protocol", "seed", "parameters")},
        # only tables have a target and a positive class
        **{key: record["about"][key] for key in ("target", "positive") if key in record["about"]},
        # on the top level, since the test metrics are what most callers read
        **test,
        "by_objective": compute_by_objective(run.front),
        "sensitivity": record.get("sensitivity"),
        "findings": record.get("findings", []),
        "hypervolume_val": record["metrics"]["val"]["hypervolume"],
        **{key: record[key] for key in RECORD_KEYS},
        "scores": run.front.provenance["scores"],
    }


def print_run(run: Run) -> None:
    """Print what a front trades, a few numbers for a modeller, and the next command."""
    # what a decision maker asks comes first
    print_consequences(run)
    stdout = console.get_stdout()
    console.print_markup(stdout, "\n[bold]For the modeller[/]")
    console.print_fields(_describe_run(run))
    engine, _, reason = str(run.record["engine"]).partition(": ")
    if reason:
        console.print_note(f"training used the engine {engine}: {reason}")
    console.print_next_command(*suggest_choice(run))


def _describe_run(run: Run) -> dict[str, object]:
    """Return what a modeller asks first; `run.json` and `--json` have all the rest."""
    record, metrics, front = run.record, run.record["metrics"], run.front
    about, fields = record["about"], dict[str, object]()
    if {"positive", "target"} <= about.keys():
        fields["predicts"] = f"`{about['positive']}` of `{about['target']}`"
    elif {"answer", "target"} <= about.keys():
        answer = Answer.from_about(about)
        kind = "a number" if answer.task == "number" else ", ".join(answer.classes)
        fields["predicts"] = f"`{about['target']}`: {kind}"
    fields["method"] = (
        f"{record['label']} ({record['preset']} preset, {record['protocol']} protocol)"
    )
    names = ["hypervolume"]
    # networks for one objective each are judged by their ideal point
    if has_only_corners(record["fixed_rays"]):
        names.append("hypervolume_ideal")
    for name in names:
        test, val = (format_number(metrics[split][name]) for split in ("test", "val"))
        fields[name.replace("hypervolume_ideal", "ideal point")] = f"{test} on test, {val} on val"
    if len(front) > 1:
        share = metrics["test"].get("dominated_share") or 0
        points = "rays" if record["fixed_rays"] is None else "networks"
        fields["dominated"] = f"{share:.0%} of {len(front)} {points}"
    engine = str(record["engine"]).partition(":")[0]
    fields["training"] = (
        f"{record['seconds_training']:.1f} s, engine {engine} on {record['device']}, "
        f"{_describe_epochs(record)} selected, {_describe_size(record)}"
    )
    return fields | {"run": run.folder} | ({} if run.report is None else {"page": run.report})


def print_runs(runs: Sequence[Run]) -> None:
    """Print a row for each of several seeds, and their mean."""
    table = console.make_table("seed", "order", "dominated", "hypervolume", "val", "epoch", "run")
    for run in runs:
        summary = summarize_run(run)
        table.add_row(
            str(summary["seed"]),
            # the worst objective: a front is in order only if all of them are
            f"{min(summary['by_objective']['monotonicity'].values()):.2f}",
            f"{summary['dominated_share']:.0%}",
            format_number(summary["hypervolume"]),
            format_number(summary["hypervolume_val"]),
            _describe_epochs(run.record).partition(" ")[2],
            console.escape(summary["run"]),
        )
    stdout, record, folder = console.get_stdout(), runs[0].record, runs[0].folder.parent
    stdout.print(table)
    together = record["seeds_together"]
    console.print_markup(
        stdout,
        f"[bold]mean hypervolume {format_mean([run.hypervolume for run in runs])}[/] on test; "
        f"{together} {'seeds' if together > 1 else 'seed'} at a time, {_describe_size(record)} "
        "each",
    )
    console.print_path("page", folder / PAGE)
    console.print_next_command("explore", folder)


def _describe_epochs(record: Mapping[str, Any]) -> str:
    """Return the selected epoch, or the first and last of several networks."""
    epochs = [network["epoch_selected"] for network in record["networks"]]
    low, high = min(epochs), max(epochs)
    return f"epoch {low}" if low == high else f"epochs {low} to {high}"


def _describe_size(record: Mapping[str, Any]) -> str:
    count, total = len(record["networks"]), record["parameters"]
    size = f"{total // count:,} parameters"
    return f"{count} networks x {size}" if count > 1 else size
