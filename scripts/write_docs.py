"""`make docs`: write what a program can write, from the code and from results/.

The marked regions of README.md, the pages of docs/ that say so, and the pictures. A test
calls `texts()` and compares with what is committed.
"""

import json
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from paretocosmos import Front
from paretocosmos.cli import app
from paretocosmos.paper.published import get_authors_result, get_paper_row
from paretocosmos.plotting import save_comparison, save_dark, save_front

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))  # for those who import this file

from faces import celeba_table, faces_short, loader_note, processes_note, steps_table  # noqa: E402
from fronts_page import fronts_table, study_table  # noqa: E402
from gallery_page import gallery  # noqa: E402
from images_page import draw_images, fingerprint, images_note, images_seeds, images_table  # noqa: E402
from intervals_page import intervals_note, intervals_table  # noqa: E402
from method_cards import (  # noqa: E402
    ORDER,
    baselines_cost,
    baselines_note,
    baselines_table,
    trainings_table,
)
from promises_page import promises_page  # noqa: E402
from quantiles_page import draw_quantiles, quantiles_table  # noqa: E402
from rate_distortion_page import draw_rate_distortion, slider  # noqa: E402
from readme_page import fill  # noqa: E402
from reference_pages import KINDS, write_reference_page  # noqa: E402
from reproduction_page import draw_reproduction, reproduction_page, reproduction_short  # noqa: E402
from robustness_page import draw_robustness, robustness_table  # noqa: E402
from using_page import (  # noqa: E402
    constraint_note,
    constraint_table,
    draw_constraint,
    estimators_table,
    explorer_table,
    onnx_table,
    serving_table,
)

from pictures import draw_consequences, draw_idea, picture  # noqa: E402

RESULTS = ROOT / "results"

PROBLEMS = ("adult", "compas", "default_credit")


def main() -> None:
    """Write everything."""
    for path, text in texts().items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    demo = {name: json.loads((RESULTS / "demo" / f"{name}.json").read_text()) for name in FRONTS}
    fronts = [Front.from_dict(demo[name]) for name in FRONTS]
    save_front(ROOT / "docs" / "adult.png", fronts, title="Adult: one network, 25 trade-offs")
    save_dark(ROOT / "docs" / "adult.png")
    draw_consequences(ROOT / "docs" / "consequences.png")
    draw_idea(ROOT / "docs" / "idea.png")
    draw_images(ROOT / "docs" / "images.png")
    draw_constraint(ROOT / "docs" / "constraint.png")
    for dark in (False, True):
        draw_rate_distortion(ROOT / "docs" / "gallery", dark=dark)
    draw_reproduction()
    cells = [c for c in load("baselines.json")["cells"] if not c["settings"]]
    own = {
        c["method"]: c["runs"] for c in cells if (c["problem"], c["protocol"]) == ("adult", "paper")
    }
    separate = {name for name in ORDER if own[name][0]["networks"][0]["ray"] is not None}
    compared = {
        name: [
            _front(run["front"], len(run["networks"]) if name in separate else None)
            for run in own[name]
        ]
        for name in ORDER
    }
    save_comparison(
        ROOT / "docs" / "compare.png",
        compared,
        title="Adult: seven methods, five seeds",
        ideal=["single_task"],
    )
    draw_quantiles(ROOT / "docs" / "gallery" / "all_quantiles.png")
    draw_robustness(ROOT / "docs" / "gallery" / "robust_accuracy.png")
    for name in (
        *("compare", "consequences", "constraint", "idea", "images"),
        *("gallery/all_quantiles", "gallery/robust_accuracy"),
    ):
        save_dark(ROOT / "docs" / f"{name}.png")


def _front(content: Any, networks: int | None) -> Front:
    provenance = content["provenance"] | {"networks": networks}
    return Front.from_dict(content | {"provenance": provenance})


FRONTS = ("front", "front_val")


