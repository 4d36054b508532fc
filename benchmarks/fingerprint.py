"""`python -m benchmarks.fingerprint --networks DIR --data DIR`: which images were the lost ones?

Somebody trained a LeNet on each of the lost Multi-MNIST files and published it with the losses and
accuracies it had on their test images: the authors of FERERO (Chen et al., NeurIPS 2024; on GitHub
lisha-chen/FERERO, folder multiMNIST/saved_model/idv, numbers in multiMNIST/results). On composites
made by the right rule such a network has the same losses; on others it has not. Its first head was
never trained, but its loss tells images apart as well.

Prints, rule by rule, how far the four numbers of a network are from the published ones, in standard
errors, and how much another draw by the same rule moves a loss. `--out FILE` writes all as JSON.
Takes about ten minutes on a CPU core. `--networks` is the folder saved_model/idv.
"""

import argparse
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from paretocosmos.problems.images.pairs import RULES, Rule, draw_recipes, paint_images, read_pair
from paretocosmos.runs.provenance import get_provenance

Numbers = npt.NDArray[np.float64]
Labelled = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]

SIDE = 36
NAMES = ("loss of the untrained head", "loss", "accuracy of the untrained head", "accuracy")
SETS = {
    "multi_mnist": ("mnist", ("mnist", "mnist")),
    "multi_fashion": ("fashion", ("fashion_mnist", "fashion_mnist")),
    "fashion_and_mnist": ("fashion_and_mnist", ("mnist", "fashion_mnist")),
}
# After 100 epochs, of the network for the bottom-right task, on 20,000 test images.
PUBLISHED = {
    "multi_mnist": (10.356149, 0.3113045, 0.1023, 0.8947),
    "multi_fashion": (7.132857, 0.51272786, 0.0934, 0.8170),
    "fashion_and_mnist": (10.796001, 0.43055996, 0.10125, 0.8437),
}
TOP_LEFT, BOTTOM_RIGHT = range(5), range(4, 9)
IMAGES = 20_000
SAME = 0.1  # how often two classes are the same by chance
DRAWS = 8
MOST = 20  # rules that are kept of each list


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="where mnist/ and so on lie")
    parser.add_argument("--out", type=Path, help="write the numbers here as JSON")
    arguments = parser.parse_args()
    found: dict[str, Any] = {"networks": "lisha-chen/FERERO", "statistics": NAMES, "sets": {}}
    for problem, (name, sources) in SETS.items():
        weights = read_network(arguments.networks / f"idv_{name}_lenet_niter_100.pickle")
        pair = tuple(read_test(arguments.data / source) for source in sources)
        found["sets"][problem] = told = one_set(problem, weights, pair)
        show(problem, told)
    found = summarised(found) | get_provenance(torch.device("cpu"))
    for rule in found["together"][:3]:
        print("all three files:", rule)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def read_network(path: Path) -> dict[str, Tensor]:
    """A network's weights; nothing else in the file is run."""
    weights: dict[str, Tensor] = torch.load(path, weights_only=True, map_location="cpu")
    return weights


def read_test(folder: Path) -> Labelled:
    """The test images of MNIST or Fashion-MNIST and their labels."""
    kinds = ("images-idx3-ubyte", "labels-idx1-ubyte")
    images, labels = read_pair(*(next(folder.glob(f"t10k-{kind}*")) for kind in kinds))
    return images, labels


def one_set(problem: str, weights: Mapping[str, Tensor], pair: tuple[Labelled, ...]) -> Any:
    """Every rule against the published numbers, best first, and what another draw changes."""
    first, second = pair
    judge = judged_by(weights)
    one_source = first is second or np.array_equal(first[0], second[0])
    tables = {same: by_position(first, second, judge, same=same) for same in (False, True)}
    rules = []
    for top, bottom in itertools.product(ranges(TOP_LEFT), ranges(BOTTOM_RIGHT)):
        cells = [(d, e) for d in top for e in bottom]
        other, same = (np.mean([tables[s][at] for at in cells], axis=0) for s in (False, True))
        for free in (False, True):
            mean, spread = (1 - SAME) * other + SAME * same if free else other
            rules.append(
                {
                    "top_left": [top.start, top.stop - 1],
                    "bottom_right": [bottom.start, bottom.stop - 1],
                    "diagonal": True,
                    "pixels": "0..255",
                    "classes": "free" if free else "different",
                    **compared(problem, mean, spread),
                }
            )
    rules.sort(key=lambda rule: float(rule["chi_square"]))
    others = {
        "text": drawn(first, second, RULES["text"], judge, different=one_source),
        "pixels 0..1": drawn(
            first,
            second,
            RULES["published"],
            lambda x, *y: judge(x / 255, *y),
            different=one_source,
        ),
    }
    draws = [
        drawn(first, second, RULES["published"], judge, different=one_source, seed=seed)[0]
        for seed in range(1, DRAWS + 1)
    ]
    return {
        "published": PUBLISHED[problem],
        "rules": rules,
        "others": {name: compared(problem, *numbers) for name, numbers in others.items()},
        "draws": {
            "loss": [float(d[1]) for d in draws],
            "std": float(np.std([d[1] for d in draws], ddof=1)),
        },
    }


