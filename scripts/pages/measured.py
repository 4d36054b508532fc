"""Written parts of the results on speed and applications."""

from collections.abc import Iterator
from statistics import fmean, median
from typing import Any

import numpy as np

from pages.common import describe_device, describe_source, load_result, write_table

__all__ = ["REGIONS", "compare_codecs", "describe_conditioning_cost", "list_speedups"]

CAPTURED = "captured, 32, tf32, nchw, group"


def list_speedups() -> dict[str, tuple[float, float]]:
    """Return the seconds of a textbook loop and ours, on a CPU, by what was timed."""
    table, images = load_result("bench_tabular"), load_result("bench_images")
    times = {
        "a step on Adult": (table, "step"),
        f"{table['epochs']} epochs on Adult": (table, "training"),
        "25 preferences on Adult": (table, "sweep"),
        "a step of a LeNet": (images, "step"),
        "25 preferences, 512 images": (images, "sweep"),
    }
    return {
        title: (found["seconds"][f"{key}_textbook"], found["seconds"][f"{key}_ours"])
        for title, (found, key) in times.items()
    }


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def write_cpu_speed() -> Iterator[str]:
    """Yield times beside the textbook loop's on a CPU, and how long a user waits."""
    yield from write_table(
        ["on a CPU", "textbook", "paretocosmos", "times as fast"],
        (
            [title, _format_seconds(theirs), _format_seconds(ours), f"{theirs / ours:.1f}"]
            for title, (theirs, ours) in list_speedups().items()
        ),
    )
    shell, reached = load_result("shell"), load_result("bench_tabular")["hypervolume"]
    rows, columns = shell["csv_shape"]
    yield ""
    yield (
        f"Both reach the same front (hypervolume {reached['textbook']:.3f} and {reached['ours']:.3f}). A step with ten objectives takes "
        f"{load_result('bench_images')['objectives']['ratio']:.2f} times as long as with two. `import paretocosmos` adds {shell['import_seconds']:.2f} s to `import torch`, and a CSV of "
        f"{rows:,} rows and {columns} columns becomes a front and its page in {shell['csv_seconds']:.1f} s."
    )
    yield from ("", describe_source("bench_tabular", "Medians of 7 rounds in one process"))


def write_gpu_speed() -> Iterator[str]:
    """Yield times of each engine on a GPU, and the cost of conditioning a deep network."""
    gpu, deep = load_result("gpu"), load_result("efficientnet")
    yield from write_table(
        ["Multi-MNIST, batch 256", "a step", "100 epochs", "peak memory"],
        (
            [name, f"{1e6 * row['step']:,.0f} µs", f"{row['hundred_epochs']:.0f} s", f"{row['peak_memory'] / 1e6:.0f} MB"]
            for name, row in {"textbook": gpu["textbook"], **gpu["engines"]}.items()
        ),
    )  # fmt: skip
    (ten,) = (r["cosmos, 10 / single task"] for r in deep["ratios"] if r["kind"] == CAPTURED)
    whole = {(r["how"], r["what"], r["seeds"]): r["us"] for r in load_result("kernels")["whole"]}
    gains = [
        us / whole["fused", what, seeds]
        for (how, what, seeds), us in whole.items()
        if how == "library"
    ]
    ways = [load_result(f"reproducible_{where}") for where in ("cpu", "h200")]
    bits = [
        bit for way in ways for row in way["problems"].values() for bit in row["identical"].values()
    ]
    yield ""
    yield (
        f"{describe_conditioning_cost()} Ten tasks take {ten:.3f} times as long on that GPU "
        f"(the paper: 1.07). The fused kernels of the LeNet are {min(gains):.1f} to {max(gains):.1f} times as fast as torch's. "
        f"With `--deterministic`, {sum(bits)} of {len(bits)} comparisons of fronts and weights (trained again, by another engine, resumed after an interruption, evaluated again; "
        "on a CPU and on the GPU) are identical, bit for bit."
    )
    yield from ("", describe_source("gpu"))