def texts() -> dict[str, str]:
    """Every written file by its path."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return {
        "README.md": fill(readme),
        "docs/results.md": results(),
        "docs/cli.md": cli(),
        **{f"docs/reference/{kind}.md": write_reference_page(kind) for kind in KINDS},
        "docs/gallery.md": gallery(),
        "docs/gallery/rate_distortion.html": slider(),
        "docs/reproduction.md": reproduction_page(),
        "docs/promises.md": promises_page(),
    }


def fairness_table() -> Iterator[str]:
    """Hypervolume of five seeds beside the paper's."""
    yield "| test hypervolume at (2, 2), 5 seeds | Adult | COMPAS | Default |"
    yield "|---|---|---|---|"
    cells = cosmos_cells()
    for protocol, label in (("paper", "as published"), ("clean", "without leaks")):
        row = {c["problem"]: c["hypervolume"] for c in cells if c["protocol"] == protocol}
        numbers = " | ".join(f"{row[p]['mean']:.3f} ± {row[p]['std']:.3f}" for p in PROBLEMS)
        yield f"| paretocosmos, protocol `{protocol}` ({label}) | {numbers} |"
    for label, printed in (
        ("the authors' code, same data", [f"{get_authors_result(p)}" for p in PROBLEMS]),
        ("the paper", [f"{paper_volume(p)}" for p in PROBLEMS]),
    ):
        yield f"| {label} | {' | '.join(printed)} |"


def paper_volume(problem: str, method: str = "cosmos") -> float:
    """The hypervolume the paper prints."""
    row = get_paper_row(problem, method)
    assert row is not None
    return row["hypervolume"]


def speed_table() -> Iterator[str]:
    """The benchmark's ratios."""
    measured = load("bench_tabular.json")
    seconds, ratio = measured["seconds"], measured["ratio"]
    yield "| Adult | textbook | paretocosmos | times faster |"
    yield "|---|---|---|---|"
    for label, key, name, unit, scale in (
        ("one training step", "step", "step", "ms", 1e3),
        (f"training, {measured['epochs']} epochs", "training", "training", "s", 1),
        ("a front of 25 rays", "sweep", "evaluation", "ms", 1e3),
    ):
        theirs, ours = seconds[f"{key}_textbook"] * scale, seconds[f"{key}_ours"] * scale
        digits = 0 if theirs > 100 else 2
        yield f"| {label} | {theirs:.{digits}f} {unit} | {ours:.{digits}f} {unit} | {ratio[name]:.1f} |"


