"""Lightning trains one network for the whole front, as our own loop does."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from paretocosmos import Cosmos, Front, Problem, condition, cosmos_loss, evaluate, fit, hypervolume
from paretocosmos.errors import ConfigurationError
from paretocosmos.integrations.lightning import ParetoModule
from paretocosmos.objectives import MeanSquaredError
from paretocosmos.pareto import even_rays
from paretocosmos.types import Batch

lightning = pytest.importorskip("lightning", reason="pip install --group extras")
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),  # Lightning's own
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no"),
    pytest.mark.filterwarnings("ignore:.*the number of training batches"),
    pytest.mark.filterwarnings("ignore:The dirpath has changed"),
]

OBJECTIVES = (MeanSquaredError(name="one", target="a"), MeanSquaredError(name="two", target="b"))
REFERENCE = (5.0, 5.0)


def _data(samples: int = 512, seed: int = 0) -> Batch:
    """Targets that lie 2 apart: a network that answers y + 1 - 2 s has losses 4 s², 4 (1 - s)²."""
    x = torch.randn(samples, 3, generator=torch.Generator().manual_seed(seed))
    y = torch.tanh(x[:, :1])
    return Batch(x, {"a": y + 1, "b": y - 1})


def _loader(batch: Batch, size: int = 64) -> DataLoader[Any]:
    inputs: Any = batch.inputs
    return DataLoader(TensorDataset(inputs, batch.targets["a"], batch.targets["b"]), size)


def _as_they_are(batches: list[Any]) -> DataLoader[Any]:
    whole: Any = batches  # Lightning takes a list itself for several loaders
    return DataLoader(whole, batch_size=None)


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoTargets(Problem):
    splits: dict[str, Batch]

    def split(self, name: str) -> Batch:
        return self.splits[name]


def _problem() -> TwoTargets:
    return TwoTargets(
        name="two_targets",
        objectives=OBJECTIVES,
        reference=REFERENCE,
        input_shape=(3,),
        outputs=1,
        splits={"train": _data(), "val": _data(200, 1), "test": _data(200, 2)},
    )


def _model(seed: int = 3, preset: str = "paper") -> nn.Module:
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
    return condition(network, 2, preset=preset)


def _module(model: nn.Module | None = None, preset: str = "paper", **given: Any) -> ParetoModule:
    model = _model(preset=preset) if model is None else model
    return ParetoModule(model, OBJECTIVES, preset=preset, **({"reference": REFERENCE} | given))


def _trainer(**given: Any) -> Any:
    quiet = {
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return lightning.Trainer(**(quiet | given))


def test_the_front_is_the_known_one_and_that_of_fit(tmp_path: Path) -> None:
    problem = _problem()
    module = _module(learning_rate=1e-2)
    trainer = _trainer(max_epochs=40)
    trainer.fit(module, _loader(problem.split("train")), _loader(problem.split("val"), 150))
    front = module.front(_loader(problem.split("test"), 150), split="test")

    exact = 4 * (1 - even_rays(25, 2).double().numpy()) ** 2
    np.testing.assert_allclose(front.values, exact, atol=0.15)
    assert np.ptp(front.values, axis=0).min() > 3
    settings = {"learning_rate": 1e-2, "batch_size": 64}
    run = fit(
        problem, preset="paper", model=_model(), epochs=40, settings=settings, out=tmp_path / "run"
    )
    assert hypervolume(front) == pytest.approx(hypervolume(run.front), rel=0.01)
    known = Front(front.rays, exact, front.names, front.reference)
    assert hypervolume(front) == pytest.approx(hypervolume(known), rel=0.01)


class InThousandths(MeanSquaredError):  # noqa: N818
    """The same in another unit."""

    def loss(self, outputs: Any, targets: Any) -> Tensor:
        return 1000 * super().loss(outputs, targets)


def test_by_default_the_front_is_the_known_one_in_any_unit() -> None:
    """w·(4 s², 4 (1 - s)²) is smallest at s = 1 - w; with one loss times 1,000 too."""
    problem, fronts = _problem(), []
    for second in (OBJECTIVES[1], InThousandths(name="two", target="b")):
        objectives = (OBJECTIVES[0], second)
        module = ParetoModule(
            _model(preset="default"), objectives, reference=REFERENCE, learning_rate=1e-2
        )
        trainer = _trainer(max_epochs=40)
        trainer.fit(module, _loader(problem.split("train")))
        front = module.front(_loader(problem.split("test"), 150), split="test")
        unit = 1000 if second is not OBJECTIVES[1] else 1
        fronts.append(front.values / [1, unit])
        scales = module.weighting.state["loss_scales"] / torch.tensor([1.0, unit])
        weights = (0.01 + 0.98 * even_rays(25, 2).double()) / scales
        shares = (weights / weights.sum(dim=1, keepdim=True)).numpy()
        np.testing.assert_allclose(fronts[-1], 4 * (1 - shares) ** 2, atol=0.1)
        rates = trainer.optimizers[0].param_groups
        assert [group["weight_decay"] for group in rates] == [0.05, 0.0]
        assert rates[0]["lr"] < 1e-4  # at the end of a cosine
        kept = {id(p) for p in rates[1]["params"]}
        reads: Any = module.model.ray_parameters
        named = dict(module.model.named_parameters())
        assert kept == {id(p) for n, p in named.items() if n in reads or p.ndim < 2}
    np.testing.assert_allclose(fronts[1], fronts[0], atol=0.02)


def test_what_it_logs_is_what_evaluate_finds(tmp_path: Path) -> None:
    problem = _problem()
    callbacks = lightning.pytorch.callbacks
    best = callbacks.ModelCheckpoint(tmp_path, monitor="val_hypervolume", mode="max")
    stop = callbacks.EarlyStopping("val_hypervolume", mode="max", patience=50)
    trainer = _trainer(max_epochs=4, enable_checkpointing=True, callbacks=[best, stop])
    # a rate so large that the last epoch need not be the best
    module = _module(learning_rate=0.1, rays=11)
    trainer.fit(module, _loader(problem.split("train")), _loader(problem.split("val"), 150))
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    front = evaluate(module.model, problem, split="val", rays=11)
    centre = evaluate(module.model, problem, split="val", rays=[[0.5, 0.5]]).values[0]
    assert logged["val_hypervolume"] == pytest.approx(hypervolume(front), rel=1e-5)
    assert [logged["val_one"], logged["val_two"]] == pytest.approx(centre, rel=1e-5)
    assert {"train_one", "train_two", "train_loss"} <= logged.keys()

    given: dict[str, Any] = {"model": _model(4), "objectives": OBJECTIVES}
    given |= {"reference": REFERENCE, "preset": "paper"}
    kept = ParetoModule.load_from_checkpoint(best.best_model_path, **given)
    front = evaluate(kept.model, problem, split="val")
    again = kept.front(_loader(problem.split("val")))
    assert hypervolume(again) == pytest.approx(hypervolume(front), rel=1e-5)
    found = hypervolume(evaluate(kept.model, problem, split="val", rays=11))
    assert float(best.best_model_score) == pytest.approx(found, rel=1e-5)
    (tested,) = trainer.test(module, _loader(problem.split("test")), verbose=False)
    expected = hypervolume(evaluate(module.model, problem, rays=11))
    assert tested["test_hypervolume"] == pytest.approx(expected, rel=1e-5)


RATE = 1 / 32  # a power of 2, so that dividing by it again rounds nothing


class Sgd(ParetoModule):
    """A step is minus the gradient times the rate; an override as the docstring says."""

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=RATE)


@pytest.mark.parametrize("accumulated", [1, 3])
def test_a_step_is_the_gradient_of_the_cosmos_loss(accumulated: int) -> None:
    data, rays = _data(30 * accumulated), []
    model = _model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    hook = model.register_forward_pre_hook(lambda _, given: rays.append(given[1].clone()))
    given: dict[str, Any] = {"reference": REFERENCE, "method": Cosmos(penalty=2.0)}
    module = Sgd(model, OBJECTIVES, preset="paper", **given)
    trainer = _trainer(max_steps=1, accumulate_grad_batches=accumulated)
    trainer.fit(module, _loader(data, 30))
    hook.remove()
    assert len({round(float(ray[0, 0]), 5) for ray in rays}) == accumulated

    literal = _model()
    for at, ray in enumerate(rays):
        share = slice(30 * at, 30 * (at + 1))
        outputs = literal(data.inputs[share], ray[0])
        losses = [(outputs - data.targets[name][share]).square().mean() for name in ("a", "b")]
        (cosmos_loss(torch.stack(losses), ray[0], penalty=2.0) / accumulated).backward()
    for (name, parameter), expected in zip(
        model.named_parameters(), literal.parameters(), strict=True
    ):
        gradient = (before[name] - parameter.detach()) / RATE
        torch.testing.assert_close(gradient, expected.grad, rtol=1e-4, atol=1e-5)


class Resumable:
    """Batches from where a checkpoint left off; a plain loader starts an epoch again."""

    def __init__(self, batches: list[Any]) -> None:
        self.batches, self.done = batches, 0

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        start = self.done
        for at in range(start, len(self.batches)):
            self.done = (at + 1) % len(self.batches)
            yield self.batches[at]

    def state_dict(self) -> dict[str, int]:
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.done = state["done"]


@pytest.mark.parametrize("method", ["cosmos", "epo", None], ids=["cosmos", "epo", "default"])
@pytest.mark.parametrize("steps", [8, 11], ids=["after an epoch", "within one"])
def test_a_resumed_training_ends_with_the_same_bits(
    method: str | None, steps: int, tmp_path: Path
) -> None:
    preset = "paper" if method else "default"

    def train(module: ParetoModule, folder: str, checkpoint: Path | None = None) -> None:
        keep = lightning.pytorch.callbacks.ModelCheckpoint(
            tmp_path / folder, "{step}", every_n_train_steps=1, save_top_k=-1
        )
        given = {"enable_checkpointing": True, "accumulate_grad_batches": 2}
        trainer = _trainer(max_epochs=4, callbacks=[keep], **given)
        loader = Resumable(list(_loader(_data(500))))  # 8 batches, the last one short
        trainer.fit(module, loader, ckpt_path=checkpoint)

    whole, rays = _module(preset=preset, method=method, seed=5), []
    whole.model.register_forward_pre_hook(lambda _, given: rays.append(given[1].clone()))
    train(whole, "whole")  # 4 epochs of 4 steps
    assert len(torch.cat([ray[:1] for ray in rays]).unique(dim=0)) == 32  # another for every batch
    resumed = _module(_model(9, preset), preset, method=method, seed=5)
    train(resumed, "resumed", tmp_path / "whole" / f"step={steps}.ckpt")
    for name, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    assert resumed.weighting.state_dict() == whole.weighting.state_dict()
    assert whole.weighting.state_dict()["epoch"] == 3
    assert method != "epo" or whole.weighting.state_dict()["state"]["steps"] == 32


def test_in_half_precision_the_network_is_and_the_losses_are_not() -> None:
    class Seen(Cosmos):
        def weights(self, losses: Tensor, *given: Any) -> Any:
            assert losses.dtype == torch.float32
            return super().weights(losses, *given)

    model, kinds = _model(), set()
    model.register_forward_hook(lambda _, __, out: kinds.add((out.dtype, model.training)))
    module = _module(model, method=Seen(), learning_rate=1e-2)
    problem = _problem()
    trainer = _trainer(max_epochs=20, precision="bf16-mixed")
    trainer.fit(module, _loader(problem.split("train")), _loader(problem.split("val"), 150))
    assert kinds == {(torch.bfloat16, True), (torch.float32, False)}
    front = evaluate(model, problem, split="val")
    logged = float(trainer.callback_metrics["val_hypervolume"])
    assert logged == pytest.approx(hypervolume(front), rel=1e-5)
    assert np.ptp(front.values, axis=0).min() > 2


DataModule: Any = lightning.LightningDataModule


class Halves(DataModule):  # type: ignore[misc]
    def setup(self, stage: str) -> None:
        self.data = {"validate": _data(40, 1), "test": _data(40, 2)}[stage]

    def val_dataloader(self) -> DataLoader[Any]:
        return _loader(self.data)

    def test_dataloader(self) -> DataLoader[Any]:
        return _loader(self.data)


@pytest.mark.parametrize(("split", "seed"), [("val", 1), ("test", 2)])
def test_a_front_of_a_data_module(split: str, seed: int) -> None:
    module = _module()
    module.train()
    front = module.front(Halves(), split=split)
    assert module.training
    assert module.model.training
    assert front == module.front(_loader(_data(40, seed)), split=split)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"`forward\(inputs, ray\)`.*Sequential"):
        ParetoModule(nn.Sequential(nn.Linear(3, 1)), OBJECTIVES, reference=REFERENCE)
    loader = _loader(_data(64))
    with pytest.raises(ConfigurationError, match="one loader, found several"):
        _trainer(max_steps=1).validate(_module(), [loader, loader], verbose=False)


@pytest.mark.parametrize("given", ["inputs", "targets", "batch", "columns"])
def test_predictions_are_those_at_a_preference(given: str) -> None:
    data, module = _data(20), _module()
    inputs: Any = data.inputs
    kinds: dict[str, Any] = {
        "inputs": [inputs[:12], inputs[12:]],
        "targets": [(inputs, data.targets)],
        "batch": [data],
        "columns": [{"input": inputs, **data.targets}],
    }
    assert module.preference == (0.5, 0.5)
    for ray in ((0.5, 0.5), (0.9, 0.1)):
        module.preference = ray
        found = _trainer().predict(module, _as_they_are(kinds[given]))
        with torch.no_grad():
            expected = module.model(inputs, torch.tensor(ray))
        torch.testing.assert_close(torch.cat(found), expected)
    with pytest.raises(ConfigurationError, match=r"sum of 1\.1"):
        module.preference = (0.9, 0.2)


class Shares(DataModule):  # type: ignore[misc]
    """One half of a batch for each process."""

    def train_dataloader(self) -> DataLoader[Any]:
        return _loader(_half(self.trainer.global_rank), 30)

    def val_dataloader(self) -> DataLoader[Any]:
        return self.train_dataloader()


def _uneven() -> Batch:
    """Halves so different that the mean of two fronts is not that of the whole."""
    data, scale = _data(60), torch.tensor([1.0, 0.3]).repeat_interleave(30).unsqueeze(1)
    return Batch(data.inputs, {name: scale * target for name, target in data.targets.items()})


def _half(rank: int) -> Batch:
    data, share = _uneven(), slice(30 * rank, 30 * (rank + 1))
    targets = {name: target[share] for name, target in data.targets.items()}
    return Batch(data.inputs[share], targets)


PROCESSES = """
import os
import sys
import torch
sys.path.insert(0, {here!r})
import test_lightning as tests
torch.set_num_threads(1)
for ranks in ("agree", "differ"):
    given = {{"devices": 2, "strategy": "ddp", "use_distributed_sampler": False}}
    trainer = tests._trainer(max_epochs=1, **given)
    module = tests._stepper(ranks)
    trainer.fit(module, datamodule=tests.Shares())
    end = module.state_dict() | {{"hypervolume": trainer.callback_metrics["val_hypervolume"]}}
    torch.save(end, f"{{sys.argv[1]}}-{{ranks}}-{{trainer.global_rank}}.pt")
