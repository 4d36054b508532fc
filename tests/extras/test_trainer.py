"""Hugging Face's Trainer trains one network for the whole front, as our own loop does."""

import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretocosmos import Cosmos, Front, Problem, condition, cosmos_loss, evaluate, fit, hypervolume
from paretocosmos.errors import ConfigurationError, DataError
from paretocosmos.integrations.transformers import ParetoTrainer
from paretocosmos.objectives import CrossEntropy, accuracy
from paretocosmos.pareto import even_rays
from paretocosmos.pareto.metrics import monotonicity
from paretocosmos.types import Batch

transformers = pytest.importorskip("transformers", reason="pip install --group extras")
pytest.importorskip("accelerate", reason="pip install --group extras")

OBJECTIVES = tuple(
    CrossEntropy(name=name, output="logits", target=name) for name in ("topic", "tone")
)
REFERENCE = (3.0, 3.0)
WORDS, LENGTH, CLASSES = 12, 6, 2
Sample = dict[str, Any]
# no clipping, no schedule, no shuffling: a step that can be written out
PLAIN: dict[str, Any] = {
    "max_grad_norm": 0.0, "lr_scheduler_type": "constant", "train_sampling_strategy": "sequential",
}  # fmt: skip


def _data(samples: int, seed: int = 0) -> Batch:
    """Every word tells both labels; they are never the same, and one answer must do.

    With a share s for the first label the losses are -log s and -log(1 - s).
    """
    generator = torch.Generator().manual_seed(seed)
    topic = torch.randint(0, CLASSES, (samples,), generator=generator)
    words = CLASSES * torch.randint(0, WORDS // CLASSES, (samples, LENGTH), generator=generator)
    words += topic.unsqueeze(1)
    inputs = {"input_ids": words, "attention_mask": torch.ones_like(words)}
    return Batch(inputs, {"topic": topic, "tone": 1 - topic})


def _samples(batch: Batch) -> list[Sample]:
    columns: dict[str, Tensor] = {**batch.inputs, **batch.targets}  # type: ignore[dict-item]
    return [{name: part[at] for name, part in columns.items()} for at in range(len(batch))]


@dataclass(frozen=True, kw_only=True, eq=False)
class Opposed(Problem):
    splits: dict[str, Batch]

    def split(self, name: str) -> Batch:
        return self.splits[name]


def _problem() -> Opposed:
    return Opposed(
        name="opposed",
        objectives=OBJECTIVES,
        reference=REFERENCE,
        input_shape=(LENGTH,),
        outputs={"logits": CLASSES},
        splits={"train": _data(512), "val": _data(130, 1), "test": _data(130, 2)},
    )


def _model(seed: int = 5, *, dropout: float = 0.0, preset: str = "paper") -> nn.Module:
    torch.manual_seed(seed)
    sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "vocab_size": WORDS}
    quiet = {"dropout": dropout, "attention_dropout": dropout, "seq_classif_dropout": dropout}
    config = transformers.DistilBertConfig(
        max_position_embeddings=LENGTH, num_labels=CLASSES, **sizes, **quiet
    )
    network = transformers.DistilBertForSequenceClassification(config)
    return condition(network, 2, how="film", preset=preset)


def _trainer(folder: Path, model: nn.Module | None = None, **given: Any) -> ParetoTrainer:
    own = {"objectives", "method", "rays", "optimizers", "metrics", "train_dataset", "eval_dataset"}
    own |= {"settings", "rays_per_batch", "ranks", "reference", "preset", "compute_metrics"}
    quiet = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "save_strategy": "no"}
    args = {key: value for key, value in given.items() if key not in own}
    rest = {key: value for key, value in given.items() if key in own}
    rest = {"objectives": OBJECTIVES, "reference": REFERENCE, "preset": "paper"} | rest
    arguments = transformers.TrainingArguments(str(folder), **(quiet | args))
    return ParetoTrainer(_model() if model is None else model, arguments, **rest)


