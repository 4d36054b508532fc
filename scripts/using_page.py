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
        training = row["method"] == "ExponentiatedGradient"
        bounded = "on the training rows" if training else f"{mean['tpr_gap_val']:.4f}, on val"
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
        f"Another bound costs us {ours['seconds_choosing']:.1f} s (`choose`, {ours['evaluations']:.0f} evaluations on average), `ThresholdOptimizer` new thresholds, `ExponentiatedGradient` a new training. "
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


def serving_table() -> Iterator[str]:
    """A server under load."""
    found = load("serving.json")
    yield (
        f"`paretocosmos serve`, Adult: {found['clients']} clients on the same two cores, one row and another preference in every request, every answer compared, "
        f"{found['seconds']:.0f} s each (`python -m benchmarks.serving`):"
    )
    yield ""
    yield "|  | requests a second | median | 99 % | right | wrong | errors | memory |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, key in (("batched together", "batching"), ("one by one", "no batching")):
        one = found["rows"][key]
        memory = one["memory_mb"]
        yield (
            f"| {name} | {one['per_second']:,.0f} | {one['p50_ms']:.0f} ms | {one['p99_ms']:.0f} ms | {one['seen']['right']:,} | "
            f"{one['seen']['wrong']} | {one['seen']['error']} | {memory[0]:.0f} to {memory[-1]:.0f} MB |"
        )
    yield ""
    killed = found["rows"]["killed and restarted"]["seen"]
    yield (
        f"Killed with SIGKILL and started again under the same load: {killed['right']:,} right answers, {killed['wrong']} wrong ones, {killed['refused']:,} connections refused, "
        f"{killed['cut']} cut that were under way."
    )


def explorer_table() -> Iterator[str]:
    """What the page costs a browser."""
    found = load("explorer.json")
    yield (
        f"`paretocosmos explore` with {found['rays']:,} rays x {found['runs']} runs in headless Chromium without a GPU (`python -m benchmarks.explorer`); frames a second while dragging:"
    )
    yield ""
    yield "| objectives | page | first paint | drawn | preference | bound | picture |"
    yield "|---|---|---|---|---|---|---|"
    for objectives, one in found["objectives"].items():
        pace = " | ".join(
            f"{one[f'{what}_frames_per_second']:.0f}" for what in ("preference", "bound", "picture")
        )
        yield (
            f"| {objectives} | {one['bytes'] / 1e6:.1f} MB | {one['first_paint_seconds']:.2f} s | {one['loaded_seconds']:.2f} s | {pace} |"
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