torch.distributed.barrier()
os._exit(0)  # gloo's threads may abort a process that ends the long way
"""


def _stepper(ranks: Any) -> Sgd:
    method = Cosmos(penalty=2.0)
    return Sgd(
        _model(), OBJECTIVES, reference=REFERENCE, preset="paper", method=method, ranks=ranks
    )


def test_several_processes_agree_on_a_ray_or_differ(tmp_path: Path) -> None:
    script = tmp_path / "processes.py"
    script.write_text(PROCESSES.format(here=str(Path(__file__).parent)))
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path / "end")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    ends = {
        ranks: [torch.load(tmp_path / f"end-{ranks}-{rank}.pt") for rank in range(2)]
        for ranks in ("agree", "differ")
    }
    for one, two in ends.values():
        assert all(torch.equal(one[name], two[name]) for name in one)

    # agreed: what one process does with the whole batch
    alone, data = _stepper("agree"), _uneven()
    trainer = _trainer(max_epochs=1)
    trainer.fit(alone, _loader(data, 60), _loader(data, 60))
    expected = alone.state_dict() | {"hypervolume": trainer.callback_metrics["val_hypervolume"]}
    assert float(expected["hypervolume"]) > 5
    for name, value in expected.items():
        torch.testing.assert_close(ends["agree"][0][name], value, rtol=1e-5, atol=1e-6)

    # each its own: the mean of the steps of both
    literal, whole = _model(), _stepper("differ")
    for rank in range(2):
        ray, half = whole.weighting.draw_rays((0, 0), rank, 1)[0], _half(rank)
        outputs = literal(half.inputs, ray)
        losses = [(outputs - half.targets[name]).square().mean() for name in ("a", "b")]
        (cosmos_loss(torch.stack(losses), ray, penalty=2.0) / 2).backward()
    for name, parameter in literal.named_parameters():
        assert parameter.grad is not None
        stepped = parameter.detach() - RATE * parameter.grad
        torch.testing.assert_close(
            ends["differ"][0][f"model.{name}"], stepped, rtol=1e-4, atol=1e-6
        )
