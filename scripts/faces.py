"""What the pages say of faces: results/efficientnet.json, celeba.json, celeba_rays.json and loader.json."""

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"


def load(name: str) -> Any:
    """A committed result."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def ratio(kind: str, task: str) -> float:
    """A task's step relative to the single task's."""
    (found,) = [r for r in load("efficientnet.json")["ratios"] if r["kind"] == kind]
    return float(found[f"{task} / single task"])


def step(task: str, engine: str, size: int) -> Any:
    """A cell of the step's table."""
    cells = load("efficientnet.json")["cells"]
    (found,) = [
        c
        for c in cells
        if (c["task"], c["engine"], c["batch_size"], c["precision"], c["layout"])
        == (task, engine, size, "tf32", "nchw")
    ]
    return found


def cost_of_conditioning() -> float:
    """A step of COSMOS for two tasks, in steps of a single task."""
    return ratio("captured, 32, tf32, nchw, group", "cosmos, 2")


def faces_short() -> Iterator[str]:
    """What conditioning costs a deep network."""
    ten = ratio("captured, 32, tf32, nchw, group", "cosmos, 10")
    eager, captured = (step("cosmos, 2", engine, 32)["step"] for engine in ("eager", "captured"))
    added = step("cosmos, 2", "captured", 32)["share_added"]
    yield (
        f"At batch 32, a captured training step for the front of two tasks takes {cost_of_conditioning():.3f} times that of a single task, "
        f"and {ten:.3f} times for ten tasks (the paper: 1.07). Captured steps are {eager / captured:.1f} times as fast as eager ones. "
        f"Conditioning adds {added:.3%} of weights."
    )


def steps_table() -> Iterator[str]:
    """Step times of EfficientNet-B4."""
    found = load("efficientnet.json")
    yield (
        f"`python -m benchmarks.efficientnet`: {found['network']}, random pictures, {found['machine']['device']}, tf32, "
        "group normalisation; trials of one kind in turns, medians."
    )
    yield ""
    yield "| engine, batch | single task | COSMOS, 2 tasks | COSMOS, 10 tasks | images/s, 2 tasks |"
    yield "|---|---|---|---|---|"
    for engine, size in (("captured", 32), ("captured", 256), ("eager", 32)):
        single = step("single task", engine, size)
        row = [f"{single['step'] * 1e3:.1f} ms"]
        for count in (2, 10):
            cell = step(f"cosmos, {count}", engine, size)
            times = ratio(f"{engine}, {size}, tf32, nchw, group", f"cosmos, {count}")
            row.append(f"{cell['step'] * 1e3:.1f} ms ({times:.3f} times)")
        row.append(f"{step('cosmos, 2', engine, size)['images_per_second']:,.0f}")
        yield f"| {engine}, {size} | {' | '.join(row)} |"


