"""`python -m benchmarks.language --out FILE`: one language model between code and prose.

A small decoder is trained on Python's standard library, its source code and its docstrings, and
frozen. Then it is adapted to two kinds of text that it has not read, torch's C++ headers and
Python's manual, in four ways: LoRA mixed by the ray (ours), for as many steps as one, two, three
and five separate adapters; FiLM; a separate textbook LoRA for each of five weights of the two
corpora; and rewarded soups, which mix the weights of the two end adapters. All have the same
learning rate, chosen on the validation files, and see windows drawn from the same files. Judged on
held-out files, once.

Times are processor seconds of one thread, taken in turns, since a machine may be shared.
`--picture FILE` draws the fronts of the first seed. The base takes 20 minutes on a core and is kept
with `--base FILE`; a seed takes nine.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from benchmarks import _adapted as ways
from benchmarks._corpora import NAMES, corpora, even_windows, foreign
from paretocosmos import condition, even_rays, hypervolume
from paretocosmos.io.palette import DARK, LIGHT, RUNS
from paretocosmos.nn.conditioning import Conditioning
from paretocosmos.pareto import Front
from paretocosmos.pareto.metrics import front_report
from paretocosmos.runs.provenance import get_provenance

PRETRAINED = 4000
LONGER = {"lora, twice": 2, "lora, thrice": 3, "lora, longer": 5}
ARMS = ("lora", *LONGER, "film", "soup")
RATE, ADAPTER_RATE = 3e-3, 6e-3
RAYS = torch.tensor([[1.0, 0.0], [0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.0, 1.0]])
MANY = 9
WINDOWS = 384
REFERENCE = (3.0, 3.0)
PROMPT = "\n\n"


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=300, help="of each separate adapter")
    parser.add_argument("--arms", default=";".join(ARMS), help="beside the separate adapters")
    parser.add_argument("--base", type=Path, help="keep the trained base here, or read it")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    parser.add_argument("--picture", type=Path, help="draw the fronts of the first seed here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    read, of_base = corpora()
    base = ways.decoder()
    trained = arguments.base is not None and arguments.base.is_file()
    if trained:
        load_model(base, arguments.base)
    else:
        ways.pretrain(base, read["train"], steps=PRETRAINED, rate=RATE)
        if arguments.base is not None:
            save_model(base, str(arguments.base))
    base.eval()
    data, about = foreign()
    texts = {name: even_windows(data["test"][name], WINDOWS, ways.LENGTH) for name in NAMES}
    content: dict[str, Any] = {
        "corpora": about,
        "corpora_of_base": of_base,
        "base": _perplexities(ways.evaluated(base, texts, RAYS[2]))
        | {"steps": PRETRAINED, "parameters": _count(base)},
        "settings": {
            "steps": arguments.steps,
            **{f"steps, {name}": times * arguments.steps for name, times in LONGER.items()},
            "rate": ADAPTER_RATE,
            "rank": ways.RANK,
            "scale": ways.SCALE,
            "positions": ways.LENGTH,
            "windows_per_step": 2 * ways.SHARE,
            "rays_per_step": ways.GROUPS,
        },
        "parameters": parameters(base),
        "step_time": {"small": step_times(base, data["train"], 30), "wide": wide_step_times()},
        "seeds": [],
    }
    print(
        json.dumps({key: content[key] for key in ("base", "parameters", "step_time")}), flush=True
    )
    for seed in map(int, arguments.seeds.split(",")):
        steps, arms = arguments.steps, arguments.arms.split(";")
        found = studied(base, data["train"], texts, seed=seed, steps=steps, arms=arms)
        content["seeds"].append(found)
        print(json.dumps({"seed": seed, **found["measures"]}), flush=True)
        if arguments.picture is not None and len(content["seeds"]) == 1:
            draw(arguments.picture, found)
        if arguments.out is not None:
            content["mean"] = _means(content["seeds"])
            whole = content | {"transformers": transformers.__version__}
            text = json.dumps(whole | get_provenance(torch.device("cpu")), indent=1)
            arguments.out.write_text(text + "\n")


def studied(
    base: nn.Module,
    data: ways.Data,
    texts: dict[str, Tensor],
    *,
    seed: int,
    steps: int,
    arms: Sequence[str],
) -> dict[str, Any]:
    """Every way of adapting, with one seed."""
    torch.manual_seed(seed)
    seconds: dict[str, float] = {}

    def trained(name: str, model: nn.Module, ray: Tensor | None, times: int = 1) -> nn.Module:
        took = ways.train(model, data, ray, steps=times * steps, rate=ADAPTER_RATE, seed=seed)
        seconds[name] = seconds.get(name, 0.0) + took
        return model

    separate = [trained("separate", ways.plain_lora(base, 2 * ways.RANK), ray) for ray in RAYS]
    made: dict[str, Callable[[], Any]] = {
        "lora": lambda: trained("lora", ways.lora(base), None),
        "film": lambda: trained("film", ways.film(base), None),
        "soup": lambda: ways.soup(base, [separate[0], separate[-1]]).eval(),
    }

    def model_of(name: str) -> Any:
        if name in LONGER:
            return trained(name, ways.lora(base), None, LONGER[name])
        return made[name]()

    models = {name: model_of(name) for name in arms}
    points = [ways.evaluated(one, texts, ray) for one, ray in zip(separate, RAYS, strict=True)]
    fronts = {"separate": _front(RAYS, points)}
    many = even_rays(MANY, 2, ends=True)
    measures: dict[str, Any] = {"separate": _measured(fronts["separate"], fronts["separate"])}
    for name, model in models.items():
        few = _front(RAYS, [ways.evaluated(model, texts, ray) for ray in RAYS])
        fronts[name] = _front(many, [ways.evaluated(model, texts, ray) for ray in many])
        measures[name] = _measured(few, fronts["separate"])
        measures[name]["at_nine_rays"] = _measured(fronts[name], fronts["separate"])
    return {
        "seed": seed,
        "measures": measures,
        "fronts": {
            name: {"rays": front.rays.tolist(), "perplexity": np.exp(front.values).tolist()}
            for name, front in fronts.items()
        },
        "seconds": seconds,
        "generated": generated(models.get("lora, longer", models["lora"]), seed),
    }


def _front(rays: Tensor, values: list[list[float]]) -> Front:
    return Front(rays.double().numpy(), np.array(values), NAMES, np.array(REFERENCE))


def _measured(front: Front, separate: Front) -> dict[str, float | None]:
    """The measures that are reported, in nats per byte."""
    numbers = front_report(front, separate).to_dict()["numbers"]
    kept = ("monotonicity", "dominated_share", "range_covered", "expected_utility")
    inside = "hypervolume_in_separate_box"
    whole = front_report(separate, separate).to_dict()["numbers"][inside]
    # The ends of separate adapters lie on the edge of their own box and count for nothing in it,
    # so a box that is a tenth larger is reported too.
    low, high = separate.values.min(axis=0), separate.values.max(axis=0)
    corner = high + 0.1 * (high - low)
    wider = [hypervolume(one.values, corner) for one in (front, separate)]
    return {name: numbers[name] for name in kept} | {
        inside: numbers[inside],
        "of_separate": numbers[inside] / whole,
        "of_separate_in_a_wider_box": wider[0] / wider[1],
    }


def generated(model: Conditioning, seed: int) -> dict[str, str]:
    """What the model writes at three preferences."""
    said = {}
    prompt = torch.tensor([list(PROMPT.encode())])
    for ray in RAYS[[0, 2, 4]]:
        torch.manual_seed(seed)
        one: Any = model.at(ray)
        ids = one.generate(
            prompt, max_new_tokens=ways.BASE_LENGTH - len(PROMPT), do_sample=True, temperature=0.7
        )
        text = bytes(ids[0, len(PROMPT) :].tolist()).decode(errors="replace")
        said[", ".join(f"{w:g} {n}" for w, n in zip(ray.tolist(), NAMES, strict=True))] = text
    return said


def parameters(base: nn.Module) -> dict[str, Any]:
    """How many parameters the ray costs, here and in a GPT-2 of usual size."""
    with torch.device("meta"):
        usual = ways.gpt2()
    found = {}
    for name, network in {"small": base, "gpt2": usual}.items():
        own = _count(network)
        for how, settings in {"lora": {}, "film": {"rank": 0}, "token": {}}.items():
            more = _count(condition(network, 2, how=how, settings=settings)) - own
            found[f"{name}, {how}"] = {"own": own, "added": more, "share": more / own}
    return found


def _count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def step_times(base: nn.Module, data: ways.Data, rounds: int) -> dict[str, float]:
    """Processor seconds of a step, in turns, and their ratios to textbook LoRA of equal size."""
    generator = torch.Generator().manual_seed(0)
    one, four = RAYS[2:3], RAYS[1:2].expand(4, -1)
    ids = ways.batch(data, generator, 4)
    ours = ways.lora(base)
    arms = {
        "textbook": (ways.plain_lora(base, 2 * ways.RANK), one),
        "ours, one ray": (ours, one),
        "ours, four rays": (ours, four),
    }
    steps: dict[str, tuple[nn.Module, Tensor, Any, list[float]]] = {}
    for name, (model, rays) in arms.items():
        own = [p for p in model.parameters() if p.requires_grad]
        steps[name] = (model.train(), rays, torch.optim.AdamW(own, lr=1e-4), [])
    for _ in range(rounds + 3):
        for model, rays, optimizer, seconds in steps.values():
            begun = time.process_time()
            loss = ways.step(model, ids, rays)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seconds.append(time.process_time() - begun)
    found = {name: median(seconds[3:]) for name, (*_, seconds) in steps.items()}
    plain = steps["textbook"][3][3:]
    ratios = {
        f"ratio, {name}": median(a / b for a, b in zip(steps[name][3][3:], plain, strict=True))
        for name in list(arms)[1:]
    }
    return {f"seconds, {name}": value for name, value in found.items()} | ratios


def wide_step_times() -> dict[str, float]:
    """The same for two layers as wide as those of GPT-2."""
    torch.manual_seed(0)
    base = ways.gpt2(n_embd=768, n_layer=2, n_head=12, n_positions=64, vocab_size=256, **ways.ENDS)
    data = {name: torch.randint(256, (1000,)) for name in NAMES}
    return step_times(base, data, 8)


def _perplexities(nats: list[float]) -> dict[str, Any]:
    return {"perplexity": dict(zip(NAMES, np.exp(nats).tolist(), strict=True))}


def _means(seeds: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean over seeds of every measure at the five rays."""
    first = seeds[0]["measures"]
    return {
        name: {
            key: float(np.mean([seed["measures"][name][key] for seed in seeds]))
            for key, value in found.items()
            if isinstance(value, float)
        }
        for name, found in first.items()
    }


INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
PAPERED = ("figure.facecolor", "axes.facecolor")
LOOKS = {
    "separate": ("D", "none", "five adapters, one per weight"),
    "lora, longer": ("o", "-", "ours: one network, as many steps as the five"),
    "lora, twice": ("o", "--", "ours: one network, as many steps as two of them"),
    "lora": ("o", ":", "ours: one network, as many steps as one of them"),
    "film": ("s", ":", "ours: FiLM, as many steps as one of them"),
    "soup": ("^", "--", "rewarded soups of the two end adapters"),
}


def draw(path: Path, found: dict[str, Any]) -> None:
    """Perplexities of both corpora, one line per way of adapting, in light and, beside it, dark."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    dark = path.with_stem(f"{path.stem}-dark")
    for theme, words, target in (("light", LIGHT, path), ("dark", DARK, dark)):
        blue, orange, green = RUNS[theme][:3]
        ink, paper = words["ink"], words["paper"]
        colours = dict(zip(LOOKS, (ink, blue, blue, blue, orange, green), strict=True))
        look: Any = dict.fromkeys(INKED, ink) | dict.fromkeys(PAPERED, paper)
        with plt.rc_context(look):
            figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
            for name, (marker, line, label) in LOOKS.items():
                if name not in found["fronts"]:
                    continue
                code, prose = np.transpose(found["fronts"][name]["perplexity"])
                alone = name == "separate"
                axes.plot(
                    code,
                    prose,
                    linestyle=line,
                    linewidth=1.2,
                    marker=marker,
                    markersize=7 if alone else 4,
                    color=colours[name],
                    label=label,
                    zorder=3 if alone else 2,
                )
            axes.set(
                xlabel="perplexity per byte of C++ (held-out files)",
                ylabel="perplexity per byte of the manual",
                xscale="log",
                yscale="log",
            )
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter("{x:g}")
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_ylim(top=1.1 * axes.get_ylim()[1])  # room for the legend
            axes.legend(frameon=False, fontsize="small", loc="upper right")
            figure.savefig(target, dpi=160)
            plt.close(figure)


if __name__ == "__main__":
    main()
