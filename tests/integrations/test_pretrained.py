"""Conditioned networks written to folders and read again; what folders may not do."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

from paretocosmos import Conditioning, Front, condition
from paretocosmos.errors import ConfigurationError, RunError, UntrustedError
from paretocosmos.integrations.pretrained import from_pretrained, save_pretrained
from paretocosmos.nn.conditioning import PerRayEnsemble, Unconditioned

RAY, INPUTS = torch.tensor([0.7, 0.3]), torch.linspace(-1, 1, 18).view(6, 3)


def _network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def _trained(how: str, network: nn.Module, **settings: Any) -> Conditioning:
    model = condition(network, 2, how=how, settings=settings)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter))
    return model


@pytest.mark.parametrize(
    ("how", "settings"),
    [
        ("film", {"rank": 2, "layer": ("0",)}),
        ("lora", {"adapter_rank": 3}),
        ("concat", {}),
        ("hypernet", {"chunk": 20}),
        ("none", {}),
    ],
)
def test_what_is_read_is_what_was_written(
    how: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    model = _trained(how, _network(), **settings)
    if how == "film":
        model.calibrate(torch.tensor([[0.9, 0.1], [0.2, 0.8]]))
    folder = save_pretrained(model, tmp_path / "new" / "model")
    assert {file.name for file in folder.iterdir()} == {
        "conditioning.json", "model.safetensors", "README.md"
    }  # fmt: skip
    read = from_pretrained(folder, _network())  # other weights, of which none is left
    assert type(read) is type(model)
    assert not read.training
    torch.testing.assert_close(read(INPUTS, RAY), model(INPUTS, RAY), rtol=0, atol=0)
    save_pretrained(read, folder)  # written again in its place
    again = from_pretrained(folder, _network())
    torch.testing.assert_close(again(INPUTS, RAY), model(INPUTS, RAY), rtol=0, atol=0)


def test_frozen_weights_may_be_left_out(tmp_path: Path) -> None:
    network = _network()
    model = _trained("lora", network)
    folder = save_pretrained(model, tmp_path, whole=False)
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        names = set(file.keys())
    assert names.issuperset(model.ray_parameters)
    assert not any(name.endswith("layer.weight") for name in names)
    read = from_pretrained(folder, network)
    torch.testing.assert_close(read(INPUTS, RAY), model(INPUTS, RAY), rtol=0, atol=0)
    with pytest.raises(RunError, match="frozen weights, and those of `network` are different"):
        from_pretrained(folder, _network())


def test_the_card_says_how_and_what(tmp_path: Path) -> None:
    front = Front(
        np.eye(2), np.array([[0.25, 3], [1, 0.5]]), ("loss|a", "gap"), np.full(2, 4.0), split="val"
    )
    text = save_pretrained(_trained("lora", _network()), tmp_path, front=front) / "README.md"
    said = text.read_text()
    assert said.startswith("---\nlibrary_name: paretocosmos\n")
    assert "# Sequential, conditioned on a preference" in said
    assert "`lora`" in said
    assert r"| preference | loss\|a | gap |" in said
    assert "| 1.00, 0.00 | 0.2500 | 3.0000 |" in said


def _changed(folder: Path, **values: Any) -> None:
    file = folder / "conditioning.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "error", "says"),
    [
        ({"format": 2}, RunError, "format 2, this version reads 1"),
        ({"conditioning": "os:system"}, UntrustedError, "`os:system`"),
        ({"conditioning": "flim"}, RunError, "`film`"),
        ({"conditioning": 3}, RunError, "damaged"),
        ({"settings": {"rank": 1, "nothing": 2}}, RunError, "`film` has no such settings"),
        ({"settings": {"rank": "much"}}, ConfigurationError, "`rank` takes int"),
        ({"settings": {}}, RunError, "does not fit `network`"),
        ({"objectives": 3}, RunError, "does not fit `network`"),
    ],
)
def test_a_folder_that_says_something_else_is_refused(
    values: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    save_pretrained(_trained("film", _network(), rank=1), tmp_path)
    _changed(tmp_path, **values)
    with pytest.raises(error, match=says):
        from_pretrained(tmp_path, _network())


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    save_pretrained(_trained("film", _network()), tmp_path)
    file = tmp_path / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.raises(RunError, match="damaged"):
        from_pretrained(tmp_path, _network())
    with pytest.raises(RunError, match="does not exist"):
        from_pretrained(tmp_path / "nowhere", _network())


def test_what_is_not_one_conditioned_network_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="`condition`"):
        save_pretrained(_network(), tmp_path)  # type: ignore[arg-type]
    several = PerRayEnsemble([Unconditioned(_network(), 2)] * 2, torch.eye(2))
    with pytest.raises(ConfigurationError, match="one by one"):
        save_pretrained(several, tmp_path)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ConfigurationError, match="from something else"):
        save_pretrained(_trained("film", _network()), tmp_path)
