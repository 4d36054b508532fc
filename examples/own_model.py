"""Your own network in your own loop: too little stock or too much, decided afterwards."""

import torch
from torch import nn

from paretocosmos import condition, sample_rays

torch.manual_seed(1)
x = torch.randn(2048, 8)
demand = x.sum(dim=1, keepdim=True) + torch.randn(2048, 1) * (1 + x[:, :1].abs())
model = condition(nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1)), objectives=2)
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(1000):
    ray = sample_rays(1, 2)[0]  # how much a missing unit matters, and a spare one
    missing = demand - model(x, ray)
    losses = torch.stack([missing.relu().mean(), (-missing).relu().mean()])
    optimiser.zero_grad()
    (ray * losses).sum().backward()
    optimiser.step()
for weight in (0.1, 0.5, 0.9):
    stock = model(x, torch.tensor([weight, 1 - weight]))
    print(f"missing matters {weight:.1f}: enough in {(stock > demand).float().mean():.0%} of cases")
