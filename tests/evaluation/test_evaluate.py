"""`evaluate` against a plain loop over rays, and over batches where the paper averages those."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.evaluation.conftest import ROWS, make_problem, tabulate
from tests.small import few_digits
from torch import Tensor, nn

from paretocosmos import evaluate
from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation import evaluate as evaluation
from paretocosmos.evaluation import move_batch, move_to_evaluate, predict_at_rays, samples
from paretocosmos.nn.backbones import LeNet, Mlp
from paretocosmos.nn.conditioning import Concat, TransposedConv
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.pareto import even_rays
from paretocosmos.problems import Problem, Protocol, Split
from paretocosmos.problems.images.problem import ImageProblem
from paretocosmos.problems.tables import TabularProblem
from paretocosmos.types import Batch, Outputs, Targets

BATCH = 256  # a test split of 600: two batches of 256 and one of 88


@pytest.fixture(scope="module")
def clean() -> TabularProblem:
    return make_problem()


@pytest.fixture(scope="module")
def paper() -> TabularProblem:
    return make_problem(protocol="paper")


@pytest.fixture
def model() -> Concat:
    model = Concat(Mlp((3,), 1, hidden=(7,)), 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()  # so that it predicts both classes
    return model


class Plain(nn.Module):
    """A network that is no `Conditioning`: it takes one ray at a time."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        assert ray.ndim == 1
        return self.inner(inputs, ray)


Pieces = list[tuple[Tensor, Targets]]


def _pieces(problem: Problem, split: Split, size: int) -> Pieces:
    batch = problem.split(split)
    return [
        (batch.inputs[at : at + size], {k: v[at : at + size] for k, v in batch.targets.items()})
        for at in range(0, len(batch), size)
    ]


