"""What `train` prints: one run, or a row for each of several seeds."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rich.table import Table

from paretocosmos.cli.output._console import hanging, note, safe, say, wide
from paretocosmos.cli.output._next import next_choice, next_command, print_page
from paretocosmos.cli.output._notes import advise
from paretocosmos.cli.output._plain import find_ends, measures_by_objective, print_consequences
from paretocosmos.cli.output._table import print_table
from paretocosmos.io.formatting import (
    format_bytes,
    format_mean,
    format_number,
    format_rate,
    format_share,
)
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.rays import each_alone
from paretocosmos.problems.tables.answers import Answer
from paretocosmos.runs.run import Run
from paretocosmos.training.progress import unit_of

# What `train --json` prints of a record as it is.
PRINTED = (
    *("epoch_selected", "networks", "seconds_training", "seconds_to_selected"),
    *("seconds_preparing", "seconds_evaluating", "samples_per_second", "peak_memory"),
    *("share_waiting", "data", "seeds_together", "precision", "engine"),
)


def numbers_of_run(run: Run) -> dict[str, Any]:
    """What `train --json` prints."""
    record, test = run.record, run.record["metrics"]["test"]
    return {
        "run": str(run.folder),
        "problem": run.front.provenance["problem"],
        "method": record["label"],
        "preset": record.get("preset", "paper"),  # the only one of earlier releases
        **{key: record[key] for key in ("protocol", "seed", "parameters")},
        **{key: record["about"][key] for key in ("target", "positive") if key in record["about"]},
        **test,
        "by_objective": measures_by_objective(run.front),
        "sensitivity": record.get("sensitivity"),
        "findings": record.get("findings", []),
        "hypervolume_val": record["metrics"]["val"]["hypervolume"],
        **{key: record[key] for key in PRINTED},
        "scores": run.front.provenance["scores"],
    }


def print_run(run: Run) -> None:
    """What `train` ends with."""
    numbers, front, record = numbers_of_run(run), run.front, run.record
    reference = ", ".join(f"{value:g}" for value in front.reference)
    rows = {
        **_meaning(run),
        **_shape(run, numbers),
        "hypervolume": f"{format_number(numbers['hypervolume'])} test, "
        f"{format_number(numbers['hypervolume_val'])} val, "
        f"at ({reference})",
        **_ideal(run),
        "objectives": ", ".join(front.names),
        **_ends(front),
        "method": f"{numbers['method']} ({numbers['preset']} preset)",
        **_training(record),
        **_infeasible(record),
        "engine": f"{_engine(run)[0]} on {_device(run)}, {numbers['seconds_preparing']:.1f} s to "
        f"prepare, {numbers['seconds_evaluating']:.1f} s to validate",
        **_cost(record),
        "scores": f"{numbers['scores']} ({numbers['protocol']} protocol)",
    }
    print_consequences(run)
    places = {"run": run.folder, **({} if run.report is None else {"report": run.report})}
    indent = max(map(len, (*rows, *places))) + 2
    console = wide()
    say(console, "\n[bold]For the modeller[/]")
    for name, value in (rows | places).items():
        hanging(console, f"  [bold]{name:<{indent}}[/]", safe(value), indent + 2)
    _slower(run)
    advise(run, record["networks"])
    next_command(*next_choice(run))


def _engine(run: Run) -> tuple[str, str]:
    """How steps were run, and why not faster, if there is something to say."""
    name, _, why = str(run.record["engine"]).partition(": ")
    return name, why


def _slower(run: Run) -> None:
    name, why = _engine(run)
    if why:
        note(f"steps were run {name}: {why}")


def _ideal(run: Run) -> dict[str, str]:
    """Where every objective has a network of its own, what the best of all would have."""
    if not each_alone(run.record["fixed_rays"]):
        return {}
    test, val = (run.record["metrics"][split]["hypervolume_ideal"] for split in ("test", "val"))
    numbers = f"{format_number(test)} test, {format_number(val)} val"
    return {"ideal point": f"{numbers}: the best of every objective"}


def _shape(run: Run, numbers: Mapping[str, Any]) -> dict[str, str]:
    """How much of it counts, and how wide it is; one point is no front."""
    count = len(run.front)
    if count == 1:
        return {}
    what = "rays" if run.record["fixed_rays"] is None else "networks"
    of_each = numbers["by_objective"]
    return {
        "dominated": f"{numbers.get('dominated_share') or 0:.0%} of {count} {what}",
        **_sensitivity(numbers["sensitivity"]),
        "range": _each(of_each["range"], ".4f"),
        "span": "-" if numbers.get("span") is None else f"{numbers['span']:.4f}",
    }


def _sensitivity(found: float | None) -> dict[str, str]:
    """How much the ray changes outputs, where it was measured."""
    return {} if found is None else {"sensitivity": f"{found:.4f} (0: the ray has no effect)"}


def _each(values: Mapping[str, float | None], form: str) -> str:
    return ", ".join(
        f"{name} {'-' if value is None else format(value, form)}" for name, value in values.items()
    )


def _ends(front: Front) -> dict[str, str]:
    if len(front) == 1:
        return {"point": _point(front.values[0])}
    first, last = find_ends(front) or (0, -1)
    return {"ends of the front": f"{_point(front.values[first])} to {_point(front.values[last])}"}


def _point(values: Any) -> str:
    return "(" + ", ".join(f"{value:.4f}" for value in values) + ")"


def _epochs(record: Mapping[str, Any]) -> str:
    """The selected epoch, or those of several networks."""
    found = [network["epoch_selected"] for network in record["networks"]]
    low, high = min(found), max(found)
    return f"epoch {low}" if low == high else f"epochs {low} to {high}"


def _training(record: Mapping[str, Any]) -> dict[str, str]:
    """How long, what was kept, and of what size."""
    took = f"{record['seconds_training']:.1f} s, {_epochs(record)} selected"
    if len(record["networks"]) == 1:
        return {"training": f"{took}, {_size(record)}"}
    return {"training": took, "model": _size(record)}


def _size(record: Mapping[str, Any]) -> str:
    count, total = len(record["networks"]), record["parameters"]
    return (
        f"{count} networks x {total // count:,} parameters"
        if count > 1
        else f"{total:,} parameters"
    )


def _infeasible(record: Mapping[str, Any]) -> dict[str, str]:
    """How often a linear programme (EPO) had no solution."""
    shares = [n["infeasible_share"] for n in record["networks"] if "infeasible_share" in n]
    if not shares:
        return {}
    said = f"{fmean(shares):.1%} of steps, in which the ray itself weighted the losses"
    return {"infeasible": said if fmean(shares) > 0 else "no step"}


def _cost(record: Mapping[str, Any]) -> dict[str, str]:
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


def _device(run: Run) -> str:
    """Where, how many processes if several, and how precisely where that is a choice."""
    device, precision = run.record["device"], run.record["precision"]
    count = run.record["processes"]
    parts = [device, *([f"{count} processes"] if count > 1 else [])]
    return ", ".join(parts if device == "cpu" and precision == "tf32" else [*parts, precision])


def _meaning(run: Run) -> dict[str, str]:
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
    every = [numbers_of_run(run) for run in runs]
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
            _epochs(run.record).partition(" ")[2],
            safe(numbers["run"]),
        )
    console = wide()
    print_table(console, table)
    reached = format_mean([run.hypervolume for run in runs])
    lead = every[0]
    together = lead["seeds_together"]
    seconds = sum(numbers["seconds_training"] / numbers["seeds_together"] for numbers in every)
    validating = sum(numbers["seconds_evaluating"] for numbers in every)  # each seed by itself
    say(
        console,
        f"[bold]mean hypervolume {reached}[/] on test; {seconds:.1f} s of "
        f"training and {validating:.1f} s of validation in all, {together} "
        f"{'seeds' if together > 1 else 'seed'} at a time, "
        f"{_size(runs[0].record)} each, engine {safe(_engine(runs[0])[0])} on {_device(runs[0])}",
    )
    print_page(runs[0].folder.parent)
    _slower(runs[0])
    next_command("explore", runs[0].folder.parent)