def results() -> str:
    """docs/results.md."""
    return "\n".join(
        [
            "# Results",
            "",
            "Written by `make docs` from the JSON in `results/`.",
            "",
            "## Fronts by default",
            "",
            "`python -m benchmarks.fronts`, five seeds. Epochs and the range of rays are chosen on validation data; the numbers are on test data.",
            "Order is the rank correlation between an objective's weight and minus its value, for the worse objective (1: more weight always",
            "lowers it). Dominated is the share of rays that another ray beats. Utility is the mean over uniform weights of the best weighted",
            "loss; smaller is better. The hypervolume is relative to (2, 2). On Default, and on COMPAS with selection rates, the objectives",
            "conflict by little more than the noise of a split, and the order is less certain.",
            "",
            *fronts_table(),
            "",
            "`paretocosmos reproduce study_fronts` removes one ingredient of the default preset at a time, and trains every method with the paper's",
            "settings and with the default preset. This is the part trained so far, five seeds each:",
            "",
            *study_table(),
            "",
            "Pairs of images (rule `published`, pixels 0..1) were trained on one NVIDIA H200, tables on a CPU.",
            "",
            "## By the paper's recipe",
            "",
            *fairness_table(),
            "",
            *reproduction_short(),
            "",
            "`paper` reproduces the published evaluation with its flaws; `clean` removes the leaks, fits the",
            "preprocessing on training rows only and scores whole splits. COMPAS falls by almost one unit",
            "because `is_recid` is nearly the label; the published figure depends on that leak. Adult and Default",
            "gain a little, because counts over 256 samples add noise to DEO: "
            + whole_split()
            + ".",
            "",
            *seeds_table(),
            "",
            "## Every method",
            "",
            "`python -m benchmarks.baselines`, on a CPU, five seeds trained together; [what each method does](reference/methods.md).",
            "",
            *baselines_table(),
            "",
            *baselines_note(),
            "",
            *baselines_table("clean"),
            "",
            *baselines_cost(),
            "",
            picture("compare", "Seven methods on Adult"),
            "",
            *trainings_table(),
            "",
            "## Pairs of images",
            "",
            *images_table(),
            "",
            *images_note(),
            "",
            picture("images", "Mean fronts on the three pairs of images, and on a harder draw"),
            "",
            *images_seeds(),
            "",
            "### Which images",
            "",
            *fingerprint(),
            "",
            "## Under a constraint",
            "",
            *constraint_table(),
            "",
            *constraint_note(),
            "",
            picture("constraint", "Accuracy and gap on test data for every method and split"),
            "",
            "## All quantiles in one network",
            "",
            *quantiles_table(),
            "",
            "## Clean against robust accuracy",
            "",
            *robustness_table(),
            "",
            "## Intervals that cover",
            "",
            "`python -m benchmarks.intervals`: 95 % intervals of `tpr_gap`, 2,000 simulated tables per cell, half of their rows positive.",
            "Every column shows how often the interval contains the true gap, and its mean width divided by that of an oracle that knows",
            "the distribution of the estimate. *Chosen* is the best of 25 rays that keeps a bound on validation rows, once with the cell's true gap at",
            "every ray, once with a gap that falls from twice that value to 0 along the front. [The method](decisions/intervals.md).",
            "",
            *intervals_table(),
            "",
            *intervals_note(),
            "",
            "## scikit-learn",
            "",
            *estimators_table(),
            "",
            "## One file for production",
            "",
            *onnx_table(),
            "",
            "## A server",
            "",
            *serving_table(),
            "",
            "## The explorer",
            "",
            *explorer_table(),
            "",
            "## Faces and a deep network",
            "",
            *steps_table(),
            "",
            *faces_short(),
            "",
            *celeba_table(),
            "",
            *loader_note(),
            "",
            *processes_note(),
            "",
            "## On a GPU",
            "",
            *gpu_table(),
            "",
            *gpu_note(),
            "",
            "### The kernels",
            "",
            *kernels_table(),
            "",
            "## Speed on a CPU",
            "",
            *speed_table(),
            "",
            *speed_note(),
            "",
            *cpu_images(),
            "",
            f"A step with ten objectives takes {load('bench_images.json')['objectives']['ratio']:.2f} times as long as with two.",
            "",
            shell_note(),
            "",
            "## Bit for bit",
            "",
            "Fronts and weights compared byte by byte, with `--deterministic` (`benchmarks/reproducible.py`):",
            "",
            *repeats(),
            "",
            "## Which penalty",
            "",
            *penalty_table(),
            "",
        ]
    )


def gpu_table() -> Iterator[str]:
    """Every engine."""
    gpu = load("gpu.json")
    yield "| Multi-MNIST, batch 256 | step | 100 epochs at that pace | samples/s | preparing | 25 rays on 12,000 images | peak memory |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in {"textbook": gpu["textbook"], **gpu["engines"]}.items():
        preparing = f"{row['preparing']:.1f} s" if "preparing" in row else ""
        yield (
            f"| {name} | {row['step'] * 1e6:,.0f} us | {row['hundred_epochs']:.1f} s "
            f"| {row['samples_per_second']:,.0f} | {preparing} | {row['evaluation'] * 1e3:,.0f} ms "
            f"| {row['peak_memory'] / 1e6:.0f} MB |"
        )


