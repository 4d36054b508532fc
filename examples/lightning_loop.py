"""Lightning's loop, one network for every answer: too little stock or too much, as an input."""

from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from paretocosmos import Objective, condition
from paretocosmos.integrations.lightning import ParetoModule
from paretocosmos.types import Targets


class Missing(Objective):
    """How many units are missing on average."""

    def loss(self, outputs: Any, targets: Targets) -> Tensor:
        return torch.relu(targets["demand"] - outputs).mean()


class Superfluous(Objective):
    """How many are left over."""

    def loss(self, outputs: Any, targets: Targets) -> Tensor:
        return torch.relu(outputs - targets["demand"]).mean()


torch.set_num_threads(1)  # a small network: more would wait for each other
torch.manual_seed(1)
x = torch.randn(4096, 8)
demand = x.sum(dim=1, keepdim=True) + torch.randn(4096, 1) * (1 + x[:, :1].abs())
train = DataLoader(TensorDataset(x[:3072], demand[:3072]), batch_size=128, shuffle=True)
val = DataLoader(TensorDataset(x[3072:], demand[3072:]), batch_size=512)

network = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
module = ParetoModule(
    condition(network, objectives=2),
    [Missing(target="demand"), Superfluous(target="demand")],
    reference=(3.0, 3.0),
    learning_rate=3e-3,
)
trainer = lightning.Trainer(
    max_epochs=25,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(module, train, val)

print(f"hypervolume {trainer.callback_metrics['val_hypervolume']:.2f}")
for weight in (0.1, 0.5, 0.9):
    with torch.no_grad():
        stock = module(x[3072:], torch.tensor([weight, 1 - weight]))
    enough = (stock > demand[3072:]).float().mean()
    print(f"missing matters {weight:.1f}: enough in {enough:.0%} of cases")
