"""Model cards: what a network is, what it was trained on, and what it is not fit for.

All cards come from one template, ``card.md.jinja``. Texts from data or files are escaped.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from pprint import pformat
from typing import Any

import jinja2
import numpy as np

from paretocosmos._version import __version__
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.export.network import KEY, TAKES, ExportPlan, Takes, has_threshold, list_classes
from paretocosmos.nn.conditioning import Conditioning, list_networks
from paretocosmos.objectives import GroupObjective, fairness_objectives, measure_of
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.selection import find_constant
from paretocosmos.problems.tables import DECISION, Answer
from paretocosmos.runs.run import Run, predicts_at

SHOWN = 7  # rays of the front
PREFERENCE_ORDER: dict[Takes, str] = {
    "any": "one for all rows, or one for each row",
    "one": "one for all rows",
}


def escape_markdown(text: object) -> str:
    r"""Return a text as one line without anything that Markdown or HTML would take for markup.

    >>> print(escape_markdown("a|b <script> native_country"))
    a\|b &lt;script&gt; native_country
    """
    line = html.escape(" ".join(str(text).split()), quote=False)
    # an underscore between letters is no emphasis
    signs = r"[\\`*\[\]|~#$]|(?<![^\W_])_|_(?![^\W_])"
    line = re.sub(signs, lambda match: f"\\{match[0]}", line)
    # a bare address would become a link
    return re.sub(r"(?i)(https?|ftp|www)([:.])", r"\1\\\2", line)


def format_table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Format a Markdown table."""
    lines = [[escape_markdown(text) for text in row] for row in (head, *rows)]
    lines.insert(1, ["---"] * len(head))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def format_code_block(text: str, language: str = "python") -> str:
    """Format a block of code in a fence that is longer than any inside."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *text.splitlines(), fence])


def _render_template(template: str, **context: Any) -> str:
    """Render one of the templates beside this module."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown and Python; the filter `plain` escapes what comes from data
    )
    environment.filters |= {"plain": escape_markdown, "fence": format_code_block}
    environment.globals["markdown_table"] = format_table
    return environment.get_template(template).render(**context).rstrip() + "\n"


def render_run_card(
    run: Run, plan: ExportPlan, name: str, takes: Takes, difference: float, threshold: float
) -> str:
    """Render the card of an exported run as Markdown.

    Args:
        run: what was exported.
        plan: likewise.
        name: the file's.
        takes: how many preferences it takes.
        difference: the largest measured between the file and PyTorch.
        threshold: the probability above which decisions are positive.
    """
    record, default_ray = run.record, predicts_at(run).ray
    return _render_template(
        "card.md.jinja",
        front_matter=False,
        title=f"Model card: {name}",
        opening=_describe_run(run, plan),
        run=run,
        name=name,
        row=plan.row,
        takes=TAKES[takes].format(j=plan.objectives),
        takes_preference=plan.frozen_at is None,
        default_ray=[f"{weight:.4g}" for weight in default_ray or ()],
        table=run.table,
        answer=Answer.from_about(record["about"]),
        classes=list_classes(run) if run.table is not None else [],
        decision=DECISION,
        has_threshold=has_threshold(run),
        threshold=threshold,
        measured_at=_get_measured_threshold(run),
        outputs=plan.outputs,
        usage=render_usage(run, plan, name, takes),
        columns=_list_columns(run),
        record=record,
        # mappings are for programs: the card states what they hold elsewhere
        about=[
            (key, ", ".join(map(str, value)) if isinstance(value, list | tuple) else value)
            for key, value in record["about"].items()
            if not isinstance(value, dict)
        ],
        objectives=[(name, _explain_objective(name)) for name in run.front.names],
        front=run.front,
        fairness=describe_fairness(run),
        parts=[
            (role, record[role]["name"], _format_settings(record[role]["settings"]))
            for role in ("method", "conditioning", "backbone")
            if record[role] is not None
        ],
        version=__version__,
        difference=difference,
        **_tabulate_front(run.front),
    )


