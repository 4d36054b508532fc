"""Trainings with a fairness adjustment: the decisions against linear programming."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from scipy.stats import spearmanr
from tests.resumed import results, stop_at
from torch import Tensor, nn

from paretocosmos import evaluate, fit, load_problem, load_run
from paretocosmos.config.presets import choose_network, find_rate_gap
from paretocosmos.errors import ConfigurationError
from paretocosmos.evaluation import compute_quality, fit_postprocessing, load_samples_for
from paretocosmos.fairness import AdjustedNetwork
from paretocosmos.nn.conditioning import Film, TrainingTask, Unconditioned, training_task
from paretocosmos.objectives import BinaryCrossEntropy, RateObjective
from paretocosmos.problems import SPLITS, Problem, Split
from paretocosmos.registry import find
from paretocosmos.types import Batch

KINDS, GROUPS = 300, 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows(Problem):
    """Rows in memory."""

    splits: Mapping[str, Batch] = field(default_factory=dict)

    def split(self, name: Split) -> Batch:
        return self.splits[name]


class Oracle(nn.Module):
    """Knows a small world: the share of class and group among people of every kind."""

    def __init__(self, shares: Tensor) -> None:
        super().__init__()
        self.shares = nn.Parameter(shares)

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        joint = self.shares[inputs.squeeze(-1).long()]
        yes = joint[:, 1].sum(dim=-1, keepdim=True)
        return {
            "answer": yes.logit(),
            "groups_of_no": joint[:, 0].log(),
            "groups_of_yes": joint[:, 1].log(),
        }


def _world(gap: str, groups: int = GROUPS) -> tuple[AdjustedNetwork, Rows, Tensor]:
    """People of 300 kinds, whose shares of classes and groups are known."""
    generator = torch.Generator().manual_seed(3)
    taste = torch.randn(KINDS, 1, 1, generator=generator)
    group, label = torch.arange(groups) - 1.0, torch.tensor([[-0.5], [0.5]])
    counts = torch.poisson(15 * (taste * label + 0.4 * taste * group).exp(), generator).long() + 1
    places = torch.meshgrid(*map(torch.arange, counts.shape), indexing="ij")
    kind, label, group = (one.flatten().repeat_interleave(counts.flatten()) for one in places)
    batch = Batch(kind.double().unsqueeze(-1), {"label": label.double(), "sensitive": group})
    problem = Rows(
        name="world",
        objectives=(BinaryCrossEntropy(), find("objectives", gap)(groups=groups)),
        reference=(2, 2),
        input_shape=(1,),
        splits=dict.fromkeys(SPLITS, batch),
        outputs=1,
    )
    shares = counts.double() / counts.sum(dim=(1, 2), keepdim=True)
    model = AdjustedNetwork(Oracle(shares), 2, sensitive_groups=groups).eval()
    return model, problem, counts.double()


def _fit(model: AdjustedNetwork, problem: Problem) -> TrainingTask:
    """Fit the adjustment as a training does."""
    task = training_task(model, problem.objectives)
    fit_postprocessing(task, problem)
    return task


def _best_accuracy(gap: str, counts: np.ndarray, bound: float) -> float:
    """The most that decisions by kind, drawn by lot if need be, have right within the bound."""
    total = counts.sum()
    gain = (counts[:, 1] - counts[:, 0]).sum(axis=-1) / total
    every: dict[str, list[tuple[int, ...]]] = {
        "demographic_parity": [(0, 1)],
        "tpr_gap": [(1,)],
        "fpr_gap": [(0,)],
        "equalized_odds": [(0,), (1,)],
        "selection_and_tpr_gap": [(1,), (0, 1)],
    }
    rows: list[np.ndarray] = []
    for chosen in every[gap]:
        of = counts[:, list(chosen)].sum(axis=1)
        rates = of / of.sum(axis=0)
        rows += [
            rates[:, a] - rates[:, b]
            for a in range(rates.shape[1])
            for b in range(rates.shape[1])
            if a != b
        ]
    found = linprog(-gain, A_ub=np.array(rows), b_ub=np.full(len(rows), bound), bounds=(0, 1))
    return float(counts[:, 0].sum() / total - found.fun)


@pytest.mark.system
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize(
    "gap", ["demographic_parity", "tpr_gap", "fpr_gap", "equalized_odds", "selection_and_tpr_gap"]
)
def test_its_decisions_are_the_best_that_have_the_gap(gap: str, groups: int) -> None:
    model, problem, counts = _world(gap, groups)
    _fit(model, problem)
    weights = torch.linspace(0, 1, 9)
    rays = torch.stack([1 - weights, weights], dim=1)
    front = evaluate(model, problem, rays=rays)
    label = problem.split("test").targets["label"] > 0.5
    for ray, found in zip(rays, front.values[:, 1], strict=True):
        logits = model(problem.split("test").inputs, ray).squeeze(-1)
        right = float(((logits > 0) == label).double().mean())
        # exact, but where the gap is about to change its sign, or several are closed in turns
        single = gap not in ("equalized_odds", "selection_and_tpr_gap")
        exact = found > 0.02 and groups == 2 and single
        lost = _best_accuracy(gap, counts.numpy(), float(found)) - right
        assert lost < (1e-6 if exact else 0.01)
    assert front.values[-1, 1] < 0.01 < 0.1 < front.values[0, 1]


def _rows(gap: str, weight: bool = False) -> Rows:
    """A table in which who is a yes and who is of which group follow from the same columns."""
    generator = torch.Generator().manual_seed(0)
    group = torch.randint(0, 2, (3000,), generator=generator)
    inputs = torch.randn(3000, 4, generator=generator) + group.unsqueeze(-1) * 0.7
    label = (inputs[:, 0] + torch.randn(3000, generator=generator) > 0.5).float()
    targets = {"label": label, "sensitive": group}
    if weight:
        targets["weight"] = torch.rand(3000, generator=generator)

    def part(start: int, end: int) -> Batch:
        return Batch(inputs[start:end], {n: t[start:end] for n, t in targets.items()})

    return Rows(
        name="rows",
        objectives=(BinaryCrossEntropy(), find("objectives", gap)()),
        reference=(2, 1),
        input_shape=(4,),
        splits={"train": part(0, 2000), "val": part(2000, 2500), "test": part(2500, 3000)},
        outputs=1,
    )


@pytest.mark.system
@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize("gap", ["selection_and_tpr_gap", "equalized_odds", "accuracy_gap"])
def test_more_weight_closes_more_of_the_gap(gap: str, weight: bool, tmp_path: Path) -> None:
    problem = _rows(gap, weight)
    run = fit(
        problem,
        conditioning="fairness_adjustment",
        settings={"epochs": 8, "sensitive_groups": 2},
        device="cpu",
        seed=1,
        out=tmp_path / "run",
    )
    front = evaluate(run.model, problem, split="train", rays=101)
    gaps = front.values[:, 1]
    assert (np.diff(gaps) < 1e-3).all()  # nowhere does more weight give a larger gap
    assert gaps[-1] < max(0.25 * gaps[0], 0.01)
    assert spearmanr(front.rays[:, 1], front.values[:, 0])[0] > 0.95


def test_cut_short_it_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "conditioning": "fairness_adjustment",
        "settings": {"sensitive_groups": 2, "evaluate_every": 1},
        "epochs": 3,
        "device": "cpu",
    }
    whole = fit(_rows("tpr_gap"), out=tmp_path / "whole", **given)
    with pytest.raises(InterruptedError):
        fit(_rows("tpr_gap"), out=tmp_path / "cut", progress=stop_at(2), **given)
    again = fit(_rows("tpr_gap"), out=tmp_path / "cut", resume=True, **given)
    assert results(again.folder) == results(whole.folder)
    kept, cut = whole.model.state_dict(), again.model.state_dict()
    assert "adjustment.multiplier_path" in kept
    assert all(torch.equal(value, cut[name]) for name, value in kept.items())


def test_the_best_epoch_may_be_one_that_answers_no_to_everybody(tmp_path: Path) -> None:
    """Yes is rare and hardly follows from 200 columns, so that later epochs learn rows by heart."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(1600, 200, generator=generator)
    label = (torch.rand(1600, generator=generator) < 0.3).float()
    group = torch.randint(0, 2, (1600,), generator=generator)

    def part(start: int, end: int) -> Batch:
        return Batch(inputs[start:end], {"label": label[start:end], "sensitive": group[start:end]})

    problem = dataclasses.replace(
        _rows("demographic_parity"),
        input_shape=(200,),
        splits={"train": part(0, 800), "val": part(800, 1400), "test": part(1400, 1600)},
    )
    settings = {"sensitive_groups": 2, "evaluate_every": 1}
    run = fit(
        problem,
        conditioning="fairness_adjustment",
        settings=settings,
        epochs=6,
        engine="eager",
        device="cpu",
        out=tmp_path / "run",
    )
    assert run.record["epoch_selected"] < 6
    loaded = load_run(tmp_path / "run")
    for ray in torch.eye(2):
        assert bool((loaded.model(inputs, ray) <= 0).all())  # nobody is answered yes
    assert not loaded.model.state_dict()["adjustment.multiplier_path"].any()


