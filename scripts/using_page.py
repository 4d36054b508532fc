"""What using a front costs and gains: the constraint beside fairlearn's, as a table and a figure."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from paretocosmos.plotting.style import ANCHORS, DPI, HAIRLINE, INK, MUTED, use_style

RESULTS = Path(__file__).resolve().parents[1] / "results"
SHAPES = {"logistic regression": "s", "gradient boosting": "^"}
OURS = "one network"
TABLES = {
    "adult": "Adult",
    "compas": "COMPAS",
    "default_credit": "Default",
    "german_credit": "German credit",
    "stop_and_search": "stop and search",
    "law_school": "law school",
}
COLOURS = {OURS: ANCHORS[0], "ThresholdOptimizer": ANCHORS[1]}
OTHER = ANCHORS[2]


def constraint_table() -> Iterator[str]:
    """Every table, gap and bound: ours beside the best of fairlearn's, means over splits."""
    cases = load("constraint.json")["cases"]
    splits = len({case["split"] for case in cases})
    yield (
        f"The most accurate model whose gap is at most a bound, on {splits} splits of every table, compared on the same test rows "
        "(`python -m benchmarks.constraint`). *Kept* is how often the test rows also keep the bound. fairlearn's best is `ThresholdOptimizer` with logistic regression or gradient boosting, "
        "whichever is more accurate on test rows, which favours it. `ExponentiatedGradient` was trained on some splits only; its numbers are in the JSON."
    )
    yield ""
    yield "| table | gap | bound | ours: accuracy | gap | kept | fairlearn's best: accuracy | gap | kept | which | with logistic regression |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for row in constraint_rows():
        ours, best, which = row["ours"], row["best"], row["which"]
        mine = (
            f"{ours['accuracy']:.4f} | {ours['gap']:.3f} | {ours['kept']:.0%}"
            if ours
            else "none found | – | –"
        )
        strong = (
            f"**{mine.split(' | ')[0]}** | {' | '.join(mine.split(' | ')[1:])}"
            if row["ahead"] >= 0
            else mine
        )
        yield (
            f"| {row['table']} | `{row['gap']}` | {row['bound']:.2f} | {strong} | {best['accuracy']:.4f} | {best['gap']:.3f} | "
            f"{best['kept']:.0%} | {which} | {row['linear']['accuracy']:.4f} |"
        )


def constraint_note() -> Iterator[str]:
    """What the table says, plainly."""
    rows = list(constraint_rows())
    cases = [case for case in load("constraint.json")["cases"] if case["method"] == OURS]
    found = sum(case["found"] for case in cases) / len(cases)
    ahead = [row["ahead"] for row in rows if row["ours"]]
    linear = [r["ours"]["accuracy"] - r["linear"]["accuracy"] for r in rows if r["ours"]]
    kept = [fmean(r[who]["kept"] for r in rows if r["ours"]) for who in ("ours", "best")]
    lost = sum(row["ahead"] < 0 for row in rows)
    yield (
        f"One network per gap serves both bounds. A point is found in {found:.0%} of cases; its accuracy then differs by {100 * fmean(ahead):+.2f} points from fairlearn's best "
        f"and by {100 * fmean(linear):+.2f} from its best with logistic regression. The test rows keep the bound in {kept[0]:.0%} of cases ({kept[1]:.0%} for fairlearn's best). "
        f"We are behind in {lost} of {len(rows)} rows."
    )
    yield (
        "`ThresholdOptimizer` needs the group of everybody it predicts for; our network and `ExponentiatedGradient` do not. Both of fairlearn's methods may "
        "randomise, so the same person can get a yes and a no; ours does not."
    )


def constraint_rows() -> Iterator[dict[str, Any]]:
    """Means over splits for every table, gap and bound."""
    cases = load("constraint.json")["cases"]
    keys = dict.fromkeys((case["table"], case["gap"], case["bound"]) for case in cases)
    splits = len({case["split"] for case in cases})
    for table, gap, bound in keys:
        here = [c for c in cases if (c["table"], c["gap"], c["bound"]) == (table, gap, bound)]
        every: dict[tuple[str, str], dict[str, float]] = {}
        for case in here:
            name = (case["method"], case["learner"])
            same = [c for c in here if (c["method"], c["learner"]) == name and c["found"]]
            if (name[0] == OURS and same) or len(same) == splits:
                every[name] = {
                    "accuracy": fmean(c["accuracy"] for c in same),
                    "gap": fmean(c["gap_test"] for c in same),
                    "kept": fmean(c["gap_test"] <= bound for c in same),
                }
        theirs = {name: one for name, one in every.items() if name[0] != OURS}
        which = max(theirs, key=lambda name: theirs[name]["accuracy"])
        straight = [one for name, one in theirs.items() if name[1] == "logistic regression"]
        ours = every.get((OURS, OURS))
        yield {
            "table": TABLES[table],
            "gap": gap,
            "bound": bound,
            "ours": ours,
            "best": theirs[which],
            "which": f"`{which[0]}`, {which[1]}",
            "linear": max(straight, key=lambda one: one["accuracy"]),
            "ahead": -1.0 if ours is None else ours["accuracy"] - theirs[which]["accuracy"],
        }