def describe_conditioning_cost(*, link: bool = True) -> str:
    """Say what a step costs under one ray, in steps of the plain network."""
    (published,) = (
        row["cosmos, 2 / single task"]
        for row in load_result("efficientnet")["ratios"]
        if row["kind"] == CAPTURED
    )
    ratios = {
        (row["network"], row["kind"]): row["ratio"] for row in load_result("conditioning")["rows"]
    }
    deep, words = (ratios[network, "default, 1"] for network in ("ResNet-18", "transformer"))
    source = f" ({_link('conditioning')})" if link else ""
    return (
        f"A step of COSMOS as published takes {published:.3f} times as long as one for a single task (EfficientNet-B4 on a GPU; ResNet-18 on a CPU: {ratios['ResNet-18', 'paper, 1']:.2f}); "
        f"the default, which moves every weight with the ray, takes {deep:.2f} times as long on a ResNet-18 and {words:.2f} times on a small transformer, on a CPU{source}."
    )


def write_use_speed() -> Iterator[str]:
    """Yield what it costs to fit an estimator, serve, export and open a page."""
    estimators, serving = load_result("estimators"), load_result("serving")["rows"]
    (alone, *_, many) = load_result("onnx")["adult"]["timings"]
    explorer = load_result("explorer")
    page, adult = explorer["objectives"]["2"], explorer["adult"]
    fit, together, killed = (
        estimators["fits"]["groups"],
        serving["batching"],
        serving["killed and restarted"]["seen"],
    )
    yield from write_table(
        ["what", "costs", "measured"],
        [
            [f"fit a `ParetoClassifier` on {estimators['rows']:,} rows of {estimators['features']} numbers", f"{fit['seconds']:.1f} s, {fit['memory_times_data']:.1f} times the data's memory", _link("estimators")],
            ["a prediction over HTTP, 32 clients", f"{together['per_second']:,.0f} a second, 99 % within {together['p99_ms']:.0f} ms; {together['seen']['wrong'] + killed['wrong']} wrong answers, also when killed and restarted", _link("serving")],
            ["an exported model: one row / 10,000 rows", f"{alone['onnxruntime_ms']:.2f} / {many['onnxruntime_ms']:.1f} ms with onnxruntime, {alone['torch_ms']:.2f} / {many['torch_ms']:.1f} ms with PyTorch", _link("onnx")],
            ["the page of Adult, which computes", f"{adult['bytes'] / 1e6:.1f} MB, first paint after {adult['first_paint_seconds']:.1f} s, {adult['preference_frames_per_second']:.0f} frames a second while dragging; a case {adult['case_ms']:.1f} ms, {adult['csv_rows']:,} rows of a CSV {adult['csv_seconds']:.1f} s", _link("explorer")],
            ["the page, 1,001 preferences of 5 runs", f"{page['bytes'] / 1e6:.1f} MB, {page['preference_frames_per_second']:.0f} frames a second while dragging", _link("explorer")],
        ],
    )  # fmt: skip
    sizes = load_result("processes")["sizes"]
    stream = load_result("loader")["training"]["256"]["streamed"]
    yield ""
    yield (
        f"Data that does not fit on the GPU is streamed: at batch 256 a LeNet takes {stream['images_per_second']:,.0f} pictures a second and waits {stream['share_waiting']:.0%} of its time "
        f"({_link('loader')}). A second process makes a LeNet on a CPU {sizes['256']['throughput_of_two']:.2f} times as fast at batch 256 and "
        f"{sizes['2048']['throughput_of_two']:.2f} times at batch 2,048 ({_link('processes')})."
    )


def write_growth() -> Iterator[str]:
    """Yield how time and memory grow with rows, columns, objectives and rays."""
    growth = load_result("growth")
    yield from write_table(
        ["task", "n", "processor time", "power of n", "memory", "power of n"],
        (_describe_growth(title, **task) for title, task in growth["tasks"].items()),
    )
    yield ""
    yield (
        f"Tables of {growth['rows']:,} rows and {growth['columns']} columns, except for what grows; each in a process of one thread, on a shared machine. Powers are fitted to the larger half of the sizes. Memory "
        "does not count mapped files."
    )
    yield from ("", describe_source("growth"))


