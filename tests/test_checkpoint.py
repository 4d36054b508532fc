import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from paretocosmos.checkpoint import (
    Progressed,
    load_checkpoint,
    load_tensors,
    save_checkpoint,
    save_tensors,
)
from paretocosmos.errors import RunError

NUMBERS: dict[str, Any] = {"epoch": 3, "evaluations": [{"hypervolume_val": 0.1 + 0.2}], "a": None}


def _progressed(seed: int, width: int = 4, steps: int = 0) -> Progressed:
    """A training some steps on, with everything that moves: Adam, dropout, batch norm, state."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.Dropout(0.5))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
    generator = torch.Generator().manual_seed(seed)
    at = Progressed(model, optimiser, generator, {"mean": torch.zeros(2)}, numbers={"epoch": 0})
    _go_on(at, steps)
    return at


def _go_on(at: Progressed, steps: int) -> None:
    for _ in range(steps):
        loss = at.model(torch.randn(8, 3, generator=at.generator)).square().sum()
        at.optimiser.zero_grad()
        loss.backward()
        at.optimiser.step()
        at.method_state = {"mean": 0.9 * at.method_state["mean"] + loss.detach()}
        at.best = {"weight": loss.detach().clone()}
        at.numbers["epoch"] += 1


def _everything(at: Progressed) -> list[Tensor]:
    optimiser = at.optimiser.state_dict()["state"]
    return [
        *at.model.state_dict().values(),
        *(
            optimiser[index][name]
            for index in sorted(optimiser)
            for name in sorted(optimiser[index])
        ),
        *at.method_state.values(),
        *at.best.values(),
        at.generator.get_state(),
        torch.get_rng_state(),
    ]


@pytest.mark.parametrize("steps", [0, 3])
def test_it_goes_on_as_if_nothing_had_happened(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "last.safetensors"
    whole = _progressed(1, steps=steps)
    save_checkpoint(path, whole)
    _go_on(whole, 4)
    expected = _everything(whole)

    other = _progressed(2, steps=1)  # wherever it was before
    load_checkpoint(path, other)
    assert other.numbers == {"epoch": steps}
    _go_on(other, 4)
    for one, two in zip(expected, _everything(other), strict=True):
        assert torch.equal(one, two)
    assert other.numbers == whole.numbers


def test_saving_does_not_touch_what_it_saves(tmp_path: Path) -> None:
    at = _progressed(1, steps=2)
    before = [value.clone() for value in _everything(at)]
    save_checkpoint(tmp_path / "a", at)
    assert all(torch.equal(one, two) for one, two in zip(before, _everything(at), strict=True))


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
    save_checkpoint(path, _progressed(1, steps=1))
    content = path.read_bytes()
    path.write_bytes(content[: int(keep if isinstance(keep, int) else keep * len(content))])
    with pytest.raises(RunError, match="damaged or not ours") as caught:
        load_tensors(path)
    assert f"`{path}`" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_one_of_somebody_else(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="does not exist; the run folder is incomplete"):
        load_tensors(tmp_path / "absent")
    with pytest.raises(RunError, match="does not exist"):
        load_tensors(tmp_path)  # a folder
    save_file({"x": torch.ones(2)}, tmp_path / "theirs")
    with pytest.raises(RunError, match="damaged or not ours"):
        load_tensors(tmp_path / "theirs")


def test_another_network_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "last.safetensors"
    save_checkpoint(path, _progressed(1, steps=1))
    with pytest.raises(RunError, match=r"does not fit this network .*size mismatch") as caught:
        load_checkpoint(path, _progressed(1, width=5))
    assert "\n" not in str(caught.value)
    save_tensors(path, {"x": torch.ones(1)}, {})
    with pytest.raises(RunError, match="does not fit this network"):
        load_checkpoint(path, _progressed(1))
