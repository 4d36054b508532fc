"""What the pages say of faces: results/efficientnet.json and celeba.json."""

import json
from collections.abc import Iterator
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


def faces_short() -> Iterator[str]:
    """For the README: what conditioning costs a deep network."""
    two, ten = (ratio("captured, 32, tf32, nchw, group", f"cosmos, {n}") for n in (2, 10))
    eager, captured = (step("cosmos, 2", engine, 32)["step"] for engine in ("eager", "captured"))
    added = step("cosmos, 2", "captured", 32)["share_added"]
    device = load("efficientnet.json")["machine"]["device"]
    yield (
        f"EfficientNet-B4, batch 32, on one {device}: a training step for the front of two tasks takes "
        f"{two:.3f} times that of a single task, of ten tasks {ten:.3f} times (the paper: 1.07); captured steps are "
        f"{eager / captured:.1f} times as fast as eager ones; conditioning adds {added:.3%} of weights "
        "([more](docs/results.md#faces-and-a-deep-network))."
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
        f"{lead['training']['epochs']} epochs, seed {lead['seed']}, {found['machine']['device']}. **A subset of CelebA**: "
        f"{lead['samples']['train']:,} pictures to train on, {lead['samples']['val']:,} and {lead['samples']['test']:,} for validation "
        "and test, no person in two parts. COSMOS is judged at the centre ray, a single task by its own network, and both beside "
        "a constant that knows how often an attribute occurs. The paper draws one ray a batch (`groups` 1) and has λ = 3, from pretrained "
        "weights and 162,770 pictures; from random ones a network that does not hear rays yet sees mostly noise then. λ 1 and 32 rays a batch were chosen on the validation split, with a LeNet."
    )
    yield ""
    yield (
        "| problem | trained | task | cross-entropy | constant | misclassified | ROC-AUC | training |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for cell in cells:
        settings = cell["training"], cell["method_settings"]
        how = (
            f"COSMOS, λ {settings[1]['penalty']:g}, `groups` {settings[0]['groups']}"
            if cell["method"] == "cosmos"
            else "a network each"
        )
        for name, task in cell["tasks"]["each"].items():
            constant = cell["tasks"]["constant"][name]["binary_cross_entropy"]
            yield (
                f"| `{cell['problem']}` | {how} | {name.replace('_', ' ')} | {task['binary_cross_entropy']:.3f} | "
                f"{constant:.3f} | {task['misclassification']:.1%} | {task['roc_auc']:.3f} | "
                f"{cell['seconds']['training']:.0f} s |"
            )
    yield ""
    narrow = [c for c in cells if c["method"] == "cosmos" and c["metrics"]["test"]["span"] < 0.01]
    for cell in narrow:
        points = [f"({', '.join(f'{v:.3f}' for v in point)})" for point in cell["front"]["values"]]
        lead = f"The front of `{cell['problem']}` with λ {cell['method_settings']['penalty']:g} and `groups` {cell['training']['groups']}"
        if len(set(points)) == 1:
            yield f"{lead} is a point, {points[0]} at every ray to three digits: this network does not hear the ray. "
        else:
            share = cell["metrics"]["test"]["dominated_share"]
            yield (
                f"{lead} is narrow: the losses go from {points[0]} at the first ray to {points[-1]} at the last, but {share:.0%} of the "
                "rays are dominated. On these pictures and with these settings the losses hardly compete. "
            )


def processes_note() -> Iterator[str]:
    """What a second process wins on a CPU."""
    sizes = load("processes.json")["sizes"]
    told = ", ".join(
        f"{sizes[size]['throughput_of_two']:.2f} at batch {int(size):,}" for size in sizes
    )
    yield (
        "`python -m benchmarks.processes`: two processes of one thread each have this many times the throughput of one, LeNet on "
        f"`multi_digits`, CPU: {told}. Small steps lose to the messages what they win."
    )