def _describe_growth(title: str, sizes: dict[str, Any], exponents: dict[str, float]) -> list[str]:
    task, axis = title.split(" by ")
    least, most = min(sizes, key=int), max(sizes, key=int)
    first, last = sizes[least], sizes[most]
    return [
        f"`{task}`",
        f"{int(least):,} to {int(most):,} {axis}",
        f"{_format_seconds(first['seconds'])} to {_format_seconds(last['seconds'])}",
        f"{exponents['seconds']:.2f}",
        f"{first['mebibytes']:,.0f} to {last['mebibytes']:,.0f} MiB",
        f"{exponents['mebibytes']:.2f}",
    ]


def write_many_rows() -> Iterator[str]:
    """Yield what 100 million rows would take, from the rate of ten million."""
    growth = load_result("growth")
    measured = growth["tasks"]["predict by rows"]["sizes"]["10000000"]
    rate = 1e7 / measured["seconds"]
    yield (
        f"**100 million rows.** `predict` reads, predicts and writes {rate:,.0f} rows of {growth['columns']} columns a second on one core, from Parquet to Parquet, in {measured['mebibytes']:.0f} MiB "
        f"beside what Python and torch take. At that rate 100 million rows take {1e8 / rate / 60:.1f} minutes on one core, and {1e8 / rate / 60 / 16:.1f} on 16 cores that a cluster has free, if the disks keep up: a plan, not a measurement."
    )
    yield from ("", describe_source("growth"))


def _link(name: str) -> str:
    found = load_result(name)
    made = (
        f"{found['written'][:10]}, version {found['version']}, {describe_device(found['machine'])}"
    )
    return f"[{made}](../../results/{name}.json)"


def write_quantiles() -> Iterator[str]:
    """Yield one network for all quantiles beside one for each of nine levels."""
    found = load_result("quantiles")
    one, nine = found["mean"]["one"], found["mean"]["separate"]
    rows = (
        ("pinball loss, relative to the truth", "pinball", 1, "{:.4f}"),
        ("distance from the true quantile, minutes", "minutes", 1, "{:.2f}"),
        ("coverage asked for and measured differ by, points", "coverage", 100, "{:.2f}"),
        ("training time, relative", "seconds", 1 / one["seconds"], "{:.1f}"),
    )
    yield from write_table(
        ["mean over nine levels", "one network", "nine networks"],
        ([title, *(form.format(scale * part[key]) for part in (one, nine))] for title, key, scale, form in rows),
    )  # fmt: skip
    yield from ("", describe_source("quantiles", f"{len(found['seeds'])} seeds"))


def write_robustness() -> Iterator[str]:
    """Yield one network beside one for each of five weights on attacks."""
    found = load_result("robustness")
    mean = found["mean"]

    def list_accuracies(name: str) -> list[str]:
        values = np.mean([cell[name]["values"] for cell in found["cells"]], axis=0)
        return [f"{plain:.1f} / {attacked:.1f}" for plain, attacked in 100 * (1 - values)]

    yield from write_table(
        ["correct, plain / attacked, %", *(f"weight {weight:g} on attacks" for weight in found["weights"])],
        (
            [title, *list_accuracies(name)]
            for title, name in (("one network", "one"), ("five networks", "separate"))
        ),
    )  # fmt: skip
    yield ""
    yield (
        f"The one network has {mean['hypervolume']:.3f} times the hypervolume of the five, covers {mean['range']:.0%} of their range and takes "
        f"{mean['seconds'] / mean['seconds_separate']:.2f} of their training time."
    )
    yield from ("", describe_source("robustness", f"{len(found['seeds'])} seeds"))


