"""The model card: what a file is, what it was made of, and what it is not fit for."""

from collections.abc import Iterator

import numpy as np

from paretocosmos._version import __version__
from paretocosmos.evaluation.threshold import MIDDLE
from paretocosmos.export._deployed import Shared
from paretocosmos.export._fairness import fairness
from paretocosmos.export._markdown import code, plain, table
from paretocosmos.export._usage import usage
from paretocosmos.export.metadata import TAKES, Takes, classes_of, decides_by_one
from paretocosmos.objectives import measure_of
from paretocosmos.pareto.front import Front
from paretocosmos.pareto.selection import find_constant
from paretocosmos.problems.tables import DECISION, Answer
from paretocosmos.runs.like import predicts_at
from paretocosmos.runs.run import Run

SHOWN = 7  # rays of the front


def card(
    run: Run, shared: Shared, name: str, takes: Takes, difference: float, threshold: float
) -> str:
    """Markdown, from what the run folder knows.

    Args:
        run: what was exported.
        shared: likewise.
        name: the file's.
        takes: how many preferences it takes.
        difference: the largest found between the file and PyTorch.
        threshold: the probability above which decisions are to be positive.
    """
    sections = {
        f"Model card: {plain(name)}": _opening(run),
        "How to call it": _calling(run, shared, name, takes, threshold),
        "Columns": _columns(run),
        "Data": _data(run),
        "Objectives": _objectives(run),
        "The front": _front(run.front),
        "Fairness": fairness(run),
        "Training": _training(run),
        "Limits": _limits(run, name, difference),
    }
    lines: list[str] = []
    for depth, (title, section) in enumerate(sections.items()):
        found = list(section)
        if found:
            lines += [f"{'##' if depth else '#'} {title}", "", *found, ""]
    return "\n".join(lines).rstrip() + "\n"


def _opening(run: Run) -> Iterator[str]:
    names = ", ".join(plain(name) for name in run.front.names)
    yield f"One network for every trade-off between {names}: it takes the preference as an input."
    about = run.record["about"]
    if {"target", "positive"} <= about.keys():
        yield (
            f"It gives the probability that {plain(about['target'])} is {plain(about['positive'])}."
        )
    elif {"target", "answer"} <= about.keys():
        classes = ", ".join(plain(one) for one in Answer.from_about(about).classes)
        what = f"the probabilities of its classes, {classes}" if classes else "it as a number"
        yield f"It predicts {plain(about['target'])}: {what}."


def _calling(run: Run, shared: Shared, name: str, takes: Takes, threshold: float) -> Iterator[str]:
    size = " x ".join(map(str, shared.row))
    what = "one column each, see below" if run.table is not None else "what the network takes"
    yield f"- `x`: float32, N rows of {size}: {what}."
    yield (
        f"- `preference`: float32, {TAKES[takes].format(j=shared.objectives)}; numbers of at least "
        "0 that sum to 1, how much each objective counts, in the order of the objectives below."
    )
    chosen = predicts_at(run).ray
    if chosen is not None:
        yield f"  The estimator predicts at {', '.join(f'{part:.4g}' for part in chosen)}."
    if run.table is not None:
        answer = Answer.from_about(run.record["about"])
        shape = f"[N, {answer.outputs}]" if answer.outputs > 1 else "[N]"
        yield f"- gives `{answer.called}`, float32 {shape}; the preprocessing is inside."
        if classes_of(run):
            named = ", ".join(f"{at} is {plain(one)}" for at, one in enumerate(classes_of(run)))
            yield f"- gives `{DECISION}`, int64 [N]: {named}."
        if decides_by_one(run):
            yield f"- A decision is positive above the probability {threshold:g}, for everybody."
            if threshold != MIDDLE:
                yield f"  The numbers below were measured at {MIDDLE}: evaluate at {threshold:g}."
    else:
        names = ", ".join(plain(output) for output in shared.outputs)
        yield f"- gives the network's outputs, float32 with N rows: {names}. They are logits, not"
        yield "  probabilities, and `x` is not prepared inside: do it as for the training, which in"
        yield "  paretocosmos is `run.problem().prepare`."
    yield from ("", *code(usage(run, shared, name, takes)))