def test_the_front_is_the_known_one_and_that_of_fit(tmp_path: Path) -> None:
    problem = _problem()
    trainer = _trainer(
        tmp_path,
        num_train_epochs=16,
        per_device_train_batch_size=32,
        learning_rate=3e-3,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        train_dataset=_samples(problem.split("train")),
        logging_steps=50,
    )
    trainer.train()
    front = trainer.front(_samples(problem.split("test")))
    exact = -even_rays(25, 2).double().log().numpy()
    assert np.ptp(front.values, axis=0).min() > 1.5
    known = Front(front.rays, exact, front.names, front.reference)
    assert hypervolume(front) == pytest.approx(hypervolume(known), rel=0.02)
    settings = {"learning_rate": 3e-3, "batch_size": 32}
    run = fit(
        problem, preset="paper", model=_model(), epochs=16, settings=settings, out=tmp_path / "run"
    )
    assert hypervolume(front) == pytest.approx(hypervolume(run.front), rel=0.02)
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(logged) == 5
    # of any ray: at the simplex' corners one is small and the other large
    for name in ("topic", "tone"):
        assert all(0.05 < entry[f"loss_{name}"] < 5 for entry in logged)


def test_by_default_the_front_is_the_known_one_and_what_reads_the_ray_is_not_decayed(
    tmp_path: Path,
) -> None:
    problem = _problem()
    trainer = _trainer(
        tmp_path,
        _model(preset="default"),
        preset="default",
        num_train_epochs=16,
        per_device_train_batch_size=32,
        learning_rate=3e-3,
        weight_decay=0.01,
        train_dataset=_samples(problem.split("train")),
    )
    trainer.train()
    front = trainer.front(_samples(problem.split("test")))
    exact = -even_rays(25, 2).double().log().numpy()
    known = Front(front.rays, exact, front.names, front.reference)
    assert hypervolume(front) == pytest.approx(hypervolume(known), rel=0.02)
    assert monotonicity(front).min() > 0.95
    scales = trainer.weighting.state["loss_scales"]
    assert float(scales.min()) > 0
    model: Any = trainer.model
    decayed = set(trainer.get_decay_parameter_names(model))
    assert decayed.isdisjoint(model.ray_parameters)
    assert any(name.endswith("q_lin.layer.weight") for name in decayed)


def test_evaluate_reports_what_evaluate_finds(tmp_path: Path) -> None:
    problem = _problem()
    val = _samples(problem.split("val"))
    trainer = _trainer(
        tmp_path,
        num_train_epochs=3,
        learning_rate=3e-3,
        train_dataset=_samples(problem.split("train")),
        eval_dataset=val,
        per_device_eval_batch_size=50,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="hypervolume",
        rays=11,
        metrics={"topic_accuracy": lambda o, t: accuracy(o, t, output="logits", target="topic")},
    )
    trainer.train()
    found = trainer.evaluate()
    front = evaluate(trainer.model, problem, split="val", rays=11)
    centre = evaluate(trainer.model, problem, split="val", rays=[[0.5, 0.5]])
    assert found["eval_hypervolume"] == pytest.approx(hypervolume(front), rel=1e-5)
    assert [found["eval_topic"], found["eval_tone"]] == pytest.approx(centre.values[0], rel=1e-5)
    assert 0 <= found["eval_topic_accuracy"] <= 1
    history = [e["eval_hypervolume"] for e in trainer.state.log_history if "eval_topic" in e]
    assert trainer.state.best_metric == pytest.approx(max(history))
    assert hypervolume(front) == pytest.approx(max(history), rel=1e-5)  # the best was loaded

    again = trainer.front(val, rays=11, split="val")
    np.testing.assert_allclose(again.values, front.values, rtol=1e-4, atol=1e-6)
    assert again.split == "val"
    assert again.metrics["topic_accuracy"].shape == (11,)
    assert len(trainer.front(val, rays=[[0.5, 0.5]])) == 1
    assert trainer.evaluate()["eval_hypervolume"] == found["eval_hypervolume"]  # 11 rays as before
    for ray in (None, [0.9, 0.1]):
        predicted = trainer.predict(val, ray=ray)
        with torch.no_grad():
            expected = trainer.model(problem.split("val").inputs, torch.tensor(ray or [0.5, 0.5]))
        np.testing.assert_allclose(predicted.predictions["logits"], expected.logits, atol=1e-5)
        assert predicted.label_ids.keys() == {"topic", "tone"}
    bare = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in val]
    assert trainer.predict(bare).predictions["logits"].shape == (130, CLASSES)
    both = trainer.evaluate({"one": val, "two": val[:40]})
    assert both["eval_one_hypervolume"] == found["eval_hypervolume"]
    assert "eval_two_hypervolume" in both


