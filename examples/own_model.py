"""Your own network on your own data: too little stock or too much, decided afterwards."""

import torch
from torch import nn

from paretocosmos import fit

torch.manual_seed(1)
x = torch.randn(8192, 8)
demand = x.sum(dim=1, keepdim=True) + torch.randn(8192, 1) * (1 + x[:, :1].abs())
network = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
losses = {
    "missing": lambda stock, demand: (demand - stock).relu().mean(),
    "spare": lambda stock, demand: (stock - demand).relu().mean(),
}
run = fit(network, (x, demand), losses)  # torch's losses work, too
run.front.plot().save("front.png")
print("   spare  missing")
for most in (2.0, 1.0, 0.5, 0.25):
    point = run.choose(max={"spare": most}, minimize="missing").test
    print(f"{point['spare']:8.2f} {point['missing']:8.2f}")