def compare_codecs(found: Any) -> dict[str, float]:
    """Compare one codec with nine networks: bits at equal quality, weighted losses, and time."""
    rays = np.asarray(found["rays"])
    losses = {}
    for name in ("one", "separate"):
        bits, psnr = np.moveaxis(np.array([run[name] for run in found["runs"]]), -1, 0)
        losses[name] = (rays[:, 0] * bits + rays[:, 1] * 10 ** (-psnr / 10) / found["unit"]).mean(0)
    ratio = losses["one"] / losses["separate"] - 1
    one, nine = (sum(run["cpu_seconds"][name] for run in found["runs"]) for name in losses)
    shares = [run["bd_rate"] for run in found["runs"]]
    return {
        "least": min(shares),
        "most": max(shares),
        "ahead": int((ratio < 0).sum()),
        "behind": float(ratio.max()),
        "times": nine / one,
    }


def describe_codecs(found: Any) -> str:
    """Say what `compare_codecs` found."""
    numbers = compare_codecs(found)
    return (
        f"At equal PSNR the one network needs {numbers['least']:+.1%} to {numbers['most']:+.1%} bits, depending on the seed, compared with nine networks of "
        f"{found['steps']} steps each; its weighted loss is lower at {numbers['ahead']} of {len(found['rays'])} preferences and at most {numbers['behind']:.1%} higher at the others. "
        f"Training the nine takes {numbers['times']:.1f} times as long."
    ).replace(" -", " −")


def write_codecs() -> Iterator[str]:
    """Yield one codec beside nine."""
    found = load_result("rate_distortion")
    yield from (describe_codecs(found), "")
    yield describe_source("rate_distortion", f"{len(found['runs'])} seeds")


def write_faces() -> Iterator[str]:
    """Yield errors on a part of CelebA, beside a network for each task and a constant."""
    cells = load_result("celeba")["cells"]
    titles = {"cosmos": "COSMOS", "single_task": "a network each", "linear": "the default of 0.2"}
    rows = []
    for cell in cells:
        constants = fmean(one["misclassification"] for one in cell["tasks"]["constant"].values())
        mean = cell["tasks"]["mean"]
        penalty = cell["method_settings"].get("penalty")
        name = titles[cell["method"]] + (f", λ {penalty:g}" if cell["method"] == "cosmos" else "")
        rays = f"{cell['training']['rays_per_batch']} ray{'s' * (cell['training']['rays_per_batch'] > 1)}"
        rows.append(
            [f"`{cell['problem']}`", f"{name}, {rays} a batch", cell["training"]["epochs"], f"{mean['misclassification']:.1%} ({constants:.1%})", f"{mean['roc_auc']:.3f}"]
        )  # fmt: skip
    yield from write_table(
        ["attributes", "trained", "epochs", "wrong (a constant)", "ROC-AUC"], rows
    )
    yield from ("", describe_source("celeba", "One seed, means over the attributes"))


ADAPTED = {
    "separate": ("a LoRA for each preference", "5 x 300"),
    "lora, longer": ("LoRA mixed by the preference", "1500"),
    "lora, thrice": ("the same", "900"),
    "lora, twice": ("the same", "600"),
    "lora": ("the same", "300"),
    "film": ("FiLM on the frozen network", "300"),
    "soup": ("rewarded soups of the two ends", "2 x 300"),
}


def write_language() -> Iterator[str]:
    """Yield ways to adapt one language model to any mixture of two corpora."""
    found = load_result("language")
    rows = []
    for way, (title, steps) in ADAPTED.items():
        mean = found["mean"][way]
        rows.append(
            [title, steps, f"{mean['of_separate']:.3f}", f"{mean['monotonicity']:.2f}", f"{mean['dominated_share']:.0%}", f"{mean['range_covered']:.0%}"]
        )  # fmt: skip
    head = ["", "steps", "hypervolume, separate = 1", "order", "dominated", "range covered"]
    yield from write_table(head, rows)
    ratio = found["step_time"]["small"]["ratio, ours, four rays"]
    shares = [f"{found['parameters'][f'gpt2, {how}']['share']:.2%}" for how in ("lora", "film", "token")]  # fmt: skip
    yield ""
    yield (
        f"A step takes {ratio:.2f} times as long as one of ordinary LoRA of the same size. To the parameters of GPT-2, LoRA adds {shares[0]}, "
        f"FiLM {shares[1]} and four tokens {shares[2]}."
    )
    yield from ("", describe_source("language", "Three seeds"))