def _literal(model: nn.Module, batch: Batch, ray: Tensor, share: slice) -> Tensor:
    inputs = {name: part[share] for name, part in batch.inputs.items()}
    logits = model(inputs, ray).logits
    losses = [F.cross_entropy(logits, batch.targets[name][share]) for name in ("topic", "tone")]
    return cosmos_loss(torch.stack(losses), ray, penalty=2.0)


@pytest.mark.parametrize("accumulated", [1, 3])
def test_a_step_is_the_gradient_of_the_cosmos_loss(accumulated: int, tmp_path: Path) -> None:
    data, rays = _data(10 * accumulated), []
    model, literal = _model(), _model()
    hook = model.register_forward_pre_hook(lambda _, given: rays.append(given[1].clone()))
    trainer = _trainer(
        tmp_path,
        model,
        method=Cosmos(penalty=2.0),
        max_steps=1,
        per_device_train_batch_size=10,
        gradient_accumulation_steps=accumulated,
        **PLAIN,
        train_dataset=_samples(data),
        optimizers=(torch.optim.SGD(model.parameters(), lr=1.0), None),
    )
    trainer.train()
    hook.remove()
    assert len({round(float(ray[0, 0]), 5) for ray in rays}) == accumulated
    for at, ray in enumerate(rays):
        share = slice(10 * at, 10 * (at + 1))
        (_literal(literal, data, ray[0], share) / accumulated).backward()
    for (name, found), expected in zip(model.named_parameters(), literal.parameters(), strict=True):
        assert expected.grad is not None
        stepped = expected.detach() - expected.grad
        torch.testing.assert_close(found.detach(), stepped, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("method", ["cosmos", "epo"])
def test_a_resumed_training_ends_with_the_same_bits(method: str, tmp_path: Path) -> None:
    rays: list[Tensor] = []

    def train(folder: str, seed: int, resume: Path | None = None) -> ParetoTrainer:
        model = _model(seed, dropout=0.1)
        model.register_forward_pre_hook(lambda _, given: rays.append(given[1].clone()))
        trainer = _trainer(
            tmp_path / folder,
            model,
            method=method,
            seed=7,
            num_train_epochs=3,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            save_strategy="steps",
            save_steps=1,
            train_dataset=_samples(_data(60)),  # 8 batches, the last one short
        )
        trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
        return trainer

    whole = train("whole", 5)
    assert len(torch.cat(rays).unique(dim=0)) == 24  # another one for every batch
    for steps in (4, 7):  # after an epoch, and within one
        resumed = train(f"resumed-{steps}", 9, tmp_path / "whole" / f"checkpoint-{steps}")
        for name, value in whole.model.state_dict().items():
            assert torch.equal(resumed.model.state_dict()[name], value), (steps, name)
        assert resumed.weighting.state_dict() == whole.weighting.state_dict()
    assert whole.weighting.state_dict()["epoch"] == 2
    assert method == "cosmos" or whole.weighting.state_dict()["state"]["steps"] == 24


def test_in_half_precision_the_network_is_and_the_losses_are_not(tmp_path: Path) -> None:
    class Seen(Cosmos):
        def weights(self, losses: Tensor, *given: Any) -> Any:
            assert losses.dtype == torch.float32
            return super().weights(losses, *given)

    model, kinds = _model(), set()
    inner: Any = model
    inner.backbone.classifier.register_forward_hook(lambda _, __, out: kinds.add(out.dtype))
    trainer = _trainer(
        tmp_path,
        model,
        method=Seen(),
        bf16=True,
        num_train_epochs=6,
        learning_rate=3e-3,
        train_dataset=_samples(_data(256)),
        eval_dataset=_samples(_data(64, 1)),
    )
    trainer.train()
    assert kinds == {torch.bfloat16}
    assert trainer.evaluate()["eval_hypervolume"] > 3
    assert np.ptp(trainer.front(_samples(_data(64, 1))).values, axis=0).min() > 0.3


class Greedy(nn.Module):
    """Takes whatever it is given, by which a Trainer knows networks that scale their own loss."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer = nn.Linear(3 + 2, CLASSES)

    def forward(self, inputs: dict[str, Tensor], ray: Tensor, **rest: Any) -> dict[str, Tensor]:
        x = inputs["x"]
        return {"logits": self.layer(torch.cat([x, ray.expand(len(x), 2)], dim=1))}


def test_accumulated_batches_are_averaged_whatever_the_network_takes(tmp_path: Path) -> None:
    x, labels = torch.randn(12, 3), torch.randint(0, CLASSES, (12,))
    rows = [
        {"x": one, "labels": label, "tone": 1 - label} for one, label in zip(x, labels, strict=True)
    ]
    objectives = [CrossEntropy(name=n, output="logits", target=n) for n in ("label", "tone")]
    model, literal = Greedy(), Greedy()
    trainer = _trainer(
        tmp_path,
        model,
        objectives=objectives,
        method="linear",
        max_steps=1,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=3,
        **PLAIN,
        train_dataset=rows,
        optimizers=(torch.optim.SGD(model.parameters(), lr=1.0), None),
    )
    trainer.train()
    for at in range(3):
        share, ray = slice(4 * at, 4 * (at + 1)), trainer.weighting.draw_rays((0, at), 0, 1)[0]
        logits = literal({"x": x[share]}, ray)["logits"]
        one, two = (F.cross_entropy(logits, y) for y in (labels[share], 1 - labels[share]))
        ((ray[0] * one + ray[1] * two) / 3).backward()
    for found, expected in zip(model.parameters(), literal.parameters(), strict=True):
        assert expected.grad is not None
        torch.testing.assert_close(found.detach(), expected.detach() - expected.grad)


def test_the_callers_arguments_are_left_alone(tmp_path: Path) -> None:
    args = transformers.TrainingArguments(str(tmp_path), report_to="none", use_cpu=True)
    ParetoTrainer(_model(), args, objectives=OBJECTIVES, reference=REFERENCE)
    assert args.remove_unused_columns


def test_what_cannot_work_is_refused(tmp_path: Path) -> None:
    plain: Any = _model()
    with pytest.raises(ConfigurationError, match="found DistilBertForSequenceClassification"):
        _trainer(tmp_path, plain.backbone)
    with pytest.raises(ConfigurationError, match=r"`gradient_checkpointing`.*Sequential"):
        _trainer(
            tmp_path,
            condition(nn.Sequential(nn.Linear(3, 2)), 2, how="concat"),
            gradient_checkpointing=True,
        )
    with pytest.raises(ConfigurationError, match=r"CrossEntropy\(label_smoothing=0.1\)"):
        _trainer(tmp_path, label_smoothing_factor=0.1)
    rows = [{"input_ids": row["input_ids"], "topic": row["topic"]} for row in _samples(_data(8))]
    trainer = _trainer(tmp_path, train_dataset=rows, eval_dataset=rows, max_steps=1)
    with pytest.raises(DataError, match="target `tone`, found `topic`"):
        trainer.train()
    with pytest.raises(DataError, match="target `tone`, found `topic`"):
        trainer.evaluate()


def test_compute_metrics_sees_the_outputs_at_the_centre(tmp_path: Path) -> None:
    val, seen = _data(33, 1), []

    def compute(evaluated: Any) -> dict[str, float]:
        seen.append(evaluated.predictions["logits"])
        right = evaluated.predictions["logits"].argmax(axis=1) == evaluated.label_ids["topic"]
        return {"own": float(right.mean())}

    trainer = _trainer(
        tmp_path, eval_dataset=_samples(val), compute_metrics=compute, per_device_eval_batch_size=7
    )
    found = trainer.evaluate()
    with torch.no_grad():
        expected = trainer.model(val.inputs, torch.tensor([0.5, 0.5])).logits
    np.testing.assert_allclose(seen[0], expected, atol=1e-6)
    right = (expected.argmax(dim=1) == val.targets["topic"]).float().mean()
    assert found["eval_own"] == pytest.approx(float(right))
    assert found["eval_hypervolume"] > 0


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_changes_no_step(reentrant: bool, tmp_path: Path) -> None:
    ends, again = [], []
    for checkpointing in (False, True):
        model: Any = _model()
        (inside,) = (m for n, m in model.named_modules() if n.endswith("layer.0.layer.ffn.lin1"))
        inside.register_forward_hook(lambda *_: again.append(checkpointing))  # noqa: B023
        trainer = _trainer(
            tmp_path,
            model,
            max_steps=2,
            train_dataset=_samples(_data(20)),
            gradient_checkpointing=checkpointing,
            gradient_checkpointing_kwargs={"use_reentrant": reentrant},
        )
        trainer.train()
        ends.append(model.state_dict())
    # computed again in each of two steps, beside what is tried out before the first
    assert again.count(True) - again.count(False) == 2
    for name, value in ends[0].items():
        torch.testing.assert_close(ends[1][name], value, rtol=1e-5, atol=1e-7)


PROCESSES = """
import sys
import torch
sys.path.insert(0, {here!r})
import test_trainer as tests
torch.set_num_threads(1)
for ranks in ("agree", "differ"):
    trainer = tests._stepper(sys.argv[1], ranks, batch=10)
    trainer.train()
    found = {{"hypervolume": torch.tensor(trainer.evaluate()["eval_hypervolume"])}}
    end = trainer.model.state_dict() | found
    torch.save(end, f"{{sys.argv[1]}}/{{ranks}}-{{trainer.args.process_index}}.pt")
"""


def _stepper(folder: Any, ranks: str, *, batch: int) -> ParetoTrainer:
    model = _model()
    return _trainer(
        folder,
        model,
        method=Cosmos(penalty=2.0),
        ranks=ranks,
        max_steps=1,
        per_device_train_batch_size=batch,
        per_device_eval_batch_size=7,
        **PLAIN,
        train_dataset=_samples(_data(20)),
        eval_dataset=_samples(_data(33, 1)),
        optimizers=(torch.optim.SGD(model.parameters(), lr=1.0), None),
    )


def test_several_processes_agree_on_a_ray_or_differ(tmp_path: Path) -> None:
    script = tmp_path / "processes.py"
    script.write_text(PROCESSES.format(here=str(Path(__file__).parent)))
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, "-W", "ignore", *launch, str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    ends = {
        ranks: [torch.load(tmp_path / f"{ranks}-{rank}.pt") for rank in range(2)]
        for ranks in ("agree", "differ")
    }
    for one, two in ends.values():
        assert all(torch.equal(one[name], two[name]) for name in one)

    # agreed: what one process does with the whole batch
    alone = _stepper(tmp_path, "agree", batch=20)
    alone.train()
    assert alone.evaluate()["eval_hypervolume"] > 1
    assert math.isclose(
        ends["agree"][0].pop("hypervolume"), alone.evaluate()["eval_hypervolume"], rel_tol=1e-5
    )
    for name, value in alone.model.state_dict().items():
        torch.testing.assert_close(ends["agree"][0][name], value, rtol=1e-4, atol=1e-6)

    # each its own: the mean of the steps of both
    literal, whole = _model(), _stepper(tmp_path, "differ", batch=20)
    for rank in range(2):
        ray = whole.weighting.draw_rays((0, 0), rank, 1)[0]
        share = slice(10 * rank, 10 * (rank + 1))
        (_literal(literal, _data(20), ray, share) / 2).backward()
    for name, parameter in literal.named_parameters():
        assert parameter.grad is not None
        stepped = parameter.detach() - parameter.grad
        torch.testing.assert_close(ends["differ"][0][name], stepped, rtol=1e-4, atol=1e-6)
