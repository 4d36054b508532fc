"""What using a front costs and gains: the constraint beside fairlearn's, as a table and a figure."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from paretocosmos.plotting._style import ANCHORS, DPI, HAIRLINE, INK, MUTED, styled

RESULTS = Path(__file__).resolve().parents[1] / "results"
SHAPES = {"logistic regression": "s", "the same network": "o", "gradient boosting": "^"}
COLOURS = {"paretocosmos": ANCHORS[0], "ThresholdOptimizer": ANCHORS[1]}
OTHER = ANCHORS[2]


def constraint_table() -> Iterator[str]:
    """Accuracy and gap of every method, and what it took."""
    found = load("constraint.json")
    yield (
        f"Adult, protocol `{found['protocol']}`: the most accurate model whose true-positive-rate gap is at most "
        f"{found['bound']:.0%}, {len(found['seeds'])} seeds, judged on the same test rows "
        "(`python -m benchmarks.constraint`, one thread):"
    )
    yield ""
    yield "| method | learner | test accuracy | test gap | gap where it was bounded | seconds |"
    yield "|---|---|---|---|---|---|"
    for row in found["rows"]:
        mean = row["mean"]
        ours = row["method"] == "paretocosmos"
        bounded = f"{mean['tpr_gap_val']:.4f} (val)" if ours else "on its training rows"
        learner = "one network for every bound" if ours else row["learner"]
        name = row["method"] if ours else f"fairlearn's `{row['method']}`"
        yield (
            f"| {name} | {learner} | {mean['accuracy']:.4f} | {mean['tpr_gap']:.4f} | {bounded} | "
            f"{mean['seconds']:.1f} |"
        )


def constraint_note() -> Iterator[str]:
    """What the table says, plainly."""
    found = load("constraint.json")
    rows = {(row["method"], row["learner"]): row["mean"] for row in found["rows"]}
    ours = found["rows"][0]["mean"]
    linear = max(m["accuracy"] for (_, learner), m in rows.items() if "logistic" in learner)
    same = max(m["accuracy"] for (_, learner), m in rows.items() if learner == "the same network")
    trees = max(m["accuracy"] for (_, learner), m in rows.items() if "boosting" in learner)
    yield (
        f"With fairlearn's usual learner we are {100 * (ours['accuracy'] - linear):.1f} points more accurate, with the network we "
        f"train ourselves {100 * (ours['accuracy'] - same):.1f}; gradient boosting is another kind of model, better suited to this table, and "
        f"is {100 * (trees - ours['accuracy']):.1f} points ahead of our network."
    )
    yield (
        f"Another bound costs us {ours['seconds_choosing']:.1f} s (`choose`, {ours['evaluations']:.0f} evaluations on average) and them a new training. "
        "`ThresholdOptimizer` must be told the group of everybody it judges; ours and `ExponentiatedGradient` must not. Both of theirs draw lots to decide."
    )


def onnx_table() -> Iterator[str]:
    """What an exported file costs beside PyTorch."""
    found = load("onnx.json")
    names = {"adult": "Adult, preprocessing inside", "multi_digits": "Multi-digits, LeNet"}
    timed = {key: found[key]["timings"] for key in names}
    threads = timed["adult"][0]["threads"]
    yield (
        f"`paretocosmos export`, onnxruntime beside PyTorch in one run, {threads} thread (`python -m benchmarks.onnx`):"
    )
    yield ""
    yield "| file | rows | preferences | onnxruntime | PyTorch | ratio | largest difference |"
    yield "|---|---|---|---|---|---|---|"
    for key, rows in timed.items():
        for row in rows:
            yield (
                f"| {names[key]} | {row['rows']:,} | {row['preferences']:,} | {row['onnxruntime_ms']:.3g} ms | "
                f"{row['torch_ms']:.3g} ms | {row['ratio']:.2f} | {row['difference']:.0e} |"
            )


def estimators_table() -> Iterator[str]:
    """What fitting an estimator takes."""
    found = load("estimators.json")
    data = found["rows"] * found["features"] * 8
    yield (
        f"`fit` of a scikit-learn estimator on {found['rows']:,} rows of {found['features']} numbers, {data / 1e6:.0f} MB, two cores "
        "(`python -m benchmarks.estimators`); memory beside the data, in a process that has fitted before and in one that has not and loads what torch needs:"
    )
    yield ""
    yield "| what is traded | seconds | memory | times the data | the first fit of a process |"
    yield "|---|---|---|---|---|"
    names = {
        "classes": "two classes' losses",
        "groups": "loss and gap between groups",
        "numbers": "over- and under-prediction",
    }
    for key, name in names.items():
        one = found["fits"][key]
        yield (
            f"| {name} | {one['seconds']:.1f} | {one['memory'] / 1e6:.0f} MB | {one['memory_times_data']:.1f} | "
            f"{one['memory_of_the_first_fit'] / 1e6:.0f} MB |"
        )


def draw_constraint(path: Path) -> None:
    """Test accuracy against test gap, a mark for every seed."""
    found = load("constraint.json")
    with styled():
        figure = Figure(figsize=(7.2, 3.8), dpi=DPI, layout="constrained")
        axes: Any = figure.subplots()
        axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
        axes.tick_params(length=0, pad=5)
        axes.axvline(found["bound"], color=MUTED, linewidth=0.8, linestyle="--")
        for row in found["rows"]:
            ours = row["method"] == "paretocosmos"
            colour = COLOURS.get(row["method"], OTHER)
            gaps, right = ([one[k] for one in row["each"]] for k in ("tpr_gap", "accuracy"))
            marker = "o" if ours else SHAPES[row["learner"]]
            label = "paretocosmos, one network" if ours else f"{row['method']}, {row['learner']}"
            face = colour if ours else "none"
            axes.scatter(
                gaps, right, s=34, marker=marker, edgecolors=colour, facecolors=face, label=label
            )
        axes.set_xlim(left=0)
        low, high = axes.get_ylim()
        axes.text(found["bound"], high, f" the bound, {found['bound']:.0%}", color=MUTED, va="top")
        axes.set_ylim(low, high)
        axes.set(xlabel="true-positive-rate gap on test", ylabel="accuracy on test")
        axes.set_title("Adult: the most accurate model under a bound", loc="left", color=INK)
        figure.legend(loc="outside right upper")
        figure.savefig(path, dpi=DPI)


def load(name: str) -> Any:
    """A committed result."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))