def gpu_note() -> Iterator[str]:
    """The roofline, memory, and the number of objectives."""
    gpu = load("gpu.json")
    roof, plain, captured = gpu["roofline"], gpu["plain"], gpu["engines"]["captured"]
    rates = roof["operations_per_second"]
    yield (
        f"`python -m benchmarks.gpu`, {gpu['machine']['device']}, torch {gpu['versions']['torch']}. A step has "
        f"{roof['operations_per_step'] / 1e9:.2f} GFLOP and {roof['bytes_per_step'] / 1e6:.1f} MB. This card was measured to multiply "
        f"at {rates['fp32'] / 1e12:.0f} TFLOP/s in fp32 and {rates['tf32'] / 1e12:.0f} in tf32 and to copy at "
        f"{roof['bytes_per_second'] / 1e12:.1f} TB/s, so no step can take less than {roof['floor_fp32'] * 1e6:.0f} us in fp32 or "
        f"{roof['floor_tf32'] * 1e6:.0f} us in tf32. The captured step takes {captured['step'] / roof['floor_fp32']:.0f} times the fp32 limit, "
        "because it consists of many small kernels, each waiting for the one before."
    )
    yield ""
    two, ten = (gpu["objectives"][count]["step"] for count in ("2", "10"))
    yield (
        f"A step with ten objectives takes {ten / two:.2f} times as long as with two. The peak memory of training is {captured['peak_memory'] / 1e6:.0f} MB, "
        f"{captured['peak_memory'] / plain['peak_memory']:.2f} times that of a plain PyTorch loop of the same LeNet without rays "
        f"({plain['peak_memory'] / 1e6:.0f} MB), including the images, without the workspaces of cuBLAS and cuDNN."
    )


def kernels_table() -> Iterator[str]:
    """Fused against library kernels."""
    measured = load("kernels.json")
    yield "| batch 256 | fused | library |"
    yield "|---|---|---|"
    whole = {(row["how"], row["what"], row["seeds"]): row["us"] for row in measured["whole"]}
    for (how, what, seeds), us in whole.items():
        if how == "fused":
            label = f"both blocks of the LeNet, {what}, {seeds} seed{'s' * (seeds > 1)}"
            yield f"| {label} | {us:.0f} us | {whole['library', what, seeds]:.0f} us |"
    times = measured["rays"]["us"]
    for key, us in times["fused forward and backward"].items():
        seeds, objectives = re.findall(r"(\d+) seed.*J (\d+)", key)[0]
        label = f"the ray's maps and term, {objectives} objectives, forward and backward, {seeds} seed{'s' * (seeds != '1')}"
        yield f"| {label} | {us:.0f} us | {times['library forward and backward'][key]:.0f} us |"


def cosmos_cells() -> list[Any]:
    """What five seeds of COSMOS reached on the fairness sets."""
    return [cell for cell in load("baselines.json")["cells"] if cell["method"] == "cosmos"]


def whole_split() -> str:
    """What scoring alone changes."""
    cells = [c for c in cosmos_cells() if c["protocol"] == "paper"]
    changes = (
        f"{c['hypervolume_whole_split']:.3f} instead of {c['hypervolume']['mean']:.3f} on {c['problem']}"
        for c in cells
        if c["problem"] != "compas"
    )
    return "the same models scored over whole splits reach " + ", ".join(changes)


def repeats() -> Iterator[str]:
    """Which bits repeat where."""
    yield "| seed 1 | engine | same again | eager engine | interrupted and resumed | evaluated again |"
    yield "|---|---|---|---|---|---|"
    for name in ("reproducible_cpu", "reproducible_h200"):
        found = load(f"{name}.json")
        for problem, row in found["problems"].items():
            cells = (
                "identical" if row["identical"][key] else "differs"
                for key in ("again", "eager", "resumed", "evaluated")
            )
            where = f"{found['machine']['device']}, torch {found['versions']['torch']}"
            yield f"| `{problem}`, {where} | {row['engine']} | {' | '.join(cells)} |"


def seeds_table() -> Iterator[str]:
    """Every seed."""
    yield "| problem | protocol | seed | HV | span | dominated | monotonicity | epoch | parameters |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for cell in cosmos_cells():
        for run in cell["runs"]:
            yield (
                f"| {cell['problem']} | {cell['protocol']} | {run['seed']} | {run['hypervolume']:.4f} "
                f"| {run['span']:.3f} | {run['dominated_share']:.0%} | {run['monotonicity']:.2f} "
                f"| {run['epoch_selected']} | {cell['parameters']:,} |"
            )


