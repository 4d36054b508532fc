"""A front by sums is that of all outputs at once, and keeps none of them."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.evaluation.conftest import make_problem, tabulate
from torch import Tensor, nn

from paretocosmos import DataProblem, condition, evaluate
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.evaluation import (
    Samples,
    Share,
    evaluate_parts,
    evaluate_shares,
    load_samples_for,
    predict_at_rays,
    predict_blocks,
    scoring,
)
from paretocosmos.evaluation import evaluate as evaluation
from paretocosmos.objectives import (
    CrossEntropy,
    MeanSquaredError,
    accuracy,
    calibration_error,
    roc_auc,
    streaming,
    weighted_sums,
)
from paretocosmos.pareto import even_rays
from paretocosmos.problems import Problem, Protocol, Split
from paretocosmos.runtime.distributed import Processes
from paretocosmos.types import Batch, Targets, map_tensors

SIZES = (1, 7, 200, 256, 136)  # 600 samples
ROWS = sum(SIZES)


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small a split is, its outputs do not fit."""
    monkeypatch.setattr(evaluation, "WHOLE", 0)
    monkeypatch.setattr(evaluation, "BLOCK", 500)


def _cut(batch: Batch, at: slice) -> Batch:
    return Batch(
        map_tensors(lambda part: part[at], batch.inputs),
        map_tensors(lambda part: part[at], batch.targets),
    )


def _batches(problem: Problem) -> Iterator[Batch]:
    ends = list(itertools.accumulate(SIZES))
    for start, stop in zip([0, *ends], ends, strict=False):
        yield _cut(problem.split("test"), slice(start, stop))


class Read:
    """A source of batches that never fits into memory."""

    where = "`test`"

    def __init__(self, *batches: Batch) -> None:
        self.batches = batches

    def held(self, most: int) -> str:
        return "too large"

    def once(self) -> Iterator[Batch]:
        yield from self.batches


def _read(problem: Problem, *batches: Batch) -> list[Share]:
    source: Any = Read(*batches)
    samples = Samples(source, problem.objectives, torch.device("cpu"), torch.float32)
    return [(problem.objectives, samples)]


def _model() -> nn.Module:
    torch.manual_seed(0)
    return condition(nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 1)), 2, how="concat")


CASES = [("tpr_gap", "clean"), ("deo", "clean"), ("deo", "paper"), ("demographic_parity", "paper")]


@pytest.mark.parametrize(("fairness", "protocol"), CASES)
def test_a_table_by_sums_is_that_of_all_outputs(
    fairness: str, protocol: Protocol, request: pytest.FixtureRequest
) -> None:
    problem, model = make_problem(fairness, protocol), _model()
    more: dict[str, Any] = {"auc": roc_auc, "calibration": calibration_error}
    problem = replace(problem, metrics={**problem.metrics, **more})
    expected = evaluate(model, problem, rays=5)
    request.getfixturevalue("streamed")
    found = evaluate(model, problem, rays=5)
    shares = _read(problem, *_batches(problem))
    by_batches = evaluate_shares(model, problem, shares, even_rays(5, 2), split="test")
    for front in (found, by_batches):
        np.testing.assert_allclose(tabulate(front), tabulate(expected), rtol=1e-6, atol=1e-7)
        assert front.provenance == expected.provenance


@dataclass(frozen=True, kw_only=True, eq=False)
class Pixels(Problem):
    """Every pixel has a class, and a depth."""

    def split(self, name: Split) -> Batch:
        draw = torch.Generator().manual_seed(1)
        targets = {
            "label": torch.randint(0, 5, (30, 6, 4), generator=draw),
            "depth": torch.randn(30, 6, 4, generator=draw),
        }
        return Batch(torch.randn(30, 3, 6, 4, generator=draw), targets)


class Segments(nn.Module):
    """Classes second, as torch has them, and a map of depths."""

    def __init__(self) -> None:
        super().__init__()
        self.classes, self.depth = nn.Conv2d(3, 5, 1), nn.Conv2d(3, 1, 1)
        self.largest = 0

    def forward(self, inputs: Tensor, ray: Tensor) -> dict[str, Tensor]:
        self.largest = max(self.largest, len(inputs))
        mixed = inputs * (1 + ray[0])
        return {"classes": self.classes(mixed), "depth": self.depth(mixed)}


def _pixels() -> Pixels:
    return Pixels(
        name="pixels",
        objectives=(
            CrossEntropy(output="classes"),
            MeanSquaredError(output="depth", target="depth"),
        ),
        reference=(5.0, 5.0),
        input_shape=(3, 6, 4),
        outputs={"classes": 5, "depth": 1},
        metrics={"accuracy": partial(accuracy, output="classes")},
    )