def _columns(run: Run) -> Iterator[str]:
    if run.table is None:
        return
    yield (
        "`x` has these columns in this order. A number is given as it is, NaN where missing. A "
        "category is given as its place in the list, from 0; NaN where missing, -1 where it is "
        "none of them. An infinite value is a missing one."
    )
    yield ""
    rows: list[tuple[object, ...]] = []
    for at, name in enumerate(run.table.columns):
        if name in run.table.numeric:
            rows.append((at, name, f"number; where missing {run.table.numeric[name]:g}"))
        else:
            rows.append((at, name, ", ".join(run.table.categorical[name])))
    yield from table(("", "column", "values"), rows)


def _data(run: Run) -> Iterator[str]:
    record = run.record
    clean = "what is fitted is fitted on the train split only"
    how = clean if record["protocol"] == "clean" else "as published, flaws included"
    yield f"- problem: {plain(record['name'])}"
    yield f"- protocol: {plain(record['protocol'])}, {how}"
    for key, value in record["about"].items():
        if isinstance(value, dict):  # for programs: what it says is said in other places, too
            continue
        shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        yield f"- {plain(key)}: {plain(shown)}"
    yield from (f"- {plain(caveat)}" for caveat in record["caveats"])


def _objectives(run: Run) -> Iterator[str]:
    yield "Smaller is better for each."
    yield ""
    for name in run.front.names:
        measure = measure_of(name)
        meaning = measure.meaning or "As the problem defines it."  # one's own
        said = meaning if measure.label == name.replace("_", " ") else f"{measure.label}. {meaning}"
        yield f"- {plain(name)}: {plain(said)}"


def _front(front: Front) -> Iterator[str]:
    some = np.unique(np.linspace(0, len(front) - 1, SHOWN).round().astype(int))
    metrics = [name for name in front.metrics if name != "misclassification"]  # 1 - accuracy
    keep, same = front.non_dominated, find_constant(front)
    yield f"On the {plain(front.split)} split, {len(some)} of {len(front)} preferences."
    yield ""
    rows = []
    for at in some:
        marks = ["dominated"] * (not keep[at]) + ["constant"] * bool(same[at])
        numbers = [*front.values[at], *(front.metrics[name][at] for name in metrics)]
        ray = ", ".join(f"{weight:.2f}" for weight in front.rays[at])
        rows.append((ray, *(f"{number:.4f}" for number in numbers), ", ".join(marks)))
    yield from table(("preference", *front.names, *metrics, ""), rows)


def _training(run: Run) -> Iterator[str]:
    record = run.record
    for part in ("method", "conditioning", "backbone"):
        spec = record[part]
        if spec is not None:
            given = {k: v for k, v in spec["settings"].items() if v is not None and not _nested(v)}
            settings = ", ".join(f"{key} {value}" for key, value in given.items())
            yield f"- {part}: {plain(spec['name'])}" + (f" ({plain(settings)})" if settings else "")
    epochs, chosen = record["training"]["epochs"], record.get("epoch_selected")
    yield f"- {epochs} epochs, number {chosen} kept, by validation; seed {record['seed']}"
    yield f"- {record['parameters']:,} parameters; precision {plain(record['precision'])} on "
    yield f"  {plain(record['device'])}"
    yield f"- trained by paretocosmos {plain(record['version'])}, exported by {__version__}"
    if run.signed_by is not None:
        yield f"- signed with the Ed25519 key {run.signed_by}, verified before the export"


def _nested(value: object) -> bool:
    """Whether it is numbers by the dozen, such as the knots of every column."""
    return isinstance(value, list | tuple) and any(isinstance(one, list | tuple) for one in value)


def _limits(run: Run, name: str, difference: float) -> Iterator[str]:
    yield (
        f"- Compared with PyTorch on random rows and preferences after it was written: it differs "
        f"by at most {difference:.1e}. On other runtimes and devices it was not tried."
    )
    yield "- The front above was measured on this data; on other data it will be another."
    yield (
        "- Preferences between those evaluated give models that were not evaluated: evaluate the "
        "one you choose."
    )
    yield "- Choosing a preference by the table above makes its numbers too good: choose by data"
    yield "  that was not in the test split."
    if name.endswith(".pt2"):
        yield (
            "- It holds no pickles; `torch.export.load` unpickles what it finds in a file that "
            "does, so load none that you do not trust."
        )
    if run.table is not None:
        yield "- A category that was not in the training data counts as none of the known ones."