def test_multipliers_of_another_epoch_are_forgotten() -> None:
    model, problem, _ = _world("demographic_parity")
    _fit(model, problem)
    assert model.adjustment.multiplier_path.any()
    with torch.no_grad():
        model.backbone.shares[:, 1] *= 1e-3
    _fit(model, problem)
    assert not model.adjustment.multiplier_path.any()


@pytest.mark.filterwarnings("ignore::paretocosmos.errors.BenchmarkWarning")
def test_tables_with_a_gap_of_rates_are_adjusted_by_default() -> None:
    adult = load_problem("adult")
    assert isinstance(find_rate_gap(adult), RateObjective)
    assert choose_network("default", adult, "linear")["conditioning"] == "fairness_adjustment"
    assert choose_network("default", adult, "cosmos")["conditioning"] == "film"
    assert choose_network("paper", adult, "linear")["conditioning"] == "concat"
    worst = load_problem("adult", settings={"fairness": "worst_group"})
    assert choose_network("default", worst, "linear")["conditioning"] == "film"


def test_a_backbone_of_ones_own_hears_the_ray(tmp_path: Path) -> None:
    backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    given: dict[str, Any] = {"backbone": backbone, "device": "cpu", "out": tmp_path / "run"}
    run = fit(_rows("tpr_gap"), epochs=1, engine="eager", **given)
    assert isinstance(run.model, Film)
    assert run.front.values.shape == (25, 2)
    given["out"] = tmp_path / "adjusted"
    with pytest.raises(ConfigurationError, match=r"`groups_of_no`.*one tensor.*`conditioning`"):
        fit(_rows("tpr_gap"), epochs=1, conditioning="fairness_adjustment", **given)
    assert not given["out"].exists()