def _by_torch(model: nn.Module, batch: Batch, rays: Tensor) -> np.ndarray:
    rows = []
    with torch.no_grad():
        for ray in rays:
            outputs = model(batch.inputs, ray)
            labels, depth = batch.targets["label"], batch.targets["depth"]
            right = (outputs["classes"].argmax(dim=1) == labels).float().mean()
            entropy = F.cross_entropy(outputs["classes"], labels)
            rows.append([entropy, F.mse_loss(outputs["depth"][:, 0], depth), right])
    return np.array(rows)


@pytest.mark.parametrize("room", [1, 200, 1000])
def test_dense_outputs_by_sums_are_torchs(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """144 numbers per sample and ray: rays too may have to go one after another."""
    monkeypatch.setattr(evaluation, "WHOLE", 0)
    monkeypatch.setattr(evaluation, "BLOCK", room)
    problem, model = _pixels(), Segments()
    found = evaluate(model, problem, rays=4)
    expected = _by_torch(model, problem.split("test"), even_rays(4, 2))
    np.testing.assert_allclose(tabulate(found), expected, rtol=1e-5)
    whole = _by_torch(model, problem.split("test"), even_rays(1, 2))
    many = (_cut(problem.split("test"), slice(at, at + 7)) for at in range(0, 30, 7))
    one = evaluate_shares(model, problem, _read(problem, *many), even_rays(1, 2), split="test")
    np.testing.assert_allclose(tabulate(one), whole, rtol=1e-5)


@pytest.mark.parametrize("room", [1, 288, 10_000, None])
def test_a_block_has_room(room: int | None) -> None:
    problem, model, rays = _pixels(), Segments(), even_rays(2, 2)
    inputs = problem.split("test").inputs
    with torch.no_grad():
        found = list(predict_blocks(model, inputs, rays, problem.prepare, room=room))
        whole = predict_at_rays(model, inputs, rays, problem.prepare)
    samples = [at.stop - at.start for at, _ in found]
    assert sum(samples) == 30
    assert room is None or len(found) > 1 or room == 10_000
    for name, expected in whole.items():
        parts: list[Any] = [outputs for _, outputs in found]
        joined = torch.cat([part[name] for part in parts], dim=1)
        torch.testing.assert_close(joined, expected)


def test_a_wide_output_makes_small_chunks() -> None:
    """A vocabulary for every token: few samples at once, though inputs are small."""

    class Words(nn.Module):
        largest = 0

        def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
            self.largest = max(self.largest, len(inputs))
            return torch.zeros(*inputs.shape, 10_000)

    model = Words()
    list(
        predict_blocks(
            model, torch.zeros(100, 8, dtype=torch.long), even_rays(3, 2), room=1_000_000
        )
    )
    assert model.largest * 3 * 8 * 10_000 <= 2_200_000


def test_what_needs_all_outputs_has_a_limit(
    streamed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own(outputs: Any, targets: Targets) -> Tensor:
        return outputs.median()

    problem, model = make_problem("tpr_gap"), _model()
    problem = replace(problem, metrics={"accuracy": accuracy, "median": own})
    assert evaluate(model, problem, rays=3).metrics["median"].shape == (3,)
    monkeypatch.setattr(scoring, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match=r"`median` .*fewer `rays`.*`streaming`"):
        evaluate(model, problem, rays=3)
    adds_up = replace(problem, metrics={"accuracy": accuracy})
    assert evaluate(model, adds_up, rays=3).metrics["accuracy"].shape == (3,)


def test_sums_that_do_not_lead_to_the_score_are_refused(streamed: None) -> None:
    @streaming(lambda outputs, targets: weighted_sums(2 * outputs, targets))
    def wrong(outputs: Any, targets: Targets) -> Tensor:
        return outputs.mean()

    problem = replace(make_problem("tpr_gap"), metrics={"wrong": wrong})
    with pytest.raises(ConfigurationError, match=r"sums of `wrong`.*`streaming`"):
        evaluate(_model(), problem, rays=3)


class Nodes(nn.Module):
    """Answers for every node of a graph, all of them one after the other."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.layer, self.rows = nn.Linear(3, 1), rows

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        found: Tensor = self.layer(inputs * ray[0])
        return found.flatten()[0] if not self.rows else found.repeat(self.rows, 1)


@pytest.mark.parametrize(("rows", "found"), [(2, "4 rows for 2"), (0, "one number")])
def test_a_row_of_outputs_belongs_to_a_sample(rows: int, found: str) -> None:
    problem = make_problem("tpr_gap")
    few: Any = map_tensors(lambda part: part[:2], problem.split("test").inputs)
    for inputs in (few, problem.split("test").inputs):  # the others are more than a chunk
        with pytest.raises(ConfigurationError, match=rf"row of outputs for each.*{found}.*nodes"):
            predict_at_rays(Nodes(rows), inputs, even_rays(3, 2), problem.prepare)
    with pytest.raises(ConfigurationError, match=found):
        evaluate(Nodes(rows), problem, rays=3)
    one: Any = predict_at_rays(Nodes(1), few, even_rays(3, 2), problem.prepare)
    assert one.shape == (3, 2, 1)


class Words(nn.Module):
    """A class for every token, however many a batch has."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Embedding(10, 4)

    def forward(self, inputs: Tensor, ray: Tensor) -> Tensor:
        return self.layer(inputs) * ray[0]


class Padded:
    """Batches that are as wide as their longest sequence."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        draw = torch.Generator().manual_seed(0)
        for width in (3, 7, 5):
            tokens = torch.randint(0, 10, (6, width), generator=draw)
            yield tokens, torch.where(tokens > 7, -100, tokens % 4)


def test_batches_of_different_widths_are_summed() -> None:
    def problem(**given: Any) -> DataProblem:
        objective = CrossEntropy(ignore_index=-100)
        data: dict[str, Any] = {"train": Batch(torch.zeros(2, 1), {}), "outputs": 4}
        return DataProblem(
            name="words",
            objectives=(objective, replace(objective, name="again")),
            reference=(9.0, 9.0),
            val=Padded(),
            test=Padded(),
            **data,
            **given,
        )

    model, every = Words(), list(Padded())
    found = evaluate(model, problem(), rays=2)
    with torch.no_grad():
        for ray, value in zip(even_rays(2, 2), found.values[:, 0], strict=True):
            logits = torch.cat([model(tokens, ray).flatten(0, 1) for tokens, _ in every])
            labels = torch.cat([own.flatten() for _, own in every])
            assert value == pytest.approx(float(F.cross_entropy(logits, labels)), rel=1e-5)
    median: Any = {"median": lambda outputs, targets: outputs.median()}
    with pytest.raises(DataError, match=r"`median` keeps all outputs.*`collate`.*`streaming`"):
        evaluate(model, problem(metrics=median), rays=2)
    with pytest.raises(DataError, match="`collate`"):
        problem().split("val")


@pytest.mark.parametrize("parts", [3, 10])
def test_parts_are_those_of_all_samples(parts: int, streamed: None) -> None:
    problem, model, rays = make_problem("tpr_gap"), _model(), even_rays(3, 2)
    whole, each = evaluate_parts(model, problem, _read(problem, *_batches(problem)), rays, parts)
    expected = evaluate_parts(model, problem, load_samples_for(model, problem, "test"), rays, parts)
    np.testing.assert_allclose(whole, expected[0], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(each, expected[1], rtol=1e-6, atol=1e-7)
    size = ROWS // parts
    some = _cut(problem.split("test"), slice(size, 2 * size))
    alone = replace(problem, splits={**problem.splits, "test": some})
    np.testing.assert_allclose(each[1], evaluate(model, alone, rays=3).values, rtol=1e-6)


def test_samples_are_the_same_every_time() -> None:
    problem = make_problem("tpr_gap")
    ((_, samples),) = _read(problem, *_batches(problem))
    assert len(samples) == ROWS
    for most in (ROWS, 100, 7):
        some = samples.spread(most)
        rows = problem.split("test").inputs[:: -(-ROWS // most)]
        assert torch.equal(some.inputs, rows)  # type: ignore[arg-type]
    source: Any = samples._source
    source.batches = source.batches[:2]
    with pytest.raises(DataError, match="8 samples this time and had 600 before"):
        list(samples)


def test_no_batch_is_no_front() -> None:
    problem = make_problem("deo")
    with pytest.raises(DataError, match="found none"):
        evaluate_shares(_model(), problem, _read(problem), even_rays(3, 2), split="test")


@dataclass(frozen=True)
class Half(Processes):
    """One of two processes: it notes its sums, and gives those of both where it knows them."""

    count: int = 2

    def total(self, parts: Any, samples: int) -> list[Tensor]:
        OTHERS.append([part.clone() for part in parts])
        return [sum(both) for both in zip(*OTHERS, strict=True)]


OTHERS: list[list[Tensor]] = []


def test_processes_add_their_sums(streamed: None) -> None:
    problem, model, rays = make_problem("tpr_gap"), _model(), even_rays(3, 2)
    expected = evaluate(model, problem, rays=3)
    OTHERS.clear()
    for rank in (0, 1):
        given: Any = {"split": "test", "processes": Half(rank)}
        found = evaluate_shares(model, problem, _read(problem, *_batches(problem)), rays, **given)
    np.testing.assert_allclose(tabulate(found), tabulate(expected), rtol=1e-6, atol=1e-7)
