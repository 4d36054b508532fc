"""Print the results of `train`: one run, or a row for each of several seeds."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from rich.table import Table

from paretocosmos.cli.console import (
    escape,
    get_stdout,
    print_hanging,
    print_markup,
    print_next_command,
    print_note,
    print_path,
    print_table,
)
from paretocosmos.cli.results import (
    compute_by_objective,
    find_ends,
    print_consequences,
    suggest_choice,
)
from paretocosmos.io.formatting import (
    format_bytes,
    format_mean,
    format_number,
    format_rate,
    format_share,
)
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import has_only_corners
from paretocosmos.problems.tables import Answer
from paretocosmos.runs.run import PAGE, Run
from paretocosmos.training.progress import get_unit

# Keys of a record that `train --json` prints unchanged.
RECORD_KEYS = (
    *("epoch_selected", "networks", "seconds_training", "seconds_to_selected"),
    *("seconds_preparing", "seconds_evaluating", "samples_per_second", "peak_memory"),
    *("share_waiting", "data", "seeds_together", "precision", "engine"),
)
# A front whose losses differ by less than this share of their size is a point for all purposes.
POINT_SIZE = 0.01
# With this many rays per batch, deep networks learnt to depend on the ray (results/celeba.json).
RAYS_PER_BATCH = 32


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
    """Print what a front trades, the details for a modeller, advice, and the next command."""
    summary = summarize_run(run)
    rows = {
        **_describe_data(run.record["about"]),
        **_describe_front(run, summary),
        "method": f"{summary['method']} ({summary['preset']} preset)",
        **_describe_training(run),
        "scores": f"{summary['scores']} ({summary['protocol']} protocol)",
        "run": run.folder,
        **({} if run.report is None else {"page": run.report}),
    }
    # what a decision maker asks comes first, the details for a modeller after it
    print_consequences(run)
    # as wide as the longest name, which depends on the rows there are
    indent = max(map(len, rows)) + 2
    console = get_stdout()
    print_markup(console, "\n[bold]For the modeller[/]")
    for name, value in rows.items():
        print_hanging(console, f"  [bold]{name:<{indent}}[/]", escape(value), indent + 2)
    _note_slow_engine(run)
    _print_advice(run)
    print_next_command(*suggest_choice(run))


def print_runs(runs: Sequence[Run]) -> None:
    """Print a row for each of several seeds, their mean, and how they were trained."""
    summaries, record = [summarize_run(run) for run in runs], runs[0].record
    # networks for one objective each are judged by their ideal point
    is_single_task = has_only_corners(record["fixed_rays"])
    table = Table(box=None, padding=(0, 2), header_style="bold")
    names = (
        "seed",
        "order",
        "dominated",
        "span",
        "hypervolume",
        *(["ideal point"] * is_single_task),
        "val",
    )
    for name in (*names, "epoch"):
        table.add_column(name, justify="right")
    # folded and not cut, so that the folder can be copied
    table.add_column("run", overflow="fold")
    for run, summary in zip(runs, summaries, strict=True):
        table.add_row(
            str(summary["seed"]),
            # the worst objective: a front is in order only if all of them are
            f"{min(summary['by_objective']['monotonicity'].values()):.2f}",
            f"{summary['dominated_share']:.0%}",
            _format_length(summary["span"]),
            format_number(summary["hypervolume"]),
            *([format_number(summary["hypervolume_ideal"])] if is_single_task else []),
            format_number(summary["hypervolume_val"]),
            _describe_epochs(run.record).partition(" ")[2],
            escape(summary["run"]),
        )
    console = get_stdout()
    print_table(console, table)
    together = summaries[0]["seeds_together"]
    # seeds that train together each report the time of all of them, but validate one by one
    training = sum(s["seconds_training"] / s["seeds_together"] for s in summaries)
    validating = sum(s["seconds_evaluating"] for s in summaries)
    print_markup(
        console,
        f"[bold]mean hypervolume {format_mean([run.hypervolume for run in runs])}[/] on test; "
        f"{training:.1f} s of training and {validating:.1f} s of validation in total, {together} "
        f"{'seeds' if together > 1 else 'seed'} at a time, {_describe_size(record)} each, "
        f"engine {escape(_split_engine(record)[0])} on {_describe_device(record)}",
    )
    print_path("page", runs[0].folder.parent / PAGE)
    # all seeds were trained by the same engine
    _note_slow_engine(runs[0])
    print_next_command("explore", runs[0].folder.parent)


def _describe_data(about: Mapping[str, Any]) -> dict[str, str]:
    """Return rows on what is predicted, which groups are compared, and which images are used."""
    rows = {}
    if {"positive", "target"} <= about.keys():
        rows["predicts"] = f"`{about['positive']}` of `{about['target']}`"
    elif {"answer", "target"} <= about.keys():
        answer = Answer.from_about(about)
        kind = "a number" if answer.task == "number" else ", ".join(answer.classes)
        rows["predicts"] = f"`{about['target']}`: {kind}"
    if {"sensitive", "groups"} <= about.keys():
        # earlier versions wrote a single group as text
        groups = about["groups"] if isinstance(about["groups"], list | tuple) else [about["groups"]]
        rows["compares"] = f"`{about['sensitive']}`: {', '.join(map(str, groups))}"
    if "images" in about:
        rows["images"] = str(about["images"])
    return rows


def _describe_front(run: Run, summary: Mapping[str, Any]) -> dict[str, str]:
    """Return rows on the shape of a front, if it is no single point, and its hypervolume."""
    front, rows = run.front, dict[str, str]()
    if len(front) > 1:
        points = "rays" if run.record["fixed_rays"] is None else "networks"
        rows["dominated"] = f"{summary.get('dominated_share') or 0:.0%} of {len(front)} {points}"
        if summary["sensitivity"] is not None:
            rows["sensitivity"] = f"{summary['sensitivity']:.4f} (0: the ray has no effect)"
        ranges = summary["by_objective"]["range"].items()
        rows["range"] = ", ".join(f"{name} {_format_length(value)}" for name, value in ranges)
        rows["span"] = _format_length(summary.get("span"))
    reference = ", ".join(f"{value:g}" for value in front.reference)
    volumes = format_number(summary["hypervolume"]), format_number(summary["hypervolume_val"])
    rows["hypervolume"] = (
        f"{volumes[0]} on test, {volumes[1]} on val, with reference point ({reference})"
    )
    if has_only_corners(run.record["fixed_rays"]):
        test, val = (
            format_number(run.record["metrics"][split]["hypervolume_ideal"])
            for split in ("test", "val")
        )
        rows["ideal point"] = f"{test} on test, {val} on val: the best value of every objective"
    rows["objectives"] = ", ".join(front.names)
    first, last = (
        "(" + ", ".join(f"{value:.4f}" for value in front.values[end]) + ")"
        # more than two objectives have no ends: the first and the last ray stand for them
        for end in find_ends(front) or (0, -1)
    )
    if len(front) == 1:
        return rows | {"point": first}
    return rows | {"ends of the front": f"{first} to {last}"}


def _format_length(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _describe_training(run: Run) -> dict[str, str]:
    """Return rows on how long a training took, what it selected, and what it cost."""
    record, networks = run.record, run.record["networks"]
    training = f"{record['seconds_training']:.1f} s, {_describe_epochs(record)} selected"
    if len(networks) == 1:
        rows = {"training": f"{training}, {_describe_size(record)}"}
    else:
        # the sizes of several networks need a row of their own
        rows = {"training": training, "model": _describe_size(record)}
    # steps whose linear programme (EPO) had no solution
    shares = [n["infeasible_share"] for n in networks if "infeasible_share" in n]
    if shares:
        steps = f"{fmean(shares):.1%} of steps, which used the ray as the weights of the losses"
        rows["infeasible"] = steps if fmean(shares) > 0 else "no step"
    rows["engine"] = (
        f"{_split_engine(record)[0]} on {_describe_device(record)}, "
        f"{record['seconds_preparing']:.1f} s to prepare, "
        f"{record['seconds_evaluating']:.1f} s to validate"
    )
    if record["samples_per_second"] is not None:  # None: the training was too short to measure
        parts = [format_rate(record["samples_per_second"], get_unit(record["input_shape"]))]
        if record["peak_memory"] is not None:
            parts.append(f"{format_bytes(record['peak_memory'])} of memory")
        # on a CPU "the device" would only puzzle a reader
        in_memory = record["data"] == "on the device" and record["device"] == "cpu"
        parts.append("data in memory" if in_memory else f"data {record['data']}")
        if record["data"] == "streamed":
            parts.append(f"{format_share(record['share_waiting'])} of the time waiting for it")
        rows["cost"] = ", ".join(parts)
    return rows


def _describe_epochs(record: Mapping[str, Any]) -> str:
    """Return the selected epoch, or the first and last of several networks."""
    epochs = [network["epoch_selected"] for network in record["networks"]]
    low, high = min(epochs), max(epochs)
    return f"epoch {low}" if low == high else f"epochs {low} to {high}"


def _describe_size(record: Mapping[str, Any]) -> str:
    count, total = len(record["networks"]), record["parameters"]
    size = f"{total // count:,} parameters"
    return f"{count} networks x {size}" if count > 1 else size


def _describe_device(record: Mapping[str, Any]) -> str:
    """Return the device, and the processes and precision unless they are the default."""
    parts = [record["device"]]
    if record["processes"] > 1:
        parts.append(f"{record['processes']} processes")
    # tf32 exists on GPUs only, so on a CPU the default says nothing
    if (record["device"], record["precision"]) != ("cpu", "tf32"):
        parts.append(record["precision"])
    return ", ".join(parts)


def _split_engine(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the engine, and the reason why no faster one was used; empty if there is none."""
    name, _, reason = str(record["engine"]).partition(": ")
    return name, reason