def write_pictures() -> Iterator[str]:
    """Yield how fast pictures are read, alone and in training."""
    (row,), short = load_result("pictures")["rows"], load_result("pictures_short")["rows"]
    alone, trained = (median(row[name]) for name in ("alone", "trained"))
    yield (
        f"Over {row['pictures']:,} JPEG files of 64 x 64 pixels, a `DataLoader` alone reads {alone:,.0f} pictures a second and a training {trained:,.0f}. "
        f"In a training of a few seconds, start-up counts too: {min(one['ratio'] for one in short):.1f} of that pace."
    )
    yield from ("", describe_source("pictures", "One worker"))


def write_streaming() -> Iterator[str]:
    """Yield the memory of fronts whose outputs would not fit."""
    found = load_result("streaming")
    most = max(part["gb_peak"] for way in found["ways"].values() for part in way.values())
    yield (
        f"A front of a small GPT-2 has {found['gb_of_all_outputs']['10000']:.0f} GB of outputs over 10,000 sequences; the whole process takes at most {most:.2f} GB."
    )
    yield from ("", describe_source("streaming"))


def write_families() -> Iterator[str]:
    """Yield how many families of timm are conditioned."""
    counts = load_result("families")["counts"]
    tried = sum(counts[name] for name in ("right", "refused", "wrong"))
    yield (
        f"Of one network of each family in [timm](https://github.com/huggingface/pytorch-image-models), {counts['right']} of {tried} are conditioned without settings, start with the same outputs "
        f"and give each sample its ray; {counts['refused']} are refused with a sentence that names the block, and {counts['wrong']} are wrong."
    )
    yield from ("", describe_source("families"))


def write_own_networks() -> Iterator[str]:
    """Yield what part of an exact front `fit` reaches with networks of the caller's own."""
    result = load_result("own_networks")
    networks, near, far = (result[name] for name in ("networks", "near", "far"))
    reached = [n for n in networks.values() if n["from"] <= near and n["to"] >= far]
    above = max(n["above"] for n in networks.values())
    yield (
        f"With `fit` and nothing set, {len(reached)} of {len(networks)} networks that it was not written for, from a linear layer to a vision transformer, cover a known front from t ≤ {near} to t ≥ {far}: "
        "(t² D, (1 - t)² D) with t from 0 to 1, two squared errors to targets whose squared distance is D. "
        f"No point is more than {above:.3f} D above that front."
    )
    yield from ("", describe_source("own_networks"))


def write_extending() -> Iterator[str]:
    """Yield what a step costs with code of one's own, beside the same code in the package."""
    steps = load_result("extending")["steps"]
    listed = ", ".join(
        f"{part} {ways['declared']['ratio']:.2f} times as long ({ways['silent']['ratio']:.1f} without the declaration)"
        for part, ways in steps.items()
    )
    yield f"Beside the same code in the package, a step with your own takes: {listed}."
    yield from ("", describe_source("extending"))


REGIONS = {
    "extending": write_extending,
    "pictures": write_pictures,
    "streaming": write_streaming,
    "families": write_families,
    "own_networks": write_own_networks,
    "language": write_language,
    "cpu_speed": write_cpu_speed,
    "gpu_speed": write_gpu_speed,
    "use_speed": write_use_speed,
    "growth": write_growth,
    "many_rows": write_many_rows,
    "quantiles": write_quantiles,
    "robustness": write_robustness,
    "codecs": write_codecs,
    "faces": write_faces,
}