def celeba_table() -> Iterator[str]:
    """CelebA's subset: COSMOS at the centre ray against networks of their own."""
    found = load("celeba.json")
    cells = found["cells"]
    lead = cells[0]
    weights = lead["backbone"]["settings"]["weights"]
    yield (
        f"`python -m benchmarks.celeba`: EfficientNet-B4 from {weights} weights, group normalisation, batch {lead['batch_size']}, "
        f"seed {lead['seed']}, {found['machine']['device']}. **A subset of CelebA**: "
        f"{lead['samples']['train']:,} pictures for training, {lead['samples']['val']:,} and {lead['samples']['test']:,} for validation "
        "and test, no person in two splits. COSMOS is evaluated at equal weights, a single task by its own network, and both are compared "
        "with a constant prediction of the attribute's frequency. The paper draws one ray per batch (`rays_per_batch` 1) and uses λ = 3, with pretrained "
        "weights and 162,770 pictures. With random weights, a network that does not yet react to rays gets mostly noise that way."
    )
    yield from rays_table()
    pairs = [cell for cell in cells if len(cell["tasks"]["each"]) == 2]
    yield "| problem | trained | epochs | task | cross-entropy (a constant's) | misclassified (a constant's) | ROC-AUC | training |"
    yield "|---|---|---|---|---|---|---|---|"
    for cell in sorted(pairs, key=lambda one: one["problem"]):
        for name, numbers in task_columns(cell):
            yield (
                f"| `{cell['problem']}` | {how(cell)} | {cell['training']['epochs']} | {name} | {numbers} | "
                f"{cell['seconds']['training']:.0f} s |"
            )
    yield ""
    for problem in ("celeba_easy", "celeba_hard"):
        yield from against_alone([cell for cell in pairs if cell["problem"] == problem])
    judged = [c for c in pairs if c["training"]["evaluate_every"] == 1 and c["method"] == "cosmos"]
    best = " and ".join(str(n) for n in sorted({c["epoch_selected"] for c in judged}))
    narrow = [c for c in pairs if c["method"] == "cosmos" and c["metrics"]["test"]["span"] < 0.01]
    told = []
    for cell in narrow:
        points = [f"({', '.join(f'{v:.3f}' for v in point)})" for point in cell["front"]["values"]]
        which = f"`{cell['problem']}`, {how(cell, long=True)}"
        told.append(
            f"{which}: {points[0]} at every ray"
            if len(set(points)) == 1
            else f"{which}: from {points[0]} to {points[-1]}, {cell['metrics']['test']['dominated_share']:.0%} of the rays dominated"
        )
    yield (
        "The fronts of two tasks are narrow here, or single points ("
        + "; ".join(told)
        + "). Either the losses of a pair hardly conflict on these pictures, "
        f"or such a short training from random weights does not learn to use the ray. On the hard pair, evaluated after each of eight epochs, the best epochs were {best}."
    )
    yield ""
    yield "More objectives, COSMOS at equal weights:"
    yield ""
    yield "| problem | task | cross-entropy (a constant's) | misclassified (a constant's) | ROC-AUC |"
    yield "|---|---|---|---|---|"
    many = [cell for cell in cells if len(cell["tasks"]["each"]) > 2]
    for cell in many:
        for name, numbers in task_columns(cell):
            yield f"| `{cell['problem']}` | {name} | {numbers} |"
    yield ""
    spans = ", ".join(
        f"`{cell['problem']}` {cell['metrics']['test']['span']:.2f} ({cell['seconds']['training']:.0f} s of training)"
        for cell in many
    )
    above, never = [], []
    for cell in many:
        for at, (name, task) in enumerate(cell["tasks"]["each"].items()):
            constant = cell["tasks"]["constant"][name]["binary_cross_entropy"]
            if task["binary_cross_entropy"] >= constant:
                above.append(name)
                if min(point[at] for point in cell["front"]["values"]) >= constant:
                    never.append(name.replace("_", " "))
    count = sum(len(cell["tasks"]["each"]) for cell in many)
    turned = ", ".join(f"{c['metrics']['test']['monotonicity']:.2f}" for c in many).replace(
        "-", "−"
    )
    yield (
        f"These are trained with {how(many[0]).removeprefix('COSMOS, ')}, and their fronts do spread, with a span of {spans}; [the reproduction](reproduction.md) shows "
        f"the front of three. {len(above)} of the {count} cross-entropies are not below the constant's although the areas under the curve are high: at "
        "equal weights the cosine asks for equal losses, even for rare attributes, whose loss could be small. At the best "
        f"of the 25 rays for each, all but {len(never)} ({', '.join(never)}) are below it. "
        f"The cosine also reverses the order of these fronts (monotonicity {turned}): more weight on a "
        "task raises its loss, which `alignment=inverse` avoids ([why](concepts.md#what-a-preference-means))."
    )


def rays_table() -> Iterator[str]:
    """Where the penalty and the number of rays a batch come from."""
    sweep = load("celeba_rays.json")
    yield (
        f"So both were varied for a LeNet on `{sweep['problem']}` (`python -m benchmarks.celeba_rays`, {sweep['epochs']} epochs, "
        f"mean of {len(sweep['seeds'])} seeds) and compared on the *validation* fronts:"
    )
    yield ""
    yield "| rays per batch | λ | HV | span | dominated |"
    yield "|---|---|---|---|---|"
    for cell in sweep["cells"]:
        volume, span, share = (
            statistics.fmean(cell[name]) for name in ("hypervolume", "span", "dominated_share")
        )
        yield f"| {cell['rays_per_batch']} | {cell['penalty']:g} | {volume:.3f} | {span:.3f} | {share:.0%} |"
    best = max(sweep["cells"], key=lambda c: statistics.fmean(c["hypervolume"]))
    yield ""
    yield (
        f"We take the largest hypervolume: {best['rays_per_batch']} rays per batch, λ {best['penalty']:g}. This is also the narrowest front; "
        "a larger λ gives a wider one, which costs little with many rays."
    )
    yield ""