def onnx_table() -> Iterator[str]:
    """What an exported file costs beside PyTorch."""
    found = load("onnx.json")
    names = {"adult": "Adult, preprocessing inside", "multi_digits": "Multi-digits, LeNet"}
    timed = {key: found[key]["timings"] for key in names}
    threads = timed["adult"][0]["threads"]
    yield (
        f"`paretocosmos export`, onnxruntime and PyTorch in one run, {threads} thread (`python -m benchmarks.onnx`):"
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
        "(`python -m benchmarks.estimators`). Memory is on top of the data, in a process that has fitted before; the last column is the first fit of a process, which also loads torch's libraries:"
    )
    yield ""
    yield "| objectives | seconds | memory | times the data | the first fit of a process |"
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
        f"`paretocosmos serve` on Adult: {found['clients']} clients on the same two cores, one row and a new preference in every request, every answer checked, "
        f"{found['seconds']:.0f} s each (`python -m benchmarks.serving`):"
    )
    yield ""
    yield "|  | requests per second | median | 99 % | right | wrong | errors | memory |"
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
        f"Killed with SIGKILL and restarted under the same load: {killed['right']:,} right answers, {killed['wrong']} wrong ones, {killed['refused']:,} connections refused, "
        f"{killed['cut']} dropped."
    )
    if choosing := found["rows"].get("choosing"):
        yield ""
        yield (
            f"`/choose` with the default network, every request different: median {choosing['p50_ms'] / 1000:.2f} s, 99 % within {choosing['p99_ms'] / 1000:.2f} s, "
            f"{choosing['cpu_ms_each'] / 1000:.2f} s of processor time each."
        )


def explorer_table() -> Iterator[str]:
    """What the page costs a browser."""
    found = load("explorer.json")
    yield (
        f"`paretocosmos explore` with {found['rays']:,} rays x {found['runs']} runs in headless Chromium without a GPU (`python -m benchmarks.explorer`); the last three columns are frames per second while dragging:"
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
    """Test accuracy against test gap on Adult under one bound, a mark for every split."""
    bound = 0.02
    cases = [
        case
        for case in load("constraint.json")["cases"]
        if (case["table"], case["gap"], case["bound"]) == ("adult", "tpr_gap", bound)
        and case["found"]
    ]
    names = dict.fromkeys((case["method"], case["learner"]) for case in cases)
    with use_style():
        figure = Figure(figsize=(7.2, 3.8), dpi=DPI, layout="constrained")
        axes: Any = figure.subplots()
        axes.grid(color=HAIRLINE, linewidth=0.4, alpha=0.7)
        axes.tick_params(length=0, pad=5)
        axes.axvline(bound, color=MUTED, linewidth=0.8, linestyle="--")
        for method, learner in sorted(names, key=lambda name: name[0] != OURS):
            ours = method == OURS
            same = [c for c in cases if (c["method"], c["learner"]) == (method, learner)]
            colour = COLOURS.get(method, OTHER)
            axes.scatter(
                [case["gap_test"] for case in same],
                [case["accuracy"] for case in same],
                s=34,
                marker="o" if ours else SHAPES[learner],
                edgecolors=colour,
                facecolors=colour if ours else "none",
                label="paretocosmos, one network" if ours else f"{method}, {learner}",
            )
        axes.set_xlim(left=0)
        low, high = axes.get_ylim()
        axes.text(bound, high, f" the bound, {bound:.0%}", color=MUTED, va="top")
        axes.set_ylim(low, high)
        axes.set(xlabel="true-positive-rate gap on test", ylabel="accuracy on test")
        axes.set_title("Adult: the most accurate model under a bound", loc="left", color=INK)
        figure.legend(loc="outside right upper")
        figure.savefig(path, dpi=DPI)


def load(name: str) -> Any:
    """A committed result."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))