def _by_hand(model: nn.Module, problem: Problem, rays: Tensor, pieces: Pieces) -> np.ndarray:
    """Every score and metric at every ray: the mean over the pieces, one after the other."""
    scored = [o.score for o in problem.objectives] + list(problem.metrics.values())
    table = np.zeros((len(rays), len(scored)))
    with torch.no_grad():
        for n, ray in enumerate(rays):
            for k, function in enumerate(scored):
                values = [float(function(model(x, ray), targets)) for x, targets in pieces]
                table[n, k] = sum(values) / len(values)
    return table


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_clean_scores_are_those_of_a_loop_over_rays(
    model: Concat, clean: TabularProblem, split: Split
) -> None:
    front = evaluate(model, clean, split=split)
    rays = even_rays(25, 2)
    expected = _by_hand(model, clean, rays, _pieces(clean, split, ROWS))
    np.testing.assert_allclose(tabulate(front), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(front.rays, rays.numpy())
    assert front.names == clean.names
    assert tuple(front.metrics) == tuple(clean.metrics)
    assert tuple(front.reference) == clean.reference
    assert front.split == split
    assert front.provenance["scores"] == "whole split"


@pytest.mark.parametrize(
    ("split", "batches"), [("train", 9), ("val", 2), ("test", 3)], ids=["train", "val", "test"]
)
def test_paper_scores_are_means_over_batches_in_file_order(
    model: Concat, paper: TabularProblem, split: Split, batches: int
) -> None:
    front = evaluate(model, paper, split=split, rays=7)
    pieces = _pieces(paper, split, BATCH)
    assert len(pieces) == batches
    assert len(pieces[-1][0]) < BATCH  # the short batch counts like any other
    expected = _by_hand(model, paper, even_rays(7, 2), pieces)
    np.testing.assert_allclose(tabulate(front), expected, rtol=1e-5, atol=1e-6)
    whole = _by_hand(model, paper, even_rays(7, 2), _pieces(paper, split, ROWS))
    assert np.abs(whole[:, 1] - expected[:, 1]).max() > 1e-4  # the DEO does depend on it
    assert front.provenance["scores"] == "mean over batches of 256"
    assert front.provenance["protocol"] == "paper"


@pytest.mark.parametrize("rows", [255, 256, 512, 100])
def test_paper_batches_at_the_edges(model: Concat, paper: TabularProblem, rows: int) -> None:
    whole = paper.split("train")
    cut = Batch(whole.inputs[:rows], {k: v[:rows] for k, v in whole.targets.items()})
    problem = replace(paper, splits={"train": cut, "val": cut, "test": cut})
    expected = _by_hand(model, problem, even_rays(3, 2), _pieces(problem, "test", BATCH))
    np.testing.assert_allclose(
        tabulate(evaluate(model, problem, rays=3)), expected, rtol=1e-5, atol=1e-6
    )


def test_a_plain_module_gives_the_same_front(model: Concat, paper: TabularProblem) -> None:
    one, two = evaluate(model, paper), evaluate(Plain(model), paper)
    np.testing.assert_allclose(tabulate(one), tabulate(two), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("chunk", [1, 100, 25 * 599, 10**9])
def test_chunks_do_not_matter(
    model: Concat, clean: TabularProblem, monkeypatch: pytest.MonkeyPatch, chunk: int, plain: bool
) -> None:
    network = Plain(model) if plain else model
    expected = evaluate(network, clean)
    monkeypatch.setattr(evaluation, "CHUNK_IMAGES", chunk)
    found = evaluate(network, clean)
    np.testing.assert_allclose(tabulate(found), tabulate(expected), rtol=1e-5, atol=1e-6)


def test_rays_as_a_number_a_tensor_and_lists(model: Concat, clean: TabularProblem) -> None:
    rays = even_rays(4, 2)
    given: list[Any] = [4, rays, rays.double(), rays.tolist(), rays.numpy()]
    fronts = [evaluate(model, clean, rays=one) for one in given]
    assert all(front == fronts[0] for front in fronts)
    alone = evaluate(model, clean, rays=[0.25, 0.75])  # type: ignore[list-item]
    assert alone.rays.tolist() == [[0.25, 0.75]]
    assert len(evaluate(model, clean, rays=1)) == 1


@pytest.mark.parametrize(
    ("rays", "says"),
    [
        ([[0.5, -0.5]], "entries >= 0; found"),
        ([[0.2, 0.3, 0.5]], "per objective, here 2"),
        ([[0.5, 0.6]], r"sum of 1\.1: divide"),
        ([[float("nan"), 1.0]], "finite"),
        ([[0.5, 0.5], [1.0]], "2 numbers that sum to 1"),
        (torch.zeros(0, 2), "here 2; found shape"),
        (torch.full((1, 1, 2), 0.5), "here 2; found shape"),
        (0, "`count` >= 1"),
        (-3, "`count` >= 1"),
    ],
)
def test_bad_rays_are_refused(model: Concat, clean: TabularProblem, rays: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        evaluate(model, clean, rays=rays)


def test_an_unknown_split_suggests_the_closest(model: Concat, clean: TabularProblem) -> None:
    with pytest.raises(ConfigurationError, match=r"`tset`.*`test`"):
        evaluate(model, clean, split="tset")


def _broken(outputs: Outputs, targets: Targets) -> Tensor:
    raise ArithmeticError("no number")


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_every_part_of_the_model_keeps_its_mode(
    clean: TabularProblem, training: bool, breaks: bool
) -> None:
    layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    model = Concat(layers, 2).train(training)
    frozen = model.get_submodule("backbone.1")
    frozen.train(not training)  # a part may differ from the whole
    before = [module.training for module in model.modules()]
    problem = replace(clean, metrics={"broken": _broken}) if breaks else clean
    try:
        assert evaluate(model, problem) == evaluate(model, problem)  # dropout is off
    except ArithmeticError:
        assert breaks
    assert [module.training for module in model.modules()] == before


def test_nothing_else_is_touched(model: Concat, clean: TabularProblem) -> None:
    before, drawn = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    rays = even_rays(3, 2).requires_grad_()
    front = evaluate(model, clean, rays=rays.detach(), provenance={"seed": 3, "problem": "mine"})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert dict(front.provenance) == {
        "problem": "mine",
        "protocol": "clean",
        "scores": "whole split",
        "seed": 3,
    }
    model(torch.zeros(2, 3), rays[0]).sum().backward()  # and it can be trained on


@dataclass(frozen=True, kw_only=True, eq=False)
class Mapped(Problem):
    """Inputs and outputs by name."""

    def split(self, name: Split) -> Batch:
        draw = torch.Generator().manual_seed(1)
        parts = {key: torch.randn(300, 2, generator=draw) for key in ("x", "y")}
        return Batch(parts, {"label": torch.randn(300, 2, generator=draw)})


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, inputs: Mapping[str, Tensor], ray: Tensor) -> dict[str, Tensor]:
        x = torch.cat([inputs["x"] * ray, inputs["y"]], dim=1)
        return {"one": self.one(x), "two": self.two(x)}


@pytest.mark.parametrize("protocol", ["clean", "paper"])
def test_inputs_and_outputs_may_be_mappings(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "CHUNK", 70)
    problem = Mapped(
        name="mapped",
        objectives=tuple(MeanSquaredError(name=head, output=head) for head in ("one", "two")),
        reference=(2.0, 2.0),
        input_shape=(2,),
        outputs={"one": 2, "two": 2},
        protocol=protocol,
    )
    model, batch = Heads(), problem.split("test")
    front = evaluate(model, problem, rays=3)
    cuts = [slice(0, 256), slice(256, 300)] if protocol == "paper" else [slice(0, 300)]
    for n, ray in enumerate(even_rays(3, 2)):
        outputs = model(batch.inputs, ray)
        for j, head in enumerate(("one", "two")):
            errors = (outputs[head] - batch.targets["label"]).detach().square()
            expected = torch.stack([errors[cut].mean() for cut in cuts]).mean()
            assert front.values[n, j] == pytest.approx(float(expected), rel=1e-5)


def test_the_wrong_number_of_objectives_is_one_sentence(clean: TabularProblem) -> None:
    three = Concat(Mlp((3,), 1), 3)
    with pytest.raises(ConfigurationError, match=r"found \(25, 2\)"):
        evaluate(three, clean)


# ---------------------------------------------------------------- images, kept as bytes


HEADS = {"top_left": 10, "bottom_right": 10}


@pytest.fixture(scope="module")
def digits() -> ImageProblem:
    return few_digits()


@pytest.fixture(scope="module")
def lenet() -> TransposedConv:
    torch.manual_seed(1)
    return TransposedConv(LeNet((1, 24, 24), HEADS), 2)


def _literally(model: nn.Module, images: Tensor, ray: Tensor) -> dict[str, Tensor]:
    """The network written out for one ray: maps, torch.cat, a wide convolution, no `prepare`."""
    w = {name: value.detach() for name, value in model.named_parameters()}
    maps = F.relu(F.conv_transpose2d(ray.view(1, 2, 1, 1), w["maps.first.weight"]))
    maps = F.relu(F.conv_transpose2d(maps, w["maps.second.weight"], stride=2, padding=1))
    maps = F.interpolate(maps, size=(24, 24)).expand(len(images), -1, -1, -1)
    first, second = "backbone.first.conv", "backbone.second.conv"
    wide = torch.cat([w[f"{first}.layer.weight"], w[f"{first}.ray.weight"]], dim=1)
    x = torch.cat([images.to(torch.float32) / 255, maps], dim=1)
    x = F.max_pool2d(F.relu(F.conv2d(x, wide, w[f"{first}.layer.bias"])), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, w[f"{second}.weight"], w[f"{second}.bias"])), 2)
    x = F.relu(x.flatten(1) @ w["backbone.hidden.weight"].mT + w["backbone.hidden.bias"])
    out = x @ w["backbone.head.weight"].mT + w["backbone.head.bias"]
    return {"top_left": out[:, :10], "bottom_right": out[:, 10:]}


