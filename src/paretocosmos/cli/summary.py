"""Print what `train` ends with: one run, or a row for each of several seeds."""

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
    print_table,
)
from paretocosmos.cli.results import (
    compute_by_objective,
    find_ends,
    print_consequences,
    print_page,
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
from paretocosmos.pareto.rays import each_alone
from paretocosmos.problems.tables import Answer
from paretocosmos.runs.run import Run
from paretocosmos.training.progress import unit_of

# Rays whose losses differ by less than this share of their size give the same for all purposes.
SAME = 0.01
# Rays a batch with which a deep network came to depend on them (results/celeba.json).
MANY = 32


def print_advice(run: Run, networks: list[dict[str, Any]]) -> None:
    """Notes on stderr, at most one on the front of one network."""
    lost = sum(network.get("reached_cone") == 0 for network in networks)
    if lost:
        print_note(
            f"{lost} of {len(networks)} networks were not in their cone when the search ended, so "
            "their points may lie close together: try a larger --set search_epochs"
        )
    record = run.record
    if record["fixed_rays"] is not None:
        return  # separate networks have no setting that would spread them
    if record.get("findings"):
        return  # the training's end has told what it is
    cosmos = record["method"]["name"] == "cosmos"
    if is_point(run.front):
        ways = _suggest_rays(record["training"]) + ["a smaller --penalty"] * cosmos
        print_note(
            "all rays give nearly the same losses, so the front is a point: the network may not "
            "depend on the ray yet, or the objectives do not conflict on this data; try "
            f"{', or '.join([*ways, 'more epochs (--epochs)'])}"
        )
    elif (record["metrics"]["test"].get("dominated_share") or 0) > 0.5:
        print_note(
            "most rays are dominated, so there is little to choose from: the objectives may hardly "
            f"conflict on this data; try another {'--penalty' if cosmos else '--alpha'}, or --set "
            "groups=4"
        )


def is_point(front: Front) -> bool:
    """Whether all points of a front lie in a box that is small beside their losses."""
    values = front.values[~np.isnan(front.values).any(axis=1)]
    if len(values) < 2:
        return False
    width = np.linalg.norm(np.ptp(values, axis=0))
    return bool(width < SAME * np.linalg.norm(np.abs(values).max(axis=0)))


def _suggest_rays(training: Mapping[str, Any]) -> list[str]:
    """More rays a batch, as many as divide it, unless there are as many already."""
    most = max(n for n in range(1, MANY + 1) if training["batch_size"] % n == 0)
    return [f"more rays a batch (--set groups={most})"] if most > training["groups"] else []


# What `train --json` prints of a record as it is.
PRINTED = (
    *("epoch_selected", "networks", "seconds_training", "seconds_to_selected"),
    *("seconds_preparing", "seconds_evaluating", "samples_per_second", "peak_memory"),
    *("share_waiting", "data", "seeds_together", "precision", "engine"),
)


def summarize_run(run: Run) -> dict[str, Any]:
    """What `train --json` prints."""
    record, test = run.record, run.record["metrics"]["test"]
    return {
        "run": str(run.folder),
        "problem": run.front.provenance["problem"],
        "method": record["label"],
        "preset": record["preset"],
        **{key: record[key] for key in ("protocol", "seed", "parameters")},
        **{key: record["about"][key] for key in ("target", "positive") if key in record["about"]},
        **test,
        "by_objective": compute_by_objective(run.front),
        "sensitivity": record.get("sensitivity"),
        "findings": record.get("findings", []),
        "hypervolume_val": record["metrics"]["val"]["hypervolume"],
        **{key: record[key] for key in PRINTED},
        "scores": run.front.provenance["scores"],
    }


def print_run(run: Run) -> None:
    """What `train` ends with."""
    numbers, front, record = summarize_run(run), run.front, run.record
    reference = ", ".join(f"{value:g}" for value in front.reference)
    rows = {
        **_describe_meaning(run),
        **_describe_shape(run, numbers),
        "hypervolume": f"{format_number(numbers['hypervolume'])} test, "
        f"{format_number(numbers['hypervolume_val'])} val, "
        f"at ({reference})",
        **_describe_ideal(run),
        "objectives": ", ".join(front.names),
        **_describe_ends(front),
        "method": f"{numbers['method']} ({numbers['preset']} preset)",
        **_describe_training(record),
        **_describe_infeasible(record),
        "engine": f"{_split_engine(run)[0]} on {_describe_device(run)}, "
        f"{numbers['seconds_preparing']:.1f} s to prepare, "
        f"{numbers['seconds_evaluating']:.1f} s to validate",
        **_describe_cost(record),
        "scores": f"{numbers['scores']} ({numbers['protocol']} protocol)",
    }
    print_consequences(run)
    places = {"run": run.folder, **({} if run.report is None else {"report": run.report})}
    indent = max(map(len, (*rows, *places))) + 2
    console = get_stdout()
    print_markup(console, "\n[bold]For the modeller[/]")
    for name, value in (rows | places).items():
        print_hanging(console, f"  [bold]{name:<{indent}}[/]", escape(value), indent + 2)
    _note_slow_engine(run)
    print_advice(run, record["networks"])
    print_next_command(*suggest_choice(run))


def _split_engine(run: Run) -> tuple[str, str]:
    """How steps were run, and why not faster, if there is something to say."""
    name, _, why = str(run.record["engine"]).partition(": ")
    return name, why


def _note_slow_engine(run: Run) -> None:
    name, why = _split_engine(run)
    if why:
        print_note(f"steps were run {name}: {why}")


def _describe_ideal(run: Run) -> dict[str, str]:
    """Where every objective has a network of its own, what the best of all would have."""
    if not each_alone(run.record["fixed_rays"]):
        return {}
    test, val = (run.record["metrics"][split]["hypervolume_ideal"] for split in ("test", "val"))
    numbers = f"{format_number(test)} test, {format_number(val)} val"
    return {"ideal point": f"{numbers}: the best of every objective"}


def _describe_shape(run: Run, numbers: Mapping[str, Any]) -> dict[str, str]:
    """How much of it counts, and how wide it is; one point is no front."""
    count = len(run.front)
    if count == 1:
        return {}
    what = "rays" if run.record["fixed_rays"] is None else "networks"
    of_each = numbers["by_objective"]
    return {
        "dominated": f"{numbers.get('dominated_share') or 0:.0%} of {count} {what}",
        **_describe_sensitivity(numbers["sensitivity"]),
        "range": _format_each(of_each["range"], ".4f"),
        "span": "-" if numbers.get("span") is None else f"{numbers['span']:.4f}",
    }


def _describe_sensitivity(found: float | None) -> dict[str, str]:
    """How much the ray changes outputs, where it was measured."""
    return {} if found is None else {"sensitivity": f"{found:.4f} (0: the ray has no effect)"}


def _format_each(values: Mapping[str, float | None], form: str) -> str:
    return ", ".join(
        f"{name} {'-' if value is None else format(value, form)}" for name, value in values.items()
    )


def _describe_ends(front: Front) -> dict[str, str]:
    if len(front) == 1:
        return {"point": _format_point(front.values[0])}
    first, last = (_format_point(front.values[end]) for end in find_ends(front) or (0, -1))
    return {"ends of the front": f"{first} to {last}"}


def _format_point(values: Any) -> str:
    return "(" + ", ".join(f"{value:.4f}" for value in values) + ")"


def _describe_epochs(record: Mapping[str, Any]) -> str:
    """The selected epoch, or those of several networks."""
    found = [network["epoch_selected"] for network in record["networks"]]
    low, high = min(found), max(found)
    return f"epoch {low}" if low == high else f"epochs {low} to {high}"


def _describe_training(record: Mapping[str, Any]) -> dict[str, str]:
    """How long, what was kept, and of what size."""
    took = f"{record['seconds_training']:.1f} s, {_describe_epochs(record)} selected"
    if len(record["networks"]) == 1:
        return {"training": f"{took}, {_describe_size(record)}"}
    return {"training": took, "model": _describe_size(record)}


def _describe_size(record: Mapping[str, Any]) -> str:
    count, total = len(record["networks"]), record["parameters"]
    return (
        f"{count} networks x {total // count:,} parameters"
        if count > 1
        else f"{total:,} parameters"
    )


def _describe_infeasible(record: Mapping[str, Any]) -> dict[str, str]:
    """How often a linear programme (EPO) had no solution."""
    shares = [n["infeasible_share"] for n in record["networks"] if "infeasible_share" in n]
    if not shares:
        return {}
    said = f"{fmean(shares):.1%} of steps, in which the ray itself weighted the losses"
    return {"infeasible": said if fmean(shares) > 0 else "no step"}


def _describe_cost(record: Mapping[str, Any]) -> dict[str, str]:
    """How fast, how large, and where the data was."""
    if record["samples_per_second"] is None:  # too short a training to be measured
        return {}
    parts = [format_rate(record["samples_per_second"], unit_of(record["input_shape"]))]
    if record["peak_memory"] is not None:
        parts.append(f"{format_bytes(record['peak_memory'])} at most")
    at_hand = record["data"] == "on the device" and record["device"] == "cpu"
    parts.append("data in memory" if at_hand else f"data {record['data']}")
    if record["data"] == "streamed":
        parts.append(f"{format_share(record['share_waiting'])} of training waiting for it")
    return {"cost": ", ".join(parts)}


def _describe_device(run: Run) -> str:
    """Where, how many processes if several, and how precisely where that is a choice."""
    device, precision = run.record["device"], run.record["precision"]
    count = run.record["processes"]
    parts = [device, *([f"{count} processes"] if count > 1 else [])]
    return ", ".join(parts if device == "cpu" and precision == "tf32" else [*parts, precision])


def _describe_meaning(run: Run) -> dict[str, str]:
    """Which class a table's network predicts, and whom it compares; what images it looks at."""
    about = run.record["about"]
    said = {}
    if {"positive", "target"} <= about.keys():
        said["predicts"] = f"`{about['positive']}` of `{about['target']}`"
    elif {"answer", "target"} <= about.keys():
        answer = Answer.from_about(about)
        what = "a number" if answer.task == "number" else ", ".join(answer.classes)
        said["predicts"] = f"`{about['target']}`: {what}"
    if {"sensitive", "groups"} <= about.keys():
        groups = about["groups"] if isinstance(about["groups"], list | tuple) else [about["groups"]]
        said["compares"] = f"`{about['sensitive']}`: {', '.join(map(str, groups))}"
    if "images" in about:
        said["images"] = str(about["images"])
    return said


def print_runs(runs: Sequence[Run]) -> None:
    """What `train --seeds` ends with: a row per seed, their mean, and how they were trained."""
    every = [summarize_run(run) for run in runs]
    alone = each_alone(runs[0].record["fixed_rays"])
    table = Table(box=None, padding=(0, 2), header_style="bold")
    names = ("seed", "order", "dominated", "span", "hypervolume", *(["ideal point"] * alone), "val")
    for name in (*names, "epoch"):
        table.add_column(name, justify="right")
    table.add_column("run", overflow="fold")
    for run, numbers in zip(runs, every, strict=True):
        table.add_row(
            str(numbers["seed"]),
            f"{min(numbers['by_objective']['monotonicity'].values()):.2f}",
            f"{numbers['dominated_share']:.0%}",
            "-" if numbers["span"] is None else f"{numbers['span']:.4f}",
            format_number(numbers["hypervolume"]),
            *([format_number(numbers["hypervolume_ideal"])] if alone else []),
            format_number(numbers["hypervolume_val"]),
            _describe_epochs(run.record).partition(" ")[2],
            escape(numbers["run"]),
        )
    console = get_stdout()
    print_table(console, table)
    reached = format_mean([run.hypervolume for run in runs])
    lead = every[0]
    together = lead["seeds_together"]
    seconds = sum(numbers["seconds_training"] / numbers["seeds_together"] for numbers in every)
    validating = sum(numbers["seconds_evaluating"] for numbers in every)  # each seed by itself
    print_markup(
        console,
        f"[bold]mean hypervolume {reached}[/] on test; {seconds:.1f} s of "
        f"training and {validating:.1f} s of validation in all, {together} "
        f"{'seeds' if together > 1 else 'seed'} at a time, "
        f"{_describe_size(runs[0].record)} each, "
        f"engine {escape(_split_engine(runs[0])[0])} on {_describe_device(runs[0])}",
    )
    print_page(runs[0].folder.parent)
    _note_slow_engine(runs[0])
    print_next_command("explore", runs[0].folder.parent)