def render_network_card(model: Conditioning, about: Mapping[str, Any], front: Front | None) -> str:
    """Render the card of a conditioned network in a folder as Markdown.

    Args:
        model: the network.
        about: what ``conditioning.json`` holds.
        front: the values it reaches, if known.
    """
    # the parameters that are stored and those that make the network depend on the ray
    count = sum(p.numel() for p in model.parameters())
    parameters = dict(model.named_parameters())
    reading = sum(parameters[name].numel() for name in model.ray_parameters)
    opening = [  # lines of Markdown
        f"One network that takes a preference between {model.objectives} objectives as an input, "
        f"conditioned by `{about['conditioning']}`. It has {count:,} parameters; {reading:,} of "
        "them read the preference."
    ]
    if about["settings"]:
        opening += ["", f"Settings: `{json.dumps(about['settings'])}`."]
    frozen = about["left_out"] is not None
    weights = ", with its own weights" if frozen else ""
    ray = [1.0] + [0.0] * (model.objectives - 1)
    usage = (
        "from paretocosmos.integrations.pretrained import from_pretrained\n\n"
        f"network = ...  # a {about['network']}{weights}\n"
        "model = from_pretrained(FOLDER, network)\n"
        f"at_one = model.at({ray})  # all weight on the first objective\n"
    )
    return _render_template(
        "card.md.jinja",
        front_matter=True,
        title=f"{about['network']}, conditioned on a preference",
        opening=opening,
        run=None,
        usage=usage,
        frozen=frozen,
        columns=[],
        front=front,
        fairness=[],
        # without a front the template never asks for its rows
        **({} if front is None else _tabulate_front(front)),
    )


def render_usage(run: Run, plan: ExportPlan, name: str, takes: Takes) -> str:
    """Render Python that loads an exported file beside it and calls it on one row."""
    row = ""
    if run.table is not None:
        # a row that any reader can change: the fill values of numbers, the first categories
        categories = {column: labels[0] for column, labels in run.table.categorical.items()}
        example = pformat({**run.table.numeric, **categories}, width=96, indent=1, sort_dicts=False)
        row = "\n".join(f"    {line}" for line in f"{example},".splitlines())
    ray = predicts_at(run).ray or [1 / plan.objectives] * plan.objectives
    return _render_template(
        "usage.py.jinja",
        name=name,
        key=KEY,
        example_row=row,
        shape=(1, *plan.row),
        ray=[[round(weight, 4) for weight in ray]],
        order=PREFERENCE_ORDER.get(takes),
    )


def _describe_run(run: Run, plan: ExportPlan) -> list[str]:
    """Describe in a few sentences what the network of a run predicts."""
    names = ", ".join(escape_markdown(name) for name in run.front.names)
    lines = [
        f"One network for every trade-off between {names}: it takes the preference as an input."
    ]
    if plan.frozen_at is not None:
        ray = ", ".join(f"{weight:.4g}" for weight in plan.frozen_at[0].tolist())
        lines = [f"A network frozen at one preference between {names}: ({ray})."]
    about = run.record["about"]
    if {"target", "positive"} <= about.keys():
        target, positive = escape_markdown(about["target"]), escape_markdown(about["positive"])
        lines.append(f"It gives the probability that {target} is {positive}.")
    elif {"target", "answer"} <= about.keys():
        classes = ", ".join(escape_markdown(name) for name in Answer.from_about(about).classes)
        output = f"the probabilities of its classes, {classes}" if classes else "it as a number"
        lines.append(f"It predicts {escape_markdown(about['target'])}: {output}.")
    return lines


def _get_measured_threshold(run: Run) -> float:
    """Return the threshold of the decisions in the fronts of a run."""
    default = predicts_at(run)
    return default.threshold if default.frozen else MIDDLE


def _list_columns(run: Run) -> list[tuple[object, ...]]:
    """List number, name and values of each column of a table; empty without a table."""
    if run.table is None:
        return []
    numeric, categorical = run.table.numeric, run.table.categorical
    return [
        (index, name, f"number; where missing {numeric[name]:g}")
        if name in numeric
        else (index, name, ", ".join(categorical[name]))
        for index, name in enumerate(run.table.columns)
    ]


def _explain_objective(name: str) -> str:
    """Explain an objective in one or two sentences."""
    measure = measure_of(name)
    meaning = measure.meaning or "As the problem defines it."  # a user's own objective
    return meaning if measure.label == name.replace("_", " ") else f"{measure.label}. {meaning}"


