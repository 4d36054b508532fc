"""Language models of `transformers`, their settings untouched, train in every loop."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor
from torch.utils.data import DataLoader

from paretocosmos import Conditioning, Problem, condition, fit
from paretocosmos.integrations.pretrained import from_pretrained
from paretocosmos.integrations.transformers import ParetoTrainer
from paretocosmos.objectives import Objective
from paretocosmos.types import Batch, Outputs, Targets

transformers: Any = pytest.importorskip("transformers", reason="pip install --group extras")
pytest.importorskip("accelerate", reason="pip install --group extras")
WORDS, LENGTH = 12, 6
KINDS = pytest.mark.parametrize("kind", ["GPT2", "Llama", "Qwen2"])
RAY = torch.tensor([0.7, 0.3])


class NextWord(Objective):
    """Cross-entropy of words so far up in the alphabet."""

    def __init__(self, name: str, shift: int) -> None:
        super().__init__(name=name, target="words")
        self.shift = shift

    def loss(self, outputs: Outputs, targets: Targets) -> Tensor:
        wanted = (targets["words"] + self.shift) % WORDS
        return F.cross_entropy(outputs["logits"].flatten(0, 1), wanted.flatten())

    score = loss


OBJECTIVES = (NextWord("same", 0), NextWord("next", 1))


def _network(kind: str) -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"bos_token_id": 0, "eos_token_id": None, "pad_token_id": WORDS - 1}
    own: dict[str, Any] = (
        {} if kind == "GPT2" else {"intermediate_size": 24, "num_key_value_heads": 2}
    )
    own |= {"initializer_range": 0.3}  # else the frozen weights below `lora` give hardly anything
    config = getattr(transformers, f"{kind}Config")(vocab_size=WORDS, **sizes, **own, **ends)
    assert config.use_cache
    head = "LMHeadModel" if kind == "GPT2" else "ForCausalLM"
    return getattr(transformers, kind + head)(config)


def _batch(samples: int) -> Batch:
    words = torch.randint(0, WORDS, (samples, LENGTH), generator=torch.Generator().manual_seed(0))
    return Batch({"input_ids": words, "attention_mask": torch.ones_like(words)}, {"words": words})


def _samples(batch: Batch) -> list[dict[str, Tensor]]:
    columns: dict[str, Tensor] = {**batch.inputs, **batch.targets}  # type: ignore[dict-item]
    return [{name: part[at] for name, part in columns.items()} for at in range(len(batch))]


def _trainer(model: Conditioning, folder: Path, **given: Any) -> ParetoTrainer:
    quiet = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "max_steps": 4}
    quiet |= {"per_device_train_batch_size": 8, "save_strategy": "no"}
    return ParetoTrainer(
        model,
        transformers.TrainingArguments(str(folder), **(quiet | given)),
        objectives=OBJECTIVES,
        reference=(9, 9),
        rays_per_batch=4,
        rays=3,
        train_dataset=_samples(_batch(32)),
        eval_dataset=_samples(_batch(16)),
    )


@KINDS
@pytest.mark.parametrize(("how", "rate"), [("film", 0.01), ("lora", 0.03), ("token", 0.03)])
def test_trained_in_the_trainer_it_is_saved_read_and_generates(
    kind: str, how: str, rate: float, tmp_path: Path
) -> None:
    model = condition(_network(kind), 2, how=how)
    before = _trainer(model, tmp_path).evaluate()["eval_same"]
    trainer = _trainer(model, tmp_path, learning_rate=rate, max_steps=20)
    trainer.train()
    assert trainer.evaluate()["eval_same"] < 0.9 * before
    assert model.backbone.config.use_cache
    trainer.save_model(str(tmp_path / "saved"))
    read = from_pretrained(tmp_path / "saved", _network(kind))
    words = _batch(2).targets["words"]
    assert torch.equal(_logits(read, words), _logits(model.eval(), words))
    assert not torch.equal(_logits(read, words), _logits(read, words, RAY.flip(0)))
    one: Any = read.at(RAY)
    found = one.generate(words, max_new_tokens=2, do_sample=False)
    for _ in range(2):  # the most likely words one by one, by whole calls
        words = torch.cat([words, _logits(model, words)[:, -1:].argmax(dim=-1)], dim=1)
    assert torch.equal(found, words)


def _logits(model: Conditioning, words: Tensor, ray: Tensor = RAY) -> Tensor:
    outputs: Any = model({"input_ids": words}, ray)
    return outputs["logits"]


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # Lightning's own
@pytest.mark.filterwarnings("ignore:.*does not have many workers")
@pytest.mark.filterwarnings("ignore:.*the number of training batches")
@KINDS
def test_it_trains_with_lightning(kind: str) -> None:
    lightning = pytest.importorskip("lightning", reason="pip install --group extras")
    from paretocosmos.integrations.lightning import ParetoModule

    module = ParetoModule(
        condition(_network(kind), 2), OBJECTIVES, reference=(9, 9), rays_per_batch=4, rays=3
    )
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(
        max_steps=3, accelerator="cpu", enable_model_summary=False, num_sanity_val_steps=0, **quiet
    )
    loaders = [DataLoader(_samples(_batch(size)), batch_size=8) for size in (24, 16)]  # type: ignore
    trainer.fit(module, *loaders)
    assert 0 < float(trainer.callback_metrics["val_same"]) < 9


@dataclass(frozen=True, kw_only=True, eq=False)
class Text(Problem):
    """The same words in all splits."""

    def split(self, name: str) -> Batch:
        return _batch(32)


@KINDS
def test_it_trains_in_fit(kind: str, tmp_path: Path) -> None:
    problem = Text(
        name="text",
        objectives=OBJECTIVES,
        reference=(9, 9),
        input_shape=(LENGTH,),
        outputs={"logits": WORDS},
    )
    settings = {"batch_size": 16, "rays_per_batch": 4, "rays": 3}
    model = condition(_network(kind), 2)
    run = fit(
        problem, model=model, epochs=2, settings=settings, engine="eager", out=tmp_path / "run"
    )
    assert run.front.values.shape == (3, 2)


@KINDS
def test_at_a_ray_it_still_has_its_cache(kind: str) -> None:
    """Word by word, with the keys and values of those before, it finds what it finds at once."""
    model = condition(_network(kind), 2).eval()
    one: Any = model.at(RAY)
    words = _batch(2).targets["words"]
    whole = one(words).logits
    so_far = one(words[:, :-1]).past_key_values
    last = one(input_ids=words[:, -1:], past_key_values=so_far).logits
    torch.testing.assert_close(last[:, 0], whole[:, -1])


def test_tied_weights_are_saved_and_read_again(tmp_path: Path) -> None:
    """GPT-2's words in and out are one matrix, which safetensors would refuse to write."""
    model = condition(_network("GPT2"), 2)
    network: Any = model.backbone
    assert network.get_input_embeddings().weight is network.lm_head.layer.weight
    saving = {"save_strategy": "steps", "save_steps": 2, "learning_rate": 0.01}
    _trainer(model, tmp_path / "whole", **saving).train()
    wanted = model.state_dict()
    saved = load_file(tmp_path / "whole" / "checkpoint-4" / "model.safetensors")
    assert saved.keys() == wanted.keys()
    assert all(torch.equal(saved[name], value) for name, value in wanted.items())
    resumed = condition(_network("GPT2"), 2)
    words, half = _batch(2).targets["words"], tmp_path / "whole" / "checkpoint-2"
    _trainer(resumed, tmp_path / "resumed", **saving).train(resume_from_checkpoint=str(half))
    assert all(torch.equal(value, wanted[name]) for name, value in resumed.state_dict().items())
    read = from_pretrained(tmp_path / "whole" / "checkpoint-4", _network("GPT2"))
    network = read.backbone
    assert torch.equal(_logits(read, words), _logits(model.eval(), words))
    assert network.get_input_embeddings().weight is network.lm_head.layer.weight