def test_scores_of_images_are_those_of_a_loop(digits: ImageProblem, lenet: TransposedConv) -> None:
    front = evaluate(lenet, digits, split="val", rays=3)
    batch = digits.split("val")
    assert isinstance(batch.inputs, Tensor)
    for n, ray in enumerate(even_rays(3, 2)):
        outputs = _literally(lenet, batch.inputs, ray)
        for j, head in enumerate(HEADS):
            chosen = outputs[head].log_softmax(dim=1)[range(len(batch)), batch.targets[head]]
            assert front.values[n, j] == pytest.approx(-float(chosen.mean()), rel=1e-4)
            right = (outputs[head].argmax(dim=1) == batch.targets[head]).double().mean()
            assert front.metrics[f"accuracy_{head}"][n] == pytest.approx(float(right), abs=1e-6)


@pytest.mark.parametrize("chunk", [1, 4 * 24 * 24 * 37, 10**9])
def test_images_are_prepared_chunk_by_chunk(
    digits: ImageProblem, lenet: TransposedConv, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    inputs, rays, sizes = digits.split("val").inputs, even_rays(4, 2), []
    inputs = inputs[:100]

    def prepare(images: Any, dtype: torch.dtype) -> Any:
        sizes.append(len(images))
        return digits.prepare(images, dtype)

    with torch.inference_mode():
        expected = predict_at_rays(lenet, inputs.float() / 255, rays)
        monkeypatch.setattr(evaluation, "CHUNK_IMAGES", chunk)
        found = predict_at_rays(lenet, inputs, rays, prepare)
    assert sizes == {1: [1] * 100, 10**9: [100]}.get(chunk, [37, 37, 26])
    for head in HEADS:
        torch.testing.assert_close(found[head], expected[head], rtol=1e-4, atol=1e-5)


def test_moving_keeps_bytes_and_labels_as_they_are(digits: ImageProblem) -> None:
    batch = digits.split("val")
    moved = move_batch(batch, torch.device("cpu"), torch.float64)
    assert moved.inputs.dtype == torch.uint8
    assert {target.dtype for target in moved.targets.values()} == {torch.int64}
    floats = Batch({"x": torch.ones(2)}, {"y": torch.ones(2), "z": torch.ones(2).long()})
    moved = move_batch(floats, torch.device("cpu"), torch.float64)
    found = [moved.inputs["x"], *moved.targets.values()]
    assert [part.dtype for part in found] == [torch.float64, torch.float64, torch.int64]
    assert move_batch(floats, torch.device("cpu")).targets["y"].dtype == torch.float32


@pytest.mark.parametrize("large", [False, True])
def test_a_split_that_does_not_fit_is_fetched_chunk_by_chunk(
    clean: TabularProblem, model: Concat, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    whole = clean.split("test")
    # of another type, as it would be on another device
    elsewhere = Batch(whole.inputs.double(), {k: v.double() for k, v in whole.targets.items()})
    monkeypatch.setattr(samples, "fits_on_device", lambda *given, **named: not large)
    monkeypatch.setattr(evaluation, "CHUNK", 25 * 3 * 100)
    batch = move_to_evaluate(elsewhere, torch.device("cpu"), torch.float32)
    assert (batch.inputs is elsewhere.inputs) == large
    assert {target.dtype for target in batch.targets.values()} == {torch.float32}
    problem = replace(clean, splits={**clean.splits, "test": elsewhere})
    assert evaluate(model, problem) == evaluate(model, clean)


def test_a_model_in_double_is_evaluated_in_double(clean: TabularProblem, model: Concat) -> None:
    single = evaluate(model, clean)
    double = evaluate(model.double(), clean)
    apart = np.abs(single.values[:, 0] - double.values[:, 0])
    assert 0 < apart.max() < 1e-5
