"""Hugging Face's Trainer, one language model for two moderators who do not agree."""

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification, TrainingArguments

from paretocosmos import condition
from paretocosmos.integrations.transformers import ParetoTrainer
from paretocosmos.objectives import CrossEntropy

torch.set_num_threads(1)  # a small network: more would wait for each other
torch.manual_seed(1)
words = torch.randint(1, 20, (2048, 8))
rude = (words < 4).sum(dim=1)  # how many of eight words are among the three worst
comments = [
    {"input_ids": text, "strict": int(count > 0), "lenient": int(count > 2)}
    for text, count in zip(words, rude, strict=True)
]

# from_pretrained(...) just as well; this one is small and knows nothing
config = DistilBertConfig(vocab_size=20, dim=32, n_layers=2, n_heads=2, hidden_dim=64)
model = condition(DistilBertForSequenceClassification(config), objectives=2)
trainer = ParetoTrainer(
    model,
    TrainingArguments(
        "runs/hf_trainer",
        num_train_epochs=8,
        per_device_train_batch_size=32,
        learning_rate=2e-3,
        lr_scheduler_type="cosine",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    ),
    objectives=[
        CrossEntropy(name="strict", output="logits", target="strict"),
        CrossEntropy(name="lenient", output="logits", target="lenient"),
    ],
    reference=(2.0, 2.0),
    train_dataset=comments[:1536],
    eval_dataset=comments[1536:],
)
trainer.train()

print(f"hypervolume {trainer.evaluate()['eval_hypervolume']:.2f}")
front = trainer.front(comments[1536:], rays=[[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
for ray, (strict, lenient) in zip(front.rays, front.values, strict=True):
    print(f"strict matters {ray[0]:.1f}: strict's loss {strict:.2f}, lenient's loss {lenient:.2f}")
