"""What a training advances: batches cut by hand, and trials that leave no trace."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from paretocosmos.methods import State
from paretocosmos.training.engine import InMemory, Optimizer, StepResult, TrainState, UpdateRule
from paretocosmos.types import Batch

SAMPLES = 50


def _step(
    parameters: Mapping[str, Tensor],
    batch: Batch,
    rays: Tensor,
    state: State,
    /,
) -> StepResult:
    """Not a loss: sums that tell which samples and rays were seen."""
    assert isinstance(batch.inputs, Tensor)
    losses = rays + batch.inputs.sum(dim=-1, keepdim=True).unsqueeze(-1)
    gradients = {"w": parameters["w"] * 0 + batch.targets["y"].float().mean()}
    return StepResult(losses, gradients, {"seen": state["seen"] + 1, "same": state["same"]})


def _work(batch_size: int = 8, rays_per_batch: int = 2) -> TrainState:
    parameters = {"w": torch.ones(3)}
    return TrainState(
        step=_step,
        parameters=parameters,
        optimizer=Optimizer(parameters, UpdateRule("adam", 0.0)),
        method_state={"seen": torch.zeros(()), "same": torch.ones(2)},
        source=InMemory(Batch(torch.arange(SAMPLES), {"y": torch.arange(SAMPLES) % 7})),
        batch_size=batch_size,
        rays_per_batch=rays_per_batch,
        buffers=[torch.zeros(2)],
    )


@pytest.mark.parametrize("lead", [(), (3,)], ids=["alone", "stacked"])
@pytest.mark.parametrize(
    ("batch_size", "rays_per_batch"),
    [(8, 1), (8, 2), (10, 5), (12, 4), (50, 1), (64, 8), (7, 7), (48, 3)],
)
def test_an_epoch_is_cut_into_batches(
    batch_size: int, rays_per_batch: int, lead: tuple[int, ...]
) -> None:
    order = (
        torch.stack([torch.randperm(SAMPLES) for _ in range(3)])
        if lead
        else (torch.randperm(SAMPLES))
    )
    starts = range(0, SAMPLES, batch_size)
    rays = torch.rand(*lead, len(starts) * rays_per_batch, 2)
    found = list(_work(batch_size, rays_per_batch).split_epoch(order, rays))
    expected = []
    for step, start in enumerate(starts):
        size = min(batch_size, SAMPLES - start)
        size -= size % rays_per_batch
        if size:
            ray = rays[..., step * rays_per_batch : (step + 1) * rays_per_batch, :]
            expected.append((order[..., start : start + size], ray))
    assert len(found) == len(expected)
    for one, two in zip(found, expected, strict=True):
        assert torch.equal(one[0], two[0])
        assert torch.equal(one[1], two[1])
        assert one[0].shape[-1] % rays_per_batch == 0


@pytest.mark.parametrize("fails", [False, True])
def test_a_rehearsal_is_taken_back(fails: bool) -> None:
    work = _work()
    work.optimizer.set_rates([0.4, 0.3, 0.2, 0.1])
    work.compute_step(work.source.batch_at(torch.arange(8)), torch.rand(2, 2))
    live = [*work.optimizer.tensors(), *work.method_state.values(), *work.buffers]
    before, drawn = [tensor.clone() for tensor in live], torch.get_rng_state()

    def preflight() -> None:
        with work.rolled_back():
            for _ in range(3):
                work.compute_step(work.source.batch_at(torch.arange(8)), torch.rand(2, 2))
            nn.Dropout()(torch.ones(5))
            work.buffers[0].add_(1)
            changed = [torch.equal(a, b) for a, b in zip(before, live, strict=True)]
            assert changed.count(True) == 1  # the state that stays as it is
            if fails:
                raise InterruptedError

    try:
        preflight()
    except InterruptedError:
        assert fails
    assert all(torch.equal(one, two) for one, two in zip(before, live, strict=True))
    assert torch.equal(torch.get_rng_state(), drawn)
