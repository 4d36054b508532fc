"""A network of one's own, in one's own loop: too little stock or too much, as an input."""

import torch
from torch import nn

from paretocosmos import Concat, cosmos_loss, sample_rays

torch.manual_seed(1)
x = torch.randn(2048, 8)
demand = x.sum(dim=1) + torch.randn(2048) * (1 + x[:, 0].abs())
model = Concat(nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1)), objectives=2)
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(1000):
    ray = sample_rays(1, 2)[0]  # how much a missing unit matters, and a superfluous one
    missing = demand - model(x, ray).squeeze(1)
    losses = torch.stack([missing.clamp_min(0).mean(), missing.clamp_max(0).abs().mean()])
    optimiser.zero_grad()
    cosmos_loss(losses, ray, penalty=0.01).backward()
    optimiser.step()
for weight in (0.1, 0.5, 0.9):
    stock = model(x, torch.tensor([weight, 1 - weight])).squeeze(1)
    print(f"missing matters {weight:.1f}: enough in {(stock > demand).float().mean():.0%} of cases")