def _note_slow_engine(run: Run) -> None:
    name, reason = _split_engine(run.record)
    if reason:
        print_note(f"training used the engine {name}: {reason}")


def _print_advice(run: Run) -> None:
    """Print notes on what to try if a front is poor, at most one of them on its shape."""
    record, networks = run.record, run.record["networks"]
    lost = sum(network.get("reached_cone") == 0 for network in networks)
    # Pareto MTL first searches for a point inside of each ray's cone
    if lost:
        print_note(
            f"{lost} of {len(networks)} networks had not reached their cone when the search ended, "
            "so their points may lie close together: try a larger --set search_epochs"
        )
    # no setting spreads separate networks, and findings were printed after training
    if record["fixed_rays"] is not None or record.get("findings"):
        return
    cosmos = record["method"]["name"] == "cosmos"
    if _is_point(run.front):
        remedies = [*(["a smaller --penalty"] * cosmos), "more epochs (--epochs)"]
        # the number of rays must divide the batch
        size = record["training"]["batch_size"]
        rays = max(n for n in range(1, RAYS_PER_BATCH + 1) if size % n == 0)
        if rays > record["training"]["groups"]:
            remedies.insert(0, f"more rays per batch (--set groups={rays})")
        print_note(
            "all rays give nearly the same losses, so the front is a point: the network may not "
            "depend on the ray yet, or the objectives do not conflict on this data; try "
            f"{', or '.join(remedies)}"
        )
    elif (record["metrics"]["test"].get("dominated_share") or 0) > 0.5:
        print_note(
            "most rays are dominated, so there is little to choose from: the objectives may hardly "
            f"conflict on this data; try a different {'--penalty' if cosmos else '--alpha'}, or "
            "--set groups=4"
        )


def _is_point(front: Front) -> bool:
    """Return True if the losses of a front hardly differ, compared with their size."""
    # a NaN would make every comparison false
    values = front.values[~np.isnan(front.values).any(axis=1)]
    if len(values) < 2:
        return False
    width = np.linalg.norm(np.ptp(values, axis=0))
    return bool(width < POINT_SIZE * np.linalg.norm(np.abs(values).max(axis=0)))