def _format_settings(settings: Mapping[str, Any]) -> str:
    """Format settings; numbers by the dozen, such as the knots of every column, are left out."""
    return ", ".join(
        f"{key} {value}"
        for key, value in settings.items()
        if value is not None
        and not (  # nested lists
            isinstance(value, list | tuple) and any(isinstance(v, list | tuple) for v in value)
        )
    )


def _tabulate_front(front: Front) -> dict[str, Any]:
    """Return the head and some rows of a front's table, evenly spaced along it."""
    # fewer rows than SHOWN if the front has fewer rays
    indices = np.unique(np.linspace(0, len(front) - 1, SHOWN).round().astype(int))
    metrics = [name for name in front.metrics if name != "misclassification"]  # 1 - accuracy
    non_dominated, same_class = front.non_dominated, find_constant(front)
    rows = []
    for index in indices:
        marks = ["dominated"] * (not non_dominated[index]) + ["constant"] * bool(same_class[index])
        numbers = [*front.values[index], *(front.metrics[name][index] for name in metrics)]
        ray = ", ".join(f"{weight:.2f}" for weight in front.rays[index])
        rows.append((ray, *(f"{number:.4f}" for number in numbers), ", ".join(marks)))
    return {"front_head": ("preference", *front.names, *metrics, ""), "front_rows": rows}


def describe_fairness(run: Run) -> list[str]:
    """Describe which groups were compared, how, and what was not measured; empty without groups."""
    about, front, lines = run.record["about"], run.front, list[str]()
    if "sensitive" in about:
        names = about.get("groups", [])
        groups = ", ".join(
            map(escape_markdown, names if isinstance(names, list | tuple) else [names])
        )
        inputs = _list_group_inputs(run)
        reading = (
            f"Its input {' and '.join(inputs)} tells the network the group: ask whether this is "
            "allowed where it is used."
            if inputs
            else "That column is not an input; other columns may still tell much of it."
        )
        compared = f"The groups of {escape_markdown(about['sensitive'])} are compared: {groups}."
        lines += [f"{compared} {reading}", ""]
        # what a conditioning itself does with groups, such as the fairness adjustment
        if disclosure := getattr(list_networks(run.model)[0], "disclosure", ""):
            columns = "its inputs" if inputs else "the other columns"
            lines.append(f"- {disclosure.format(columns=columns)}")
        builtin = fairness_objectives("classes") | fairness_objectives("numbers")
        own = () if run.trained_on is None else run.trained_on.objectives
        meanings = {name: kind.meaning for name, kind in builtin.items()}
        meanings |= {o.name: o.meaning for o in own if isinstance(o, GroupObjective)}
        names = [name for name in (*front.names, *front.metrics) if meanings.get(name)]
        lines += [f"- {escape_markdown(name)}: {meanings[name]}." for name in names]
        lines += [
            f"- All of this was measured on the {escape_markdown(front.split)} split of this "
            f"data, with a decision at probability {_get_measured_threshold(run):g}. Another "
            "threshold, other people or another time have other gaps.",
            "- A gap that is small for these groups may be large for others, or within them.",
        ]
    # also where no groups were compared: such a preference misleads whoever picks it
    constant = find_constant(front)
    if constant.any():
        rays = [", ".join(f"{weight:.2f}" for weight in ray) for ray in front.rays[constant]]
        lines.append(
            f"- CONSTANT: at {len(rays)} of {len(front)} preferences all rows of the "
            f"{escape_markdown(front.split)} split get the same class, which is fair and of no "
            f"use: {'; '.join(f'({ray})' for ray in rays)}."
        )
    return lines


def _list_group_inputs(run: Run) -> list[str]:
    """Return the columns that make the groups and are inputs too, as `X` of an estimator may."""
    about = run.record["about"]
    attributes = about.get("grouping", {}).get("attributes", [{"name": about["sensitive"]}])
    # a problem with groups but no table has inputs without names, none of which is a group
    columns = () if run.table is None else run.table.columns
    return [
        escape_markdown(attribute["name"])
        for attribute in attributes
        if attribute["name"] in columns
    ]