def summarised(found: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that fit all three files best, made by one rule, and of each file the best ones.

    Classes of a digit and a garment have nothing to do with each other: there they are free.
    """
    sums: dict[tuple[Any, ...], float] = {}
    for problem, told in found["sets"].items():
        for rule in told["rules"]:
            where = (*rule["top_left"], *rule["bottom_right"])
            if problem != "fashion_and_mnist":
                kinds = [rule["classes"]]
            else:
                kinds = ["different", "free"] if rule["classes"] == "free" else []
            for kind in kinds:
                sums[where, kind] = sums.get((where, kind), 0.0) + rule["chi_square"]
    best = sorted(sums.items(), key=lambda one: one[1])[:MOST]
    together = [
        {
            "top_left": list(where[:2]),
            "bottom_right": list(where[2:]),
            "classes": kind,
            "chi_square": total,
            "of": len(NAMES) * len(found["sets"]),
        }
        for (where, kind), total in best
    ]
    kept = {where for (where, _), _ in best}
    sets = {
        name: {
            **one,
            "rules": [
                rule
                for at, rule in enumerate(one["rules"])
                if at < MOST or (*rule["top_left"], *rule["bottom_right"]) in kept
            ],
        }
        for name, one in found["sets"].items()
    }
    return {**found, "sets": sets, "together": together}


def ranges(whole: range) -> Iterator[range]:
    """Every range of neighbours in a range."""
    for start in whole:
        for stop in range(start + 1, whole.stop + 1):
            yield range(start, stop)


def by_position(
    first: Labelled, second: Labelled, judge: Callable[..., Numbers], *, same: bool
) -> dict[tuple[int, int], Numbers]:
    """Means and deviations ``[2, 4]`` for every place of the two images on the diagonal."""
    draw = np.random.default_rng(0)
    # every image twice, as in the files; of the few of one class a quarter will do
    rows = np.tile(np.arange(len(first[1])), 2)[:: 4 if same else 1]
    by_class = {c: np.flatnonzero((second[1] == c) == same) for c in np.unique(first[1])}
    partners = np.array([draw.choice(by_class[c]) for c in first[1][rows]])
    found = {}
    for d, e in itertools.product(TOP_LEFT, BOTTOM_RIGHT):
        corners = [np.full(len(rows), place) for place in (d, d, e, e)]
        found[d, e] = composed(first, second, np.stack([rows, partners, *corners]), judge)
    return found


def drawn(
    first: Labelled,
    second: Labelled,
    rule: Rule,
    judge: Callable[..., Numbers],
    *,
    different: bool,
    seed: int = 1,
) -> Numbers:
    """Means and deviations ``[2, 4]`` on composites drawn by a rule, as the library draws them."""
    recipe = draw_recipes(
        first[1], second[1], rule, different=different, copies=2, stream=[seed, 1]
    )
    return composed(first, second, recipe, judge)


def composed(
    first: Labelled, second: Labelled, recipe: npt.NDArray[np.int64], judge: Callable[..., Numbers]
) -> Numbers:
    """Means and deviations ``[2, 4]`` on composites that are made as `draw_recipes` says."""
    images = np.zeros((recipe.shape[1], SIDE, SIDE), np.uint8)
    paint_images(first[0], second[0], recipe, images)
    labels = [
        torch.from_numpy(of[1][rows].astype(np.int64))
        for of, rows in zip((first, second), recipe[:2], strict=True)
    ]
    return judge(torch.from_numpy(images).float().unsqueeze(1), *labels)


def judged_by(weights: Mapping[str, Tensor]) -> Callable[..., Numbers]:
    """What gives a network's four numbers on images: their means and deviations, ``[2, 4]``."""

    def judge(images: Tensor, *labels: Tensor) -> Numbers:
        with torch.no_grad():
            parts = [answers(weights, some) for some in images.split(1000)]
        heads = [torch.cat(head) for head in zip(*parts, strict=True)]
        both = list(zip(heads, labels, strict=True))
        losses = [F.cross_entropy(out, of, reduction="none") for out, of in both]
        right = [(out.argmax(1) == of).float() for out, of in both]
        each = torch.stack([*losses, *right]).double()
        return torch.stack([each.mean(1), each.std(1)]).numpy()

    return judge


def answers(weights: Mapping[str, Tensor], images: Tensor) -> list[Tensor]:
    """That network, told by its weights' shapes: two blocks, a hidden layer, two heads."""
    features = images
    for name in ("conv1", "conv2"):
        features = F.conv2d(features, weights[f"{name}.weight"], weights[f"{name}.bias"])
        features = F.max_pool2d(F.relu(features), 2)
    hidden = F.relu(F.linear(features.flatten(1), weights["fc1.weight"], weights["fc1.bias"]))
    return [
        F.linear(hidden, weights[f"task_{i}.weight"], weights[f"task_{i}.bias"]) for i in (0, 1)
    ]


def compared(problem: str, mean: Numbers, spread: Numbers) -> dict[str, Any]:
    """Four numbers beside the published ones, which are of another draw of as many images."""
    error = spread * np.sqrt(2 / IMAGES)
    away = (mean - np.array(PUBLISHED[problem])) / error
    return {
        "found": mean.tolist(),
        "in_standard_errors": away.tolist(),
        "chi_square": float((away**2).sum()),
    }


def show(problem: str, told: Mapping[str, Any]) -> None:
    """The best rules, ours, and the others."""
    print(f"{problem}: published {told['published']}, another draw {told['draws']['std']:.4f}")
    rules: Sequence[Mapping[str, Any]] = told["rules"]
    for rule in rules[:6]:
        where = f"{rule['top_left']} {rule['bottom_right']} {rule['classes']}"
        print(f"  {where:30} {rule['chi_square']:8.1f}  {np.round(rule['found'], 4)}")
    for name, other in told["others"].items():
        print(f"  {name:30} {other['chi_square']:8.1f}  {np.round(other['found'], 4)}")


if __name__ == "__main__":
    main()