def cpu_images() -> Iterator[str]:
    """The LeNet on a CPU."""
    measured = load("bench_images.json")
    seconds, ratio = measured["seconds"], measured["ratio"]
    yield "| LeNet, batch 256 | textbook | paretocosmos | times faster |"
    yield "|---|---|---|---|"
    for label, key, name in (
        ("one training step", "step", "step"),
        ("a front of 25 rays, 512 images", "sweep", "evaluation"),
    ):
        theirs, ours = seconds[f"{key}_textbook"] * 1e3, seconds[f"{key}_ours"] * 1e3
        yield f"| {label} | {theirs:,.1f} ms | {ours:,.1f} ms | {ratio[name]:.1f} |"


def speed_note() -> Iterator[str]:
    """Where the ratios come from."""
    measured = load("bench_tabular.json")
    one = measured["seconds"]["step_textbook_one_thread"] / measured["seconds"]["step_ours"]
    reached = measured["hypervolume"]
    yield (
        f"Medians of {measured['rounds']} rounds in one process, torch {measured['versions']['torch']}, "
        f"{measured['machine']['threads']} threads. On one thread, which suits steps this"
    )
    yield (
        f"small, the textbook step takes {one:.1f} times as long as ours. Test hypervolume after the trainings above: "
        f"{reached['textbook']:.3f} textbook, {reached['ours']:.3f} ours."
    )


def shell_note() -> str:
    """How long a user waits at the shell."""
    shell = load("shell.json")
    rows, columns = shell["csv_shape"]
    return (
        f"`import paretocosmos` adds {shell['import_seconds']:.2f} s to `import torch`; a CSV of {rows:,} rows and "
        f"{columns} columns becomes a front and its report in {shell['csv_seconds']:.1f} s. In a terminal, `train adult` shows a first sign of life after "
        f"{shell['terminal']['seconds_to_first_sign']:.2f} s and never pauses for more than {shell['terminal']['longest_pause']:.1f} s "
        "(`benchmarks/shell.py`)."
    )


def penalty_table() -> Iterator[str]:
    """The sweep of penalties."""
    sweep = load("penalty.json")
    yield (
        f"Cross-entropy against the true-positive-rate gap, alpha {sweep['alpha']}, {sweep['epochs']} epochs, "
        f"mean of {len(sweep['seeds'])} seeds, on the *validation* fronts:"
    )
    yield ""
    yield "| problem | penalty | HV | span | dominated | monotonicity |"
    yield "|---|---|---|---|---|---|"
    for cell in sweep["cells"]:
        yield (
            f"| {cell['problem']} | {cell['penalty']:g} | {cell['hypervolume']:.3f} | {cell['span']:.3f} "
            f"| {cell['dominated_share']:.0%} | {cell['monotonicity']:.2f} |"
        )
    below = [c["monotonicity"] for c in sweep["cells"] if c["penalty"] <= 0.3]
    above = [c["monotonicity"] for c in sweep["cells"] if c["penalty"] >= 1]
    yield ""
    yield (
        f"Up to a penalty of 0.3, more weight tends to lower an objective (mean monotonicity {statistics.mean(below):.2f}); "
        f"from 1 on it does not ({statistics.mean(above):.2f}): the cosine"
    )
    yield "takes over. The hypervolume differs little, so the penalty decides what a preference means and how wide the front is."


def cli() -> str:
    """docs/cli.md: what `--help` says."""
    parts = ["# Command line", "", "Written by `make docs` from `--help`.", ""]
    for name in ("", *get_command(app).commands):  # type: ignore[attr-defined]
        arguments = [name, "--help"] if name else ["--help"]
        shown = CliRunner().invoke(app, arguments, prog_name="paretocosmos", terminal_width=100)
        title = f"paretocosmos {name}".strip()
        lines = "\n".join(line.rstrip() for line in shown.output.strip().splitlines())
        parts += [f"## {title}", "", fence(lines), ""]
    return "\n".join(parts)


def load(name: str) -> Any:
    """A JSON file of results/."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def fence(text: str, language: str = "text") -> str:
    """A fenced block."""
    return f"```{language}\n{text}\n```"


if __name__ == "__main__":
    main()
