"""Your own network in your own loop: too little stock or too much, decided afterwards."""

import torch
from torch import nn

from paretocosmos import Front, condition, even_rays, sample_rays

torch.manual_seed(1)
x = torch.randn(8192, 8)
demand = x.sum(dim=1, keepdim=True) + torch.randn(8192, 1) * (1 + x[:, :1].abs())
network = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
model = condition(network, objectives=2)
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(1000):
    ray = sample_rays(1, 2)[0]  # how much a missing unit matters, and a spare one
    missing = demand[:4096] - model(x[:4096], ray)
    losses = torch.stack([missing.relu().mean(), (-missing).relu().mean()])
    optimiser.zero_grad()
    (ray * losses).sum().backward()
    optimiser.step()

rays = even_rays(5, 2)
with torch.no_grad():
    missing = demand[4096:] - model.each_ray(x[4096:], rays)  # [5, 4096, 1]
losses = torch.stack([missing.relu().mean((1, 2)), (-missing).relu().mean((1, 2))], dim=1)
enough = {"enough": (missing < 0).float().mean((1, 2))}
print(Front(rays, losses, names=("missing", "spare"), reference=(3, 3), metrics=enough))
