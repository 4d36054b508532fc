"""One language model between source code and prose: LoRA on a frozen network, mixed by the ray."""

import inspect
import pathlib
import random
import shutil
import tarfile
from collections.abc import Callable
from pydoc_data.topics import topics
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from paretocosmos import condition, sample_rays
from paretocosmos.integrations.pretrained import save_pretrained

torch.set_num_threads(1)
torch.manual_seed(1)
# two corpora that come with Python: its source code, and its manual
code = "".join(inspect.getsource(one) for one in (inspect, pathlib, random, shutil, tarfile))
texts = [torch.tensor(list(text.encode())) for text in (code, "".join(topics.values()))]
held_out = [text[-6_400:].view(100, 64) for text in texts]


def windows() -> Tensor:
    """Eight windows of code, then eight of prose."""
    return torch.stack(
        [
            text[at : at + 64]
            for text in texts
            for at in torch.randint(len(text) - 6_464, (8,)).tolist()
        ]
    )


def losses(logits: Tensor, ids: Tensor) -> Tensor:
    """Cross-entropy per byte of every window."""
    return F.cross_entropy(logits[:, :-1].mT, ids[:, 1:], reduction="none").mean(dim=1)


def train(model: nn.Module, loss: Callable[[Tensor], Tensor], steps: int) -> None:
    """Minimise a loss of windows; what is frozen stays."""
    own = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss(windows()).backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()


# from_pretrained("gpt2") just as well; this one reads bytes, and learns both corpora first
config = GPT2Config(
    vocab_size=256,
    n_positions=192,
    n_embd=64,
    n_layer=2,
    n_head=4,
    bos_token_id=10,
    eos_token_id=None,
    pad_token_id=0,
)
network = GPT2LMHeadModel(config)
train(network, lambda ids: losses(network(ids).logits, ids).mean(), steps=600)

model = condition(network, objectives=2, how="lora")


def weighed(ids: Tensor) -> Tensor:
    """A ray, and the loss of each corpus weighed by it."""
    ray = sample_rays(1, 2, alpha=0.5)[0]
    by_corpus = losses(model(ids, ray)["logits"], ids).view(2, 8).mean(dim=1)
    return torch.dot(ray, by_corpus)


train(model, weighed, steps=400)

for weight in (1.0, 0.5, 0.0):
    at: Any = model.at([weight, 1 - weight]).eval()  # an ordinary network: no second argument
    with torch.no_grad():
        perplexity = [losses(at(ids).logits, ids).mean().exp().item() for ids in held_out]
    print(f"code matters {weight:.1f}: perplexity {perplexity[0]:.2f}, prose {perplexity[1]:.2f}")
    prompt = torch.tensor([list(b"\n")])
    written = at.generate(prompt, max_new_tokens=80, do_sample=True, temperature=0.7)
    print("  it writes", repr(bytes(written[0].tolist()).decode(errors="replace")))

save_pretrained(model, "runs/language_model", whole=False)  # the adapters alone
ours: Any = model.at([1.0, 0.0])
ours.save_pretrained("runs/for_code")  # merged: transformers alone can read it
again = AutoModelForCausalLM.from_pretrained("runs/for_code")
same = torch.allclose(again(held_out[0]).logits, ours(held_out[0]).logits, atol=1e-4)
print(f"merged into the weights it says the same: {same}")
