"""A network that you already have, trained for one answer, learns all of them in your own loop."""

import torch
from torch import nn

from paretocosmos import condition, sample_rays

torch.manual_seed(1)
x = torch.randn(2048, 8)
demand = x.sum(dim=1) + torch.randn(2048) * (1 + x[:, 0].abs())
network = nn.Sequential(nn.Linear(8, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 1))
optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(200):  # as you have it: trained for the mean, which no trade-off enters
    optimiser.zero_grad()
    (network(x).squeeze(1) - demand).square().mean().backward()
    optimiser.step()

model = condition(network, objectives=2)
print(f"starts as it was: {torch.equal(model(x, torch.tensor([0.9, 0.1])), network(x))}")
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(600):
    ray = sample_rays(1, 2, alpha=0.5)[0]  # how much a missing unit matters, and a superfluous one
    missing = demand - model(x, ray).squeeze(1)
    losses = torch.stack([missing.clamp_min(0).mean(), missing.clamp_max(0).abs().mean()])
    optimiser.zero_grad()
    (ray * losses).sum().backward()
    optimiser.step()
for weight in (0.1, 0.5, 0.9):
    stock = model(x, torch.tensor([weight, 1 - weight])).squeeze(1)
    print(f"missing matters {weight:.1f}: enough in {(stock > demand).float().mean():.0%} of cases")
