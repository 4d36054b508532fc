import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from paretocosmos.errors import RunError
from paretocosmos.runs import (
    TrainingState,
    load_checkpoint,
    load_tensors,
    save_checkpoint,
    save_tensors,
)
from paretocosmos.training.engine import Optimizer, UpdateRule

NUMBERS: dict[str, Any] = {"epoch": 3, "evaluations": [{"hypervolume_val": 0.1 + 0.2}], "a": None}


class Moving(NamedTuple):
    """A training, with everything that moves: Adam, dropout, batch norm, the method's state."""

    at: TrainingState
    adam: Optimizer

    def go_on(self, steps: int) -> None:
        at, parameters = self.at, dict(self.at.model.named_parameters())
        for _ in range(steps):
            loss = at.model(torch.randn(8, 3, generator=at.generator)).square().sum()
            gradients = torch.autograd.grad(loss, list(parameters.values()))
            self.adam.update(dict(zip(parameters, gradients, strict=True)))
            at.method_state["mean"].mul_(0.9).add_(loss.detach())
            at.best = {"weight": loss.detach().clone()}
            at.numbers["epoch"] += 1

    def everything(self) -> list[Tensor]:
        at = self.at
        return [
            *at.model.state_dict().values(),
            *self.adam.tensors(),
            *at.method_state.values(),
            *at.best.values(),
            at.generator.get_state(),
            torch.get_rng_state(),
        ]


def _moving(seed: int, width: int = 4, steps: int = 0) -> Moving:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.Dropout(0.5))
    adam = Optimizer(dict(model.named_parameters()), UpdateRule("adam", 0.0))
    adam.set_rates([0.1])
    generator, state = torch.Generator().manual_seed(seed), {"mean": torch.zeros(2)}
    at = TrainingState(model, adam.state(), generator, state, numbers={"epoch": 0})
    moving = Moving(at, adam)
    moving.go_on(steps)
    return moving


def test_a_layout_in_memory_is_neither_saved_nor_lost(tmp_path: Path) -> None:
    plain = nn.Conv2d(2, 3, 5)
    turned = nn.Conv2d(2, 3, 5).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    save_checkpoint(tmp_path / "a", TrainingState(plain, {}, torch.Generator(), {}))
    before = turned.weight.stride()
    load_checkpoint(tmp_path / "a", TrainingState(turned, {}, torch.Generator(), {}))
    assert torch.equal(turned.weight, plain.weight)
    assert turned.weight.stride() == before != plain.weight.stride()
    save_checkpoint(tmp_path / "b", TrainingState(turned, {}, torch.Generator(), {}))
    found = load_tensors(tmp_path / "b")[0]["model.weight"]
    assert torch.equal(found, plain.weight)
    assert found.is_contiguous()


def test_tensors_and_numbers_come_back_bit_for_bit(tmp_path: Path) -> None:
    base = torch.randn(4, 6)
    tensors = {
        "turned": base.t(),  # not contiguous
        "part": base[1:3],  # shares memory with the first
        "same": base,
        "whole": torch.arange(3),
        "scalar": torch.tensor(float("nan")),
        "bytes": torch.tensor([0, 255], dtype=torch.uint8),
        "empty": torch.zeros(0, 2),
        "inference": _inference(),
    }
    save_tensors(tmp_path / "a", tensors, NUMBERS)
    found, numbers = load_tensors(tmp_path / "a")
    assert numbers == NUMBERS
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name].nan_to_num(7), tensor.nan_to_num(7))


def _inference() -> Tensor:
    with torch.inference_mode():
        return torch.ones(2) * 2


def test_the_file_is_plain_safetensors(tmp_path: Path) -> None:
    save_tensors(tmp_path / "a", {"x": torch.tensor([1.0, -2.0])}, NUMBERS)
    content = (tmp_path / "a").read_bytes()  # the format by hand: length, JSON, numbers
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert header["x"]["shape"] == [2]
    assert json.loads(header["__metadata__"]["paretocosmos"]) == NUMBERS
    assert content[8 + length :] == bytes.fromhex("0000803f000000c0")


@pytest.mark.parametrize("keep", [0, 4, 8, 100, 0.5, -1])
def test_a_file_cut_short_is_one_sentence(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "last.safetensors"
    save_checkpoint(path, _moving(1, steps=1).at)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep if isinstance(keep, int) else keep * len(content))])
    with pytest.raises(RunError, match="damaged or was not written by paretocosmos") as caught:
        load_tensors(path)
    assert f"`{path}`" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_one_of_somebody_else(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"does not exist.*incomplete"):
        load_tensors(tmp_path / "absent")
    with pytest.raises(RunError, match="does not exist"):
        load_tensors(tmp_path)  # a folder
    save_file({"x": torch.ones(2)}, tmp_path / "theirs")
    with pytest.raises(RunError, match="damaged or was not written by paretocosmos"):
        load_tensors(tmp_path / "theirs")


def test_another_network_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "last.safetensors"
    save_checkpoint(path, _moving(1, steps=1).at)
    with pytest.raises(RunError, match=r"not fit .*6 of another shape") as caught:
        load_checkpoint(path, _moving(1, width=5).at)
    assert "\n" not in str(caught.value)
    save_tensors(path, {"x": torch.ones(1)}, {}, hashed=True)
    with pytest.raises(RunError, match="does not fit"):
        load_checkpoint(path, _moving(1).at)
