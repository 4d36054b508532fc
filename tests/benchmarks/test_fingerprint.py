"""The fingerprint of the lost images: its network against torch's layers, means against a loop."""

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from benchmarks.fingerprint import (
    Labelled,
    answers,
    by_position,
    compared,
    judged_by,
    ranges,
    summarised,
)
from torch import Tensor, nn

from benchmarks import fingerprint


@pytest.fixture
def network() -> nn.ModuleDict:
    torch.manual_seed(0)
    layers = {
        "conv1": nn.Conv2d(1, 10, 9),
        "conv2": nn.Conv2d(10, 20, 5),
        "fc1": nn.Linear(500, 50),
    }
    return nn.ModuleDict(layers | {f"task_{i}": nn.Linear(50, 10) for i in (0, 1)})


@pytest.fixture
def weights(network: nn.ModuleDict) -> Mapping[str, Tensor]:
    return network.state_dict()


def labelled(seed: int, count: int) -> Labelled:
    draw = np.random.default_rng(seed)
    images = draw.integers(0, 200, (count, 28, 28), dtype=np.uint8)
    return images, (np.arange(count) % 5).astype(np.uint8)


def literal(network: nn.ModuleDict, images: Tensor) -> list[Tensor]:
    block = [nn.ReLU(), nn.MaxPool2d(2)]
    body = nn.Sequential(
        *(network["conv1"], *block, network["conv2"], *block),
        *(nn.Flatten(), network["fc1"], nn.ReLU()),
    )
    with torch.no_grad():
        return [network[f"task_{i}"](body(images)) for i in (0, 1)]


def test_the_network_is_two_blocks_a_hidden_layer_and_two_heads(
    network: nn.ModuleDict, weights: Mapping[str, Tensor]
) -> None:
    images = torch.rand(7, 1, 36, 36) * 255
    for ours, theirs in zip(answers(weights, images), literal(network, images), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_position_s_numbers_are_those_of_images_put_there(
    network: nn.ModuleDict, weights: Mapping[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "TOP_LEFT", range(1, 2))
    monkeypatch.setattr(fingerprint, "BOTTOM_RIGHT", range(6, 7))
    # only images of a class are partners: with one image a class there is no choice
    alone = labelled(1, 5)
    (found,) = by_position(alone, alone, judged_by(weights), same=True).values()
    rows = [0, 4, 3]  # each twice, and every fourth of these
    canvas = np.zeros((3, 36, 36))
    for at, row in enumerate(rows):
        canvas[at, 1:29, 1:29] += alone[0][row]
        canvas[at, 6:34, 6:34] += alone[0][row]
    images = torch.tensor(np.minimum(canvas, 255), dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(alone[1][rows].astype(np.int64))
    loss = [float(nn.functional.cross_entropy(o, labels)) for o in literal(network, images)]
    np.testing.assert_allclose(found[0][:2], loss, rtol=1e-5)


def test_one_rule_for_all_three_files() -> None:
    def rule(end: int, classes: str, chi: float) -> dict[str, object]:
        where = {"top_left": [0, 4], "bottom_right": [5, end], "classes": classes}
        return where | {"chi_square": chi}

    sets = {
        "multi_mnist": [rule(7, "different", 3.0), rule(8, "different", 90.0)],
        "multi_fashion": [rule(8, "different", 1.0), rule(7, "different", 7.0)],
        "fashion_and_mnist": [rule(7, "free", 4.0), rule(8, "free", 2.0), rule(7, "different", 0)],
    }
    found = summarised({"sets": {name: {"rules": rules} for name, rules in sets.items()}})
    best, second, *_ = [one for one in found["together"] if one["classes"] == "different"]
    assert (best["bottom_right"], best["chi_square"], best["of"]) == ([5, 7], 14.0, 12)
    assert (second["bottom_right"], second["chi_square"]) == ([5, 8], 93.0)


def test_ranges() -> None:
    pairs = itertools.combinations(range(5, 9), 2)
    assert [(r.start, r.stop) for r in ranges(range(5, 8))] == sorted(pairs)


def test_distance_is_in_standard_errors_of_two_draws() -> None:
    published = np.array(fingerprint.PUBLISHED["multi_mnist"])
    spread = np.array([8.0, 1.0, 0.3, 0.3])
    away = compared("multi_mnist", published + spread / 100, spread)
    # 1 / 100 of a deviation: 20,000 images on both sides have an error of 1 / 100
    assert away["in_standard_errors"] == pytest.approx([1.0] * 4)
    assert away["chi_square"] == pytest.approx(4)
