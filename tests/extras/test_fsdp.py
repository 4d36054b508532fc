"""A conditioned network in pieces on two processes (FSDP2), against one process with all of it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load

from paretocosmos import Problem, condition, evaluate
from paretocosmos.objectives import MeanAbsoluteError, MeanSquaredError
from paretocosmos.problems import Split
from paretocosmos.types import Batch

STEPS, B = 6, 32
HOW = ("concat", "film", "hypernet")

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no processes here")


@dataclass(frozen=True, kw_only=True, eq=False)
class Noisy(Problem):
    def split(self, name: Split) -> Batch:
        x = torch.randn(B, 6, generator=torch.Generator().manual_seed(2))
        return Batch(x[:, :5], {"label": x[:, 5:]})


PROBLEM = Noisy(
    name="noisy",
    objectives=(MeanSquaredError(), MeanAbsoluteError()),
    reference=(5.0, 5.0),
    input_shape=(5,),
    outputs=1,
)


def network(how: str) -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
    )
    return condition(layers, 2, how=how)


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-2)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, at: int, share: slice) -> Tensor:
    """One step on a share of the batch at the ray of that step; its loss."""
    batch, ray = PROBLEM.split("train"), torch.tensor([0.2 + 0.1 * at, 0.8 - 0.1 * at])
    outputs = model(batch.inputs[share], ray)
    targets = {name: part[share] for name, part in batch.targets.items()}
    losses = torch.stack([objective.loss(outputs, targets) for objective in PROBLEM.objectives])
    loss = (ray * losses).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


PROCESSES = """
import os
import sys
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
sys.path.insert(0, {here!r})
import test_fsdp as tests
from paretocosmos import evaluate

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, half = dist.get_rank(), tests.B // 2
mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
for how in tests.HOW:
    model = tests.network(how)
    for part in model.modules():
        if isinstance(part, nn.Linear):
            fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
    register_fsdp_forward_method(model, "each_ray")
    optimizer, losses = tests.optimizer_of(model), []
    for at in range(tests.STEPS):
        loss = tests.step(model, optimizer, at, slice(rank * half, (rank + 1) * half))
        dist.all_reduce(loss)
        losses.append(loss / 2)
        if at == tests.STEPS // 2 - 1:
            dcp.save(tests.state(model, optimizer), checkpoint_id=f"{{sys.argv[1]}}/{{how}}")
    front = evaluate(model, tests.PROBLEM, rays=5)
    if rank == 0:
        found = {{"losses": torch.stack(losses), "values": torch.tensor(front.values)}}
        torch.save(found, f"{{sys.argv[1]}}/{{how}}.pt")
dist.barrier()  # none leaves while another needs it
dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)  # a thread of torch's that outlives the group may abort Python at its end
"""


def state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    own = get_optimizer_state_dict(model, optimizer)
    return {"model": get_model_state_dict(model), "optimizer": own}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes left: losses, a front and a checkpoint of the middle."""
    folder = tmp_path_factory.mktemp("fsdp")
    script = folder / "processes.py"
    script.write_text(PROCESSES.format(here=str(Path(__file__).parent)))
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, "-W", "ignore", *launch, str(script), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize("how", HOW)
def test_two_processes_train_as_one(how: str, two: Path) -> None:
    found, model = torch.load(two / f"{how}.pt"), network(how)
    optimizer = optimizer_of(model)
    losses = [step(model, optimizer, at, slice(None)) for at in range(STEPS)]
    torch.testing.assert_close(found["losses"], torch.stack(losses), rtol=0, atol=1e-5)
    front = evaluate(model, PROBLEM, rays=5)
    np.testing.assert_allclose(found["values"], front.values, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*torch.distributed is (disabled|unavailable)")
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("how", HOW)
def test_a_checkpoint_of_two_is_read_by_one(how: str, two: Path) -> None:
    model = network(how)
    optimizer = optimizer_of(model)
    held = state(model, optimizer)
    load(held, checkpoint_id=two / how)
    set_model_state_dict(model, held["model"])
    set_optimizer_state_dict(model, optimizer, held["optimizer"])
    late = range(STEPS // 2, STEPS)
    losses = [step(model, optimizer, at, slice(None)) for at in late]
    expected = torch.load(two / f"{how}.pt")["losses"][STEPS // 2 :]
    torch.testing.assert_close(torch.stack(losses), expected, rtol=0, atol=1e-5)