def test_it_is_trained_on_labels_and_groups_alone() -> None:
    model, problem, _ = _world("tpr_gap")
    task = training_task(model, problem.objectives)
    names = [objective.name for objective in task.objectives]
    assert names == ["binary_cross_entropy", "group_entropy"]
    assert {*dict(task.network.named_parameters())} <= {*dict(model.named_parameters())}
    batch = problem.split("train")
    heads = model.call(batch.inputs)
    assert not isinstance(heads, Tensor)
    positive = batch.targets["label"][:, None] > 0.5
    rows = torch.where(positive, heads["groups_of_yes"], heads["groups_of_no"])
    expected = nn.functional.cross_entropy(rows, batch.targets["sensitive"])
    outputs = task.network(batch.inputs, torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(task.objectives[1].loss(outputs, batch.targets), expected)


def test_other_networks_are_trained_on_the_objectives_themselves() -> None:
    network, objectives = nn.Linear(1, 1), _rows("tpr_gap").objectives
    for model in (network, Unconditioned(network, 2)):
        assert training_task(model, objectives) == TrainingTask(model, objectives, None)


def test_epochs_are_compared_by_held_out_losses() -> None:
    model, problem, counts = _world("tpr_gap")
    shares = counts.numpy() / counts.numpy().sum()
    yes = shares[:, 1].sum(axis=-1) / shares.sum(axis=(1, 2))
    labels = -(shares[:, 1].sum(axis=-1) @ np.log(yes) + shares[:, 0].sum(axis=-1) @ np.log1p(-yes))
    groups = -(shares * np.log(shares / shares.sum(axis=-1, keepdims=True))).sum()
    task = training_task(model, problem.objectives)
    quality = compute_quality(task, problem, load_samples_for(model, problem, "val"))
    assert quality == pytest.approx(-(labels + groups))


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="compares 2 groups"):
        fit(
            _rows("tpr_gap"),
            conditioning="fairness_adjustment",
            settings={"epochs": 1, "sensitive_groups": 3},
            device="cpu",
            out=tmp_path / "groups",
        )
    assert not (tmp_path / "groups").exists()
    with pytest.raises(ConfigurationError, match="one output"):
        fit("toy_convex", conditioning="fairness_adjustment", device="cpu", out=tmp_path / "toy")
    with pytest.raises(ConfigurationError, match="`worst_group`"):
        _world("tpr_gap")[0].training_task(_rows("worst_group").objectives)