def how(cell: Any, *, long: bool = False) -> str:
    """How a cell was trained; the longer form is for the middle of a sentence."""
    if cell["method"] == "linear":
        return "one network, the default preset"
    if cell["method"] != "cosmos":
        return "a network each"
    settings = f"λ {cell['method_settings']['penalty']:g}, `rays_per_batch` {cell['training']['rays_per_batch']}"
    return f"{settings}, {cell['training']['epochs']} epochs" if long else f"COSMOS, {settings}"


def task_columns(cell: Any) -> Iterator[tuple[str, str]]:
    """A task's name, and its numbers as columns."""
    for name, task in cell["tasks"]["each"].items():
        plain = cell["tasks"]["constant"][name]
        yield (
            name.replace("_", " "),
            f"{task['binary_cross_entropy']:.3f} ({plain['binary_cross_entropy']:.3f}) | "
            f"{task['misclassification']:.1%} ({plain['misclassification']:.1%}) | {task['roc_auc']:.3f}",
        )


def against_alone(pair: Sequence[Any]) -> Iterator[str]:
    """COSMOS beside networks of their own: both as the validation split prefers them."""
    alone = max(
        (c for c in pair if c["method"] == "single_task"),
        key=lambda c: c["metrics"]["val"]["hypervolume_ideal"],
    )
    rivals = sorted(
        (c for c in pair if c["method"] == "cosmos"),
        key=lambda c: -c["metrics"]["val"]["hypervolume"],
    )
    rivals = [c for c in rivals if c["training"]["epochs"] == alone["training"]["epochs"]]
    (problem,) = {c["problem"] for c in pair}
    told = [
        f"{how(cell)} (validation hypervolume {cell['metrics']['val']['hypervolume']:.3f}) {_gaps(cell, alone)}"
        for cell in rivals
    ]
    yield (
        f"Compared with networks for single tasks on `{problem}`, all with {alone['training']['epochs']} epochs, means over its tasks: "
        f"{'; '.join(told)}. "
    )


def _gaps(cell: Any, alone: Any) -> str:
    ours, theirs = (one["tasks"]["mean"] for one in (cell, alone))
    rate = 100 * (ours["misclassification"] - theirs["misclassification"])
    area = ours["roc_auc"] - theirs["roc_auc"]
    text = f"differs by {rate:+.1f} points of misclassification and {area:+.3f} of ROC-AUC"
    return text.replace("-", "−").replace("ROC−", "ROC-")


def loader_note() -> Iterator[str]:
    """How fast pictures are delivered."""
    found = load("loader.json")
    count, *shape = found["images"]
    told = []
    for size in found["alone"]:
        alone, training = found["alone"][size], found["training"][size]
        told.append(
            f"batches of {size}: {alone['resident']['images_per_second']:,.0f} per second gathered on the device, "
            f"{alone['streamed']['images_per_second']:,.0f} streamed from a memory-mapped file; a LeNet that trains on the stream takes "
            f"{training['streamed']['images_per_second']:,.0f} and waits {training['streamed']['share_waiting']:.0%} of its time"
        )
    fastest = max(c["images_per_second"] for c in load("celeba.json")["cells"])
    yield (
        f"`python -m benchmarks.loader`, {count:,} pictures of {' x '.join(map(str, shape))}, {found['machine']['device']}; "
        + "; ".join(told)
        + f". EfficientNet-B4 takes at most {fastest:,.0f} per second, so it never waits."
    )


def processes_note() -> Iterator[str]:
    """What a second process wins on a CPU."""
    sizes = load("processes.json")["sizes"]
    told = ", ".join(
        f"{sizes[size]['throughput_of_two']:.2f} at batch {int(size):,}" for size in sizes
    )
    yield (
        "`python -m benchmarks.processes`: the throughput of two processes with one thread each, divided by that of one, for a LeNet on "
        f"`multi_digits` on a CPU: {told}. For small batches, communication costs what the second process gains."
    )
